// The second source. So far only `--cupti=verify` (tests): CUPTI counts every driver call and the trace gets both
// counts.
#pragma once

#include "interpose/hook.h"

namespace capturesan::shim {

// After the first cuInit: subscribes if asked for. Prefers a libcupti that the process has loaded already.
void cupti_start(thread_state* t);
// At exit: writes both counts of every name.
void cupti_finish();

} // namespace capturesan::shim
