// The second source: what the driver layer cannot see. One client is allowed, and the user's profiler is one, so the
// slot is held only while captures are open: taken before the real begin call, given back after the last one ended.
// Measured on driver 580.159 (tests/golden/cupti_windows_580.159.csv): none of the calls made here harms an open
// capture. `--cupti=verify` (tests) holds it for the whole run and counts every driver call instead.
#pragma once

#include "interpose/hook.h"

namespace capturesan::shim {

// After the first cuInit, for verify: subscribes. Prefers a libcupti that the process has loaded already.
void cupti_start(thread_state* t);

// Before the real begin call, while no capture is open. `auto` uses a libcupti that the process has loaded and nothing
// else; `require` loads one.
void cupti_window_opens(thread_state* t);
// After any recorded call: gives the slot back if no capture is open any more.
void cupti_after_call();
// Before an event in a window: runtime call and loaded modules.
void write_cupti_facts(call_frame& f);

// At exit, for verify: writes both counts of every name.
void cupti_finish();

} // namespace capturesan::shim
