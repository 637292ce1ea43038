// The bodies of the runtime functions that are more than one driver call, declared from runtime.def with the vendor's
// types.
#pragma once

#include "sim/runtime/cuda_runtime.h"

namespace capturesan::runtime::api {

#define ONE(function, ...)
#define ONE_PTSZ(function, ...)
#define ONE_PTDS(function, ...)
#define OWN(function, ...) decltype(::function) function;
#define OWN_PTSZ(function, ...) decltype(::function) function;
#define OWN_PTDS(function, ...) decltype(::function) function;
#define LACKS(function, ...)
#define LACKS_PTSZ(function, ...)
#define LACKS_PTDS(function, ...)
#include "sim/runtime/runtime.def"

// Structures that are passed on as they are.
static_assert(sizeof(cudaMemLocation) == sizeof(CUmemLocation));
static_assert(sizeof(cudaMemPoolProps) == sizeof(CUmemPoolProps));
static_assert(sizeof(cudaMemAccessDesc) == sizeof(CUmemAccessDesc));
static_assert(sizeof(cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS));
static_assert(sizeof(cudaMemsetParams) == sizeof(CUDA_MEMSET_NODE_PARAMS_v1));
static_assert(sizeof(cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS_v1));
static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData));
static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS));
static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo));
static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(sizeof(cudaMemcpyAttributes) == sizeof(CUmemcpyAttributes));
static_assert(sizeof(cudaMemcpy3DBatchOp) == sizeof(CUDA_MEMCPY3D_BATCH_OP));
static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle));
static_assert(sizeof(cudaGraphNodeParams) == sizeof(CUgraphNodeParams));

} // namespace capturesan::runtime::api
