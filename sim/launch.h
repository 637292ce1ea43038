// Kernel launches and kernel node parameters: checked, and the values copied.
#pragma once

#include "sim/state.h"

namespace capturesan::sim {

// A launch as the program describes it. `function` may be a kernel; `context` is the one of the stream or node.
CUresult make_kernel_call(const CUDA_KERNEL_NODE_PARAMS& described, CUcontext context, kernel_call& made);

// The description back, with pointers into the call's own storage.
CUDA_KERNEL_NODE_PARAMS describe(const kernel_call& call);

} // namespace capturesan::sim
