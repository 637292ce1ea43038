// --poison: memory that a live graph refers to is filled with NaNs right before the driver frees it, so that a replay
// that still uses it computes something that is noticed. Opt-in: it makes work of its own on the device.
#pragma once

#include "interpose/node_params.h"

namespace capturesan::shim {

struct call_frame;

void poison_allocated(u64 address, u64 bytes); // by the driver, outside of captures
void poison_note_address(u64 address);         // a graph refers to it
void poison_before_free(const call_frame& f);  // fills, unless that cannot be done without harm
void poison_block_skipped();                   // a framework's block: its streams are not known
void write_poison_counts();                    // at exit

} // namespace capturesan::shim
