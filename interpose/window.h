// The captures that are open in this process, and their statuses after a refused call.
#pragma once

#include "interpose/state.h"

namespace capturesan::shim {

inline bool window_open() { return (attention.load(std::memory_order_relaxed) & attention_window) != 0; }

// Before the real begin call: from here on refused calls of other threads are recorded. After it: `ok` keeps the window
// open.
void capture_opening();
void capture_opened(thread_state* t, bool ok, u64 stream, u64 begin);

// After the real end call: the capture is forgotten once its stream no longer captures (a refused end may leave it
// open).
void capture_closed(u64 stream);

// Before a stream is destroyed: nobody may read the status of the handle from here on. Returns what was taken out, to
// be put back if the driver refuses.
open_capture take_stream_out(u64 stream);
void put_stream_back(const open_capture& c);

// Before a context goes: its streams go with it. 0 = every context.
void take_context_out(u64 context);

// Has the thread begun a capture that is still open?
bool thread_captures(u32 thread);

// Reads the status of every open capture and writes one capture_status record for each. Calls only cuStreamIsCapturing.
void write_statuses(thread_state* t);

} // namespace capturesan::shim
