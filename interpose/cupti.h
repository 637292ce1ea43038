// The second source. So far only `--cupti=verify` (tests): CUPTI counts every driver call and the trace gets both
// counts.
#pragma once

#include "interpose/hook.h"

namespace capturesan::shim {

// After the first cuInit: subscribes if asked for. Prefers a libcupti that the process has loaded already.
void cupti_start(thread_state* t);
// At exit: writes both counts of every name.
void cupti_finish();

// Header fields that only a started driver can fill: version, kind, device.
void describe_driver(thread_state* t);

// At exit: the calls that the simulated driver had to refuse because it lacks them, so that the report can name them.
void write_unsupported_calls();

bool driver_loaded();

// After a context was reset or released: whatever captured in it is gone.
void close_lost_captures();

} // namespace capturesan::shim
