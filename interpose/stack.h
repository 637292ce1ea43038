// Call stacks: return addresses only; names are the analyzer's work.
#pragma once

#include "interpose/state.h"

namespace capturesan::shim {

inline constexpr int max_frames = 24;

// Takes the caller's stack without the shim's own frames and writes it unless it was written before. Returns its id, 0
// if none could be taken. Writes module records for objects that were mapped since the last stack.
u32 record_stack(thread_state* t);

} // namespace capturesan::shim
