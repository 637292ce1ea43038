// Node parameters as the program gives them, and as work.
#pragma once

#include "sim/objects.h"

namespace capturesan::sim {

CUresult make_work(const CUDA_KERNEL_NODE_PARAMS& params, CUcontext context, operation& work);
CUresult make_work(const CUDA_KERNEL_NODE_PARAMS_v1& params, CUcontext context, operation& work);
CUresult make_work(const CUDA_MEMCPY3D& params, CUcontext context, operation& work);
CUresult make_work(const CUDA_MEMSET_NODE_PARAMS& params, CUcontext context, operation& work);
CUresult make_work(const CUDA_HOST_NODE_PARAMS& params, CUcontext context, operation& work);
CUresult make_work(const CUDA_BATCH_MEM_OP_NODE_PARAMS& params, CUcontext context, operation& work);
// The general form; for what is not exchanged but made (memory, child graphs, conditionals) see node_calls.cpp.
CUresult make_work(const CUgraphNodeParams& params, CUcontext context, operation& work);

CUcontext context_of(const operation& work);

} // namespace capturesan::sim
