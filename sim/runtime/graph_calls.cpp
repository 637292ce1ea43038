// Nodes whose parameters the runtime describes otherwise than the driver: kernels by host function, copies by kind.
#include "sim/runtime/api.h"
#include "sim/runtime/copy.h"
#include "sim/runtime/driver.h"
#include "sim/runtime/registry.h"
#include "sim/runtime/thread.h"

#include <cstring>

namespace capturesan::runtime {
namespace {

CUcontext current() {
  CUcontext context = nullptr;
  CU(cuCtxGetCurrent)(&context);
  return context;
}

template <class Given> // cudaKernelNodeParams, cudaKernelNodeParamsV2
cudaError_t as_driver_kernel(const Given& given, CUDA_KERNEL_NODE_PARAMS_v2* params) {
  *params = CUDA_KERNEL_NODE_PARAMS_v2{};
  if (cudaError_t e = kernel_of(given.func, &params->kern)) return e;
  params->gridDimX = given.gridDim.x, params->gridDimY = given.gridDim.y, params->gridDimZ = given.gridDim.z;
  params->blockDimX = given.blockDim.x, params->blockDimY = given.blockDim.y, params->blockDimZ = given.blockDim.z;
  params->sharedMemBytes = given.sharedMemBytes;
  params->kernelParams = given.kernelParams;
  params->extra = given.extra;
  return cudaSuccess;
}

cudaError_t symbol_copy(const void* symbol, std::size_t offset, std::size_t bytes, void** at) {
  variable_place place;
  if (cudaError_t e = variable_of(symbol, &place)) return e;
  if (offset > place.bytes || bytes > place.bytes - offset) return cudaErrorInvalidValue;
  *at = reinterpret_cast<void*>(place.address + offset);
  return cudaSuccess;
}

// The general form; only kernels and copies differ.
cudaError_t as_driver_node(const cudaGraphNodeParams& given, CUgraphNodeParams* params) {
  static_assert(sizeof given == sizeof *params);
  std::memcpy(static_cast<void*>(params), &given, sizeof given);
  if (given.type == cudaGraphNodeTypeKernel) {
    CUDA_KERNEL_NODE_PARAMS_v2 kernel;
    if (cudaError_t e = as_driver_kernel(given.kernel, &kernel)) return e;
    params->kernel = CUDA_KERNEL_NODE_PARAMS_v3{};
    params->kernel.kern = kernel.kern;
    params->kernel.gridDimX = kernel.gridDimX, params->kernel.gridDimY = kernel.gridDimY;
    params->kernel.gridDimZ = kernel.gridDimZ;
    params->kernel.blockDimX = kernel.blockDimX, params->kernel.blockDimY = kernel.blockDimY;
    params->kernel.blockDimZ = kernel.blockDimZ;
    params->kernel.sharedMemBytes = kernel.sharedMemBytes;
    params->kernel.kernelParams = kernel.kernelParams;
    params->kernel.extra = kernel.extra;
  } else if (given.type == cudaGraphNodeTypeMemcpy) {
    params->memcpy = CUDA_MEMCPY_NODE_PARAMS{};
    params->memcpy.copyCtx = current();
    if (cudaError_t e = as_driver_copy(given.memcpy.copyParams, &params->memcpy.copyParams)) return e;
  } else if (given.type == cudaGraphNodeTypeMemset) {
    params->memset.ctx = current();
  } else if (given.type == cudaGraphNodeTypeConditional) {
    params->conditional.ctx = current();
  }
  return cudaSuccess;
}

// What the driver stores for the caller.
void give_back(const CUgraphNodeParams& params, cudaGraphNodeParams* given) {
  if (given->type == cudaGraphNodeTypeMemAlloc)
    given->alloc.dptr = reinterpret_cast<void*>(params.alloc.dptr);
  else if (given->type == cudaGraphNodeTypeConditional)
    given->conditional.phGraph_out = params.conditional.phGraph_out;
}

} // namespace

namespace api {

cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                             const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* given) {
  if (!given) return cudaErrorInvalidValue;
  CUgraphNodeParams params;
  if (cudaError_t e = as_driver_node(*given, &params)) return e;
  const CUresult r =
      CU(cuGraphAddNode_v2)(node, graph, after, reinterpret_cast<const CUgraphEdgeData*>(edges), count, &params);
  if (r == CUDA_SUCCESS) give_back(params, given);
  return from_driver(r);
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* given) {
  if (!given) return cudaErrorInvalidValue;
  CUgraphNodeParams params;
  if (cudaError_t e = as_driver_node(*given, &params)) return e;
  return from_driver(CU(cuGraphNodeSetParams)(node, &params));
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraphNodeParams* given) {
  if (!given) return cudaErrorInvalidValue;
  CUgraphNodeParams params;
  if (cudaError_t e = as_driver_node(*given, &params)) return e;
  return from_driver(CU(cuGraphExecNodeSetParams)(exec, node, &params));
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph, unsigned value,
                                             unsigned flags) {
  return from_driver(CU(cuGraphConditionalHandleCreate)(reinterpret_cast<CUgraphConditionalHandle*>(handle), graph,
                                                        current(), value, flags));
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                   const cudaKernelNodeParams* given) {
  if (!given) return cudaErrorInvalidValue;
  CUDA_KERNEL_NODE_PARAMS_v2 params;
  if (cudaError_t e = as_driver_kernel(*given, &params)) return e;
  return from_driver(CU(cuGraphAddKernelNode_v2)(node, graph, after, count, &params));
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* result) {
  if (!result) return cudaErrorInvalidValue;
  CUDA_KERNEL_NODE_PARAMS_v2 params{};
  if (CUresult r = CU(cuGraphKernelNodeGetParams_v2)(node, &params)) return from_driver(r);
  result->func = const_cast<void*>(host_function_of(params.func, params.kern));
  result->gridDim = dim3(params.gridDimX, params.gridDimY, params.gridDimZ);
  result->blockDim = dim3(params.blockDimX, params.blockDimY, params.blockDimZ);
  result->sharedMemBytes = params.sharedMemBytes;
  result->kernelParams = params.kernelParams;
  result->extra = params.extra;
  return cudaSuccess;
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* given) {
  if (!given) return cudaErrorInvalidValue;
  CUDA_KERNEL_NODE_PARAMS_v2 params;
  if (cudaError_t e = as_driver_kernel(*given, &params)) return e;
  return from_driver(CU(cuGraphKernelNodeSetParams_v2)(node, &params));
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* given) {
  if (!given) return cudaErrorInvalidValue;
  CUDA_KERNEL_NODE_PARAMS_v2 params;
  if (cudaError_t e = as_driver_kernel(*given, &params)) return e;
  return from_driver(CU(cuGraphExecKernelNodeSetParams_v2)(exec, node, &params));
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                   const cudaMemcpy3DParms* given) {
  if (!given) return cudaErrorInvalidValue;
  CUDA_MEMCPY3D copy;
  if (cudaError_t e = as_driver_copy(*given, &copy)) return e;
  return from_driver(CU(cuGraphAddMemcpyNode)(node, graph, after, count, &copy, current()));
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                     size_t count, void* target, const void* source, size_t bytes,
                                     cudaMemcpyKind kind) {
  const cudaMemcpy3DParms p = row(target, source, bytes, kind);
  return api::cudaGraphAddMemcpyNode(node, graph, after, count, &p);
}

cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                           size_t count, const void* symbol, const void* source, size_t bytes,
                                           size_t offset, cudaMemcpyKind kind) {
  void* at = nullptr;
  if (cudaError_t e = symbol_copy(symbol, offset, bytes, &at)) return e;
  return api::cudaGraphAddMemcpyNode1D(node, graph, after, count, at, source, bytes, kind);
}

cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                             size_t count, void* target, const void* symbol, size_t bytes,
                                             size_t offset, cudaMemcpyKind kind) {
  void* at = nullptr;
  if (cudaError_t e = symbol_copy(symbol, offset, bytes, &at)) return e;
  return api::cudaGraphAddMemcpyNode1D(node, graph, after, count, target, at, bytes, kind);
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* result) {
  if (!result) return cudaErrorInvalidValue;
  CUDA_MEMCPY3D copy{};
  if (CUresult r = CU(cuGraphMemcpyNodeGetParams)(node, &copy)) return from_driver(r);
  *result = as_runtime_copy(copy);
  return cudaSuccess;
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* given) {
  if (!given) return cudaErrorInvalidValue;
  CUDA_MEMCPY3D copy;
  if (cudaError_t e = as_driver_copy(*given, &copy)) return e;
  return from_driver(CU(cuGraphMemcpyNodeSetParams)(node, &copy));
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* target, const void* source, size_t bytes,
                                           cudaMemcpyKind kind) {
  const cudaMemcpy3DParms p = row(target, source, bytes, kind);
  return api::cudaGraphMemcpyNodeSetParams(node, &p);
}

cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void* symbol, const void* source,
                                                 size_t bytes, size_t offset, cudaMemcpyKind kind) {
  void* at = nullptr;
  if (cudaError_t e = symbol_copy(symbol, offset, bytes, &at)) return e;
  return api::cudaGraphMemcpyNodeSetParams1D(node, at, source, bytes, kind);
}

cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void* target, const void* symbol, size_t bytes,
                                                   size_t offset, cudaMemcpyKind kind) {
  void* at = nullptr;
  if (cudaError_t e = symbol_copy(symbol, offset, bytes, &at)) return e;
  return api::cudaGraphMemcpyNodeSetParams1D(node, target, at, bytes, kind);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* given) {
  if (!given) return cudaErrorInvalidValue;
  CUDA_MEMCPY3D copy;
  if (cudaError_t e = as_driver_copy(*given, &copy)) return e;
  return from_driver(CU(cuGraphExecMemcpyNodeSetParams)(exec, node, &copy, current()));
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* target,
                                               const void* source, size_t bytes, cudaMemcpyKind kind) {
  const cudaMemcpy3DParms p = row(target, source, bytes, kind);
  return api::cudaGraphExecMemcpyNodeSetParams(exec, node, &p);
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, const void* symbol,
                                                     const void* source, size_t bytes, size_t offset,
                                                     cudaMemcpyKind kind) {
  void* at = nullptr;
  if (cudaError_t e = symbol_copy(symbol, offset, bytes, &at)) return e;
  return api::cudaGraphExecMemcpyNodeSetParams1D(exec, node, at, source, bytes, kind);
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, void* target,
                                                       const void* symbol, size_t bytes, size_t offset,
                                                       cudaMemcpyKind kind) {
  void* at = nullptr;
  if (cudaError_t e = symbol_copy(symbol, offset, bytes, &at)) return e;
  return api::cudaGraphExecMemcpyNodeSetParams1D(exec, node, target, at, bytes, kind);
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                   const cudaMemsetParams* given) {
  return from_driver(CU(cuGraphAddMemsetNode)(node, graph, after, count,
                                              reinterpret_cast<const CUDA_MEMSET_NODE_PARAMS*>(given), current()));
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemsetParams* given) {
  return from_driver(CU(cuGraphExecMemsetNodeSetParams)(
      exec, node, reinterpret_cast<const CUDA_MEMSET_NODE_PARAMS*>(given), current()));
}

} // namespace api
} // namespace capturesan::runtime
