// Tables of addresses: what a copy takes from the host to the device is looked through for words that may be addresses
// of device memory. Recorded are where in the destination such a word goes, and the word; no other contents.
#pragma once

#include "interpose/state.h"

namespace capturesan::shim {

inline constexpr u64 max_table_bytes = 65536; // of one copy

// Device memory was allocated: addresses lie between the lowest and the highest of it.
void note_device_memory(u64 base, u64 bytes);

// For the event that follows. Nothing if the source cannot be read, or holds no such word.
void write_pointer_table(thread_state* t, u64 target, u64 source, u64 bytes);

} // namespace capturesan::shim
