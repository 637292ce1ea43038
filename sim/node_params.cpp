#include "sim/node_params.h"

#include "sim/launch.h"
#include "sim/state.h"
#include "sim/work.h"

#include <type_traits>

namespace capturesan::sim {
namespace {

CUcontext or_current(CUcontext context) { return context ? context : current_context(); }

} // namespace

CUresult make_work(const CUDA_KERNEL_NODE_PARAMS& params, CUcontext context, operation& work) {
  if (is_live(params.func))
    context = params.func->module->context;
  else if (params.ctx)
    context = params.ctx;
  kernel_call call;
  if (CUresult r = make_kernel_call(params, or_current(context), call)) return r;
  if (const auto* old = std::get_if<kernel_call>(&work)) call.attributes = old->attributes;
  work = std::move(call);
  return CUDA_SUCCESS;
}

CUresult make_work(const CUDA_KERNEL_NODE_PARAMS_v1& params, CUcontext context, operation& work) {
  CUDA_KERNEL_NODE_PARAMS wide{};
  wide.func = params.func;
  wide.gridDimX = params.gridDimX, wide.gridDimY = params.gridDimY, wide.gridDimZ = params.gridDimZ;
  wide.blockDimX = params.blockDimX, wide.blockDimY = params.blockDimY, wide.blockDimZ = params.blockDimZ;
  wide.sharedMemBytes = params.sharedMemBytes;
  wide.kernelParams = params.kernelParams;
  wide.extra = params.extra;
  return make_work(wide, context, work);
}

CUresult make_work(const CUDA_MEMCPY3D& params, CUcontext context, operation& work) {
  const bool empty = params.WidthInBytes == 0 || params.Height == 0 || params.Depth == 0;
  if (empty || !source_of(params).start || !target_of(params).start) return CUDA_ERROR_INVALID_VALUE;
  work = make_copy(params, or_current(context));
  return CUDA_SUCCESS;
}

CUresult make_work(const CUDA_MEMSET_NODE_PARAMS& params, CUcontext context, operation& work) {
  const auto element = params.elementSize;
  if ((element != 1 && element != 2 && element != 4) || !params.dst || !params.width || !params.height)
    return CUDA_ERROR_INVALID_VALUE;
  work = fill_call{params, or_current(context)};
  return CUDA_SUCCESS;
}

CUresult make_work(const CUDA_HOST_NODE_PARAMS& params, CUcontext, operation& work) {
  if (!params.fn) return CUDA_ERROR_INVALID_VALUE;
  work = host_call{params.fn, params.userData};
  return CUDA_SUCCESS;
}

CUresult make_work(const CUDA_BATCH_MEM_OP_NODE_PARAMS& params, CUcontext, operation& work) {
  if (!params.paramArray || params.count == 0) return CUDA_ERROR_INVALID_VALUE;
  memory_ops ops;
  ops.list.assign(params.paramArray, params.paramArray + params.count);
  ops.context = or_current(params.ctx);
  ops.flags = params.flags;
  work = std::move(ops);
  return CUDA_SUCCESS;
}

CUresult make_work(const CUgraphNodeParams& params, CUcontext context, operation& work) {
  switch (params.type) {
  case CU_GRAPH_NODE_TYPE_KERNEL: {
    CUDA_KERNEL_NODE_PARAMS kernel{};
    static_assert(sizeof kernel == sizeof params.kernel);
    kernel.func = params.kernel.func, kernel.kern = params.kernel.kern, kernel.ctx = params.kernel.ctx;
    kernel.gridDimX = params.kernel.gridDimX, kernel.gridDimY = params.kernel.gridDimY,
    kernel.gridDimZ = params.kernel.gridDimZ;
    kernel.blockDimX = params.kernel.blockDimX, kernel.blockDimY = params.kernel.blockDimY,
    kernel.blockDimZ = params.kernel.blockDimZ;
    kernel.sharedMemBytes = params.kernel.sharedMemBytes;
    kernel.kernelParams = params.kernel.kernelParams, kernel.extra = params.kernel.extra;
    return make_work(kernel, context, work);
  }
  case CU_GRAPH_NODE_TYPE_MEMCPY:
    return make_work(params.memcpy.copyParams, params.memcpy.copyCtx, work);
  case CU_GRAPH_NODE_TYPE_MEMSET: {
    const auto& m = params.memset;
    return make_work(CUDA_MEMSET_NODE_PARAMS{m.dst, m.pitch, m.value, m.elementSize, m.width, m.height}, m.ctx, work);
  }
  case CU_GRAPH_NODE_TYPE_HOST:
    return make_work(CUDA_HOST_NODE_PARAMS{params.host.fn, params.host.userData}, context, work);
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    if (!is_live(params.eventRecord.event)) return CUDA_ERROR_INVALID_VALUE;
    work = record_call{params.eventRecord.event};
    return CUDA_SUCCESS;
  case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    if (!is_live(params.eventWait.event)) return CUDA_ERROR_INVALID_VALUE;
    work = wait_call{params.eventWait.event};
    return CUDA_SUCCESS;
  case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
    const auto& m = params.memOp;
    return make_work(CUDA_BATCH_MEM_OP_NODE_PARAMS{m.ctx, m.count, m.paramArray, m.flags}, context, work);
  }
  case CU_GRAPH_NODE_TYPE_EMPTY:
    work = empty_call{};
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUcontext context_of(const operation& work) {
  return std::visit(
      [](const auto& call) -> CUcontext {
        if constexpr (requires { call.context; })
          return call.context;
        else
          return nullptr;
      },
      work);
}

} // namespace capturesan::sim
