// Memory sets, and the memory operations of a stream.
#include "sim/api.h"
#include "sim/memory.h"
#include "sim/work.h"

#include <algorithm>

namespace capturesan::sim {
namespace {

CUDA_MEMSET_NODE_PARAMS fill(CUdeviceptr to, std::size_t pitch, unsigned value, unsigned element, std::size_t width,
                             std::size_t height) {
  return {to, height == 1 ? 0 : pitch, value, element, width, height};
}

// Measured: the host cannot set memory of a device that the current context has no access to.
bool is_reachable(CUdeviceptr address) {
  const allocation* a = state().memory.find(address);
  const CUcontext own = current_context();
  if (!a || !own || a->kind != memory_kind::device || a->device == own->device->ordinal) return true;
  return std::find(own->peers.begin(), own->peers.end(), a->context) != own->peers.end();
}

bool is_aligned(const CUDA_MEMSET_NODE_PARAMS& shape) { return shape.dst % shape.elementSize == 0; }

CUresult check(const CUDA_MEMSET_NODE_PARAMS& shape) {
  const auto range = target_of(shape);
  if (!is_aligned(shape) || !is_reachable(shape.dst)) return CUDA_ERROR_INVALID_VALUE;
  return range.bytes == 0 || state().memory.covers(range.start, range.bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult fill_on(CUstream stream, const CUDA_MEMSET_NODE_PARAMS& shape) {
  // Measured: a capture takes any target, and instantiation looks at it; nothing to do is no node.
  if (CUresult r = stream->capture && is_aligned(shape) ? CUDA_SUCCESS : check(shape)) return r;
  if (target_of(shape).bytes == 0) return CUDA_SUCCESS;
  return submit(stream, fill_call{shape, stream->context});
}

CUresult fill_now(const CUDA_MEMSET_NODE_PARAMS& shape) {
  if (CUresult r = check(shape)) return r;
  if (CUresult r = settle(current_context())) return r;
  run_fill(shape);
  return CUDA_SUCCESS;
}

CUresult operate(CUstream stream, const CUstreamBatchMemOpParams* list, unsigned count, unsigned flags) {
  if (!list || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    const bool touches = list[i].operation <= CU_STREAM_MEM_OP_WRITE_VALUE_64 &&
                         list[i].operation != CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
    if (touches && !state().memory.names(list[i].waitValue.address, 4)) return CUDA_ERROR_INVALID_VALUE;
  }
  memory_ops ops;
  ops.list.assign(list, list + count);
  ops.context = stream->context;
  ops.flags = flags;
  return submit(stream, std::move(ops));
}

CUresult write_value(CUstream stream, CUstreamBatchMemOpType type, CUdeviceptr address, cuuint64_t value,
                     unsigned flags) {
  CUstreamBatchMemOpParams op{};
  op.writeValue.operation = type;
  op.writeValue.address = address;
  op.writeValue.value64 = value;
  op.writeValue.flags = flags;
  return operate(stream, &op, 1, 0);
}

CUresult wait_value(CUstream stream, CUstreamBatchMemOpType type, CUdeviceptr address, cuuint64_t value,
                    unsigned flags) {
  CUstreamBatchMemOpParams op{};
  op.waitValue.operation = type;
  op.waitValue.address = address;
  op.waitValue.value64 = value;
  op.waitValue.flags = flags;
  return operate(stream, &op, 1, 0);
}

} // namespace

namespace api {

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char v, size_t n) { return fill_now(fill(to, 0, v, 1, n, 1)); }
CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short v, size_t n) { return fill_now(fill(to, 0, v, 2, n, 1)); }
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned v, size_t n) { return fill_now(fill(to, 0, v, 4, n, 1)); }
CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char v, size_t w, size_t h) {
  return fill_now(fill(to, pitch, v, 1, w, h));
}
CUresult cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short v, size_t w, size_t h) {
  return fill_now(fill(to, pitch, v, 2, w, h));
}
CUresult cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned v, size_t w, size_t h) {
  return fill_now(fill(to, pitch, v, 4, w, h));
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char v, size_t n, CUstream s) {
  return fill_on(s, fill(to, 0, v, 1, n, 1));
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short v, size_t n, CUstream s) {
  return fill_on(s, fill(to, 0, v, 2, n, 1));
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned v, size_t n, CUstream s) {
  return fill_on(s, fill(to, 0, v, 4, n, 1));
}
CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char v, size_t w, size_t h, CUstream s) {
  return fill_on(s, fill(to, pitch, v, 1, w, h));
}
CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short v, size_t w, size_t h, CUstream s) {
  return fill_on(s, fill(to, pitch, v, 2, w, h));
}
CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned v, size_t w, size_t h, CUstream s) {
  return fill_on(s, fill(to, pitch, v, 4, w, h));
}

CUresult cuStreamWriteValue32_v2(CUstream s, CUdeviceptr at, cuuint32_t v, unsigned flags) {
  return write_value(s, CU_STREAM_MEM_OP_WRITE_VALUE_32, at, v, flags);
}
CUresult cuStreamWriteValue64_v2(CUstream s, CUdeviceptr at, cuuint64_t v, unsigned flags) {
  return write_value(s, CU_STREAM_MEM_OP_WRITE_VALUE_64, at, v, flags);
}
CUresult cuStreamWaitValue32_v2(CUstream s, CUdeviceptr at, cuuint32_t v, unsigned flags) {
  return wait_value(s, CU_STREAM_MEM_OP_WAIT_VALUE_32, at, v, flags);
}
CUresult cuStreamWaitValue64_v2(CUstream s, CUdeviceptr at, cuuint64_t v, unsigned flags) {
  return wait_value(s, CU_STREAM_MEM_OP_WAIT_VALUE_64, at, v, flags);
}
CUresult cuStreamWriteValue32(CUstream s, CUdeviceptr at, cuuint32_t v, unsigned flags) {
  return api::cuStreamWriteValue32_v2(s, at, v, flags);
}
CUresult cuStreamWriteValue64(CUstream s, CUdeviceptr at, cuuint64_t v, unsigned flags) {
  return api::cuStreamWriteValue64_v2(s, at, v, flags);
}
CUresult cuStreamWaitValue32(CUstream s, CUdeviceptr at, cuuint32_t v, unsigned flags) {
  return api::cuStreamWaitValue32_v2(s, at, v, flags);
}
CUresult cuStreamWaitValue64(CUstream s, CUdeviceptr at, cuuint64_t v, unsigned flags) {
  return api::cuStreamWaitValue64_v2(s, at, v, flags);
}
CUresult cuStreamBatchMemOp_v2(CUstream s, unsigned count, CUstreamBatchMemOpParams* list, unsigned flags) {
  return operate(s, list, count, flags);
}
CUresult cuStreamBatchMemOp(CUstream s, unsigned count, CUstreamBatchMemOpParams* list, unsigned flags) {
  return operate(s, list, count, flags);
}

} // namespace api
} // namespace capturesan::sim
