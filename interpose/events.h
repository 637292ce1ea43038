// Events that are no driver calls (trace/foreign.def), and what their makers need of the calling thread.
#pragma once

#include "interpose/state.h"
#include "trace/call.h"

namespace capturesan::shim {

// Writes one, with its name before its first use. Not while the thread is writing another record (`busy`).
// `begin`: ticks at which it happened; 0 is now.
void write_foreign_event(thread_state* t, trace::foreign_id id, u64 a, u64 b, u64 c, bool with_stack, u64 begin = 0);

// The calling thread's state if it has one already; never makes one.
thread_state* thread_if_any();

inline bool window_is_open() { return (attention.load(std::memory_order_relaxed) & attention_window) != 0; }

} // namespace capturesan::shim
