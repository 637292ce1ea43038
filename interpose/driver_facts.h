// What reports say about the driver itself: kind, version, device, and what a simulated one lacks.
#pragma once

#include "interpose/state.h"

namespace capturesan::shim {

// After a successful cuInit: fills the header fields that only a started driver can.
void describe_driver();

// At exit: the calls that the simulated driver had to refuse because it lacks them, so that the report can name them.
void write_unsupported_calls();

} // namespace capturesan::shim
