// Copies. All forms become one CUDA_MEMCPY3D.
#include "sim/api.h"
#include "sim/memory.h"
#include "sim/work.h"

namespace capturesan::sim {
namespace {

bool in_device_region(CUdeviceptr address) {
  for (const auto& d : state().devices)
    if (d->heap.contains(address)) return true;
  return false;
}

bool valid_side(CUmemorytype type, copy_range range, bool captured) {
  if (range.bytes == 0) return true;
  if (type == CU_MEMORYTYPE_HOST) return range.start != 0;
  if (type != CU_MEMORYTYPE_DEVICE && type != CU_MEMORYTYPE_UNIFIED) return false; // arrays do not exist here
  if (captured ? state().memory.names(range.start, range.bytes) : state().memory.covers(range.start, range.bytes))
    return true;
  // Memory the driver does not know is the program's own, if only the general form of the call is used.
  return type == CU_MEMORYTYPE_UNIFIED && range.start != 0 && !in_device_region(range.start);
}

bool fits(std::size_t pitch, std::size_t start, const CUDA_MEMCPY3D& shape) {
  return pitch == 0 || shape.Height < 2 || start + shape.WidthInBytes <= pitch;
}

CUresult check(const CUDA_MEMCPY3D& shape, bool captured = false) {
  const bool valid = valid_side(shape.srcMemoryType, source_of(shape), captured) &&
                     valid_side(shape.dstMemoryType, target_of(shape), captured);
  return valid && fits(shape.srcPitch, shape.srcXInBytes, shape) && fits(shape.dstPitch, shape.dstXInBytes, shape)
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

CUresult copy_on(CUstream stream, const CUDA_MEMCPY3D& shape) {
  if (CUresult r = check(shape, stream->capture != nullptr)) return r;
  if (target_of(shape).bytes == 0) return CUDA_SUCCESS; // measured: nothing to do is no node
  return submit(stream, make_copy(shape, stream->context));
}

// The host waits, so a fault of earlier work shows here.
CUresult copy_now(const CUDA_MEMCPY3D& shape) {
  if (CUresult r = check(shape)) return r;
  if (CUresult r = settle(current_context())) return r;
  run_copy(shape);
  return CUDA_SUCCESS;
}

struct place {
  CUmemorytype type;
  CUdeviceptr address;
};
place on_device(CUdeviceptr address) { return {CU_MEMORYTYPE_DEVICE, address}; }
place anywhere(CUdeviceptr address) { return {CU_MEMORYTYPE_UNIFIED, address}; }
place on_host(const void* p) { return {CU_MEMORYTYPE_HOST, reinterpret_cast<CUdeviceptr>(p)}; }

CUDA_MEMCPY3D linear(place to, place from, std::size_t bytes) {
  CUDA_MEMCPY3D shape{};
  shape.srcMemoryType = from.type;
  shape.dstMemoryType = to.type;
  if (from.type == CU_MEMORYTYPE_HOST)
    shape.srcHost = reinterpret_cast<const void*>(from.address);
  else
    shape.srcDevice = from.address;
  if (to.type == CU_MEMORYTYPE_HOST)
    shape.dstHost = reinterpret_cast<void*>(to.address);
  else
    shape.dstDevice = to.address;
  shape.WidthInBytes = bytes;
  shape.Height = 1;
  shape.Depth = 1;
  return shape;
}

CUDA_MEMCPY3D widened(const CUDA_MEMCPY2D& flat) {
  CUDA_MEMCPY3D shape{};
  shape.srcXInBytes = flat.srcXInBytes, shape.srcY = flat.srcY;
  shape.srcMemoryType = flat.srcMemoryType, shape.srcHost = flat.srcHost, shape.srcDevice = flat.srcDevice;
  shape.srcArray = flat.srcArray, shape.srcPitch = flat.srcPitch;
  shape.dstXInBytes = flat.dstXInBytes, shape.dstY = flat.dstY;
  shape.dstMemoryType = flat.dstMemoryType, shape.dstHost = flat.dstHost, shape.dstDevice = flat.dstDevice;
  shape.dstArray = flat.dstArray, shape.dstPitch = flat.dstPitch;
  shape.WidthInBytes = flat.WidthInBytes, shape.Height = flat.Height, shape.Depth = 1;
  return shape;
}

CUDA_MEMCPY3D without_contexts(const CUDA_MEMCPY3D_PEER& peer) {
  CUDA_MEMCPY3D shape{};
  shape.srcXInBytes = peer.srcXInBytes, shape.srcY = peer.srcY, shape.srcZ = peer.srcZ;
  shape.srcMemoryType = peer.srcMemoryType, shape.srcHost = peer.srcHost, shape.srcDevice = peer.srcDevice;
  shape.srcArray = peer.srcArray, shape.srcPitch = peer.srcPitch, shape.srcHeight = peer.srcHeight;
  shape.dstXInBytes = peer.dstXInBytes, shape.dstY = peer.dstY, shape.dstZ = peer.dstZ;
  shape.dstMemoryType = peer.dstMemoryType, shape.dstHost = peer.dstHost, shape.dstDevice = peer.dstDevice;
  shape.dstArray = peer.dstArray, shape.dstPitch = peer.dstPitch, shape.dstHeight = peer.dstHeight;
  shape.WidthInBytes = peer.WidthInBytes, shape.Height = peer.Height, shape.Depth = peer.Depth;
  return shape;
}

CUresult copy_all(const CUdeviceptr* to, const CUdeviceptr* from, const std::size_t* bytes, std::size_t count,
                  CUstream stream) {
  if (!to || !from || !bytes || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i)
    if (CUresult r = check(linear(anywhere(to[i]), anywhere(from[i]), bytes[i]))) return r;
  for (std::size_t i = 0; i < count; ++i)
    if (CUresult r =
            execute_now(make_copy(linear(anywhere(to[i]), anywhere(from[i]), bytes[i]), stream->context), stream))
      return r;
  return CUDA_SUCCESS;
}

CUresult operand_of(const CUmemcpy3DOperand& operand, place& found, std::size_t& pitch, std::size_t& height) {
  if (operand.type != CU_MEMCPY_OPERAND_TYPE_POINTER) return CUDA_ERROR_NOT_SUPPORTED;
  found = anywhere(operand.op.ptr.ptr);
  pitch = operand.op.ptr.rowLength;
  height = operand.op.ptr.layerHeight;
  return CUDA_SUCCESS;
}

CUresult copy_all(const CUDA_MEMCPY3D_BATCH_OP* list, std::size_t count, CUstream stream) {
  if (!list || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    place from{}, to{};
    std::size_t from_pitch = 0, from_height = 0, to_pitch = 0, to_height = 0;
    if (CUresult r = operand_of(list[i].src, from, from_pitch, from_height)) return r;
    if (CUresult r = operand_of(list[i].dst, to, to_pitch, to_height)) return r;
    CUDA_MEMCPY3D shape = linear(to, from, list[i].extent.width);
    shape.Height = list[i].extent.height, shape.Depth = list[i].extent.depth;
    shape.srcPitch = from_pitch, shape.srcHeight = from_height, shape.dstPitch = to_pitch, shape.dstHeight = to_height;
    if (CUresult r = check(shape)) return r;
    if (CUresult r = execute_now(make_copy(shape, stream->context), stream)) return r;
  }
  return CUDA_SUCCESS;
}

} // namespace

namespace api {

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy_now(linear(anywhere(to), anywhere(from), bytes));
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return copy_now(linear(on_device(to), on_host(from), bytes));
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return copy_now(linear(on_host(to), on_device(from), bytes));
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy_now(linear(on_device(to), on_device(from), bytes));
}
CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes) {
  return copy_now(linear(on_device(to), on_device(from), bytes));
}
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* shape) {
  return shape ? copy_now(widened(*shape)) : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* shape) { return api::cuMemcpy2D_v2(shape); }
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* shape) { return shape ? copy_now(*shape) : CUDA_ERROR_INVALID_VALUE; }
CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* shape) {
  return shape ? copy_now(without_contexts(*shape)) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy_on(stream, linear(anywhere(to), anywhere(from), bytes));
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return copy_on(stream, linear(on_device(to), on_host(from), bytes));
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy_on(stream, linear(on_host(to), on_device(from), bytes));
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy_on(stream, linear(on_device(to), on_device(from), bytes));
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes, CUstream stream) {
  return copy_on(stream, linear(on_device(to), on_device(from), bytes));
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* shape, CUstream stream) {
  return shape ? copy_on(stream, widened(*shape)) : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* shape, CUstream stream) {
  return shape ? copy_on(stream, *shape) : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* shape, CUstream stream) {
  return shape ? copy_on(stream, without_contexts(*shape)) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count, CUmemcpyAttributes*,
                               size_t*, size_t, CUstream stream) {
  return copy_all(to, from, bytes, count, stream);
}
CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count, CUmemcpyAttributes*,
                            size_t*, size_t, size_t* failed, CUstream stream) {
  if (failed) *failed = static_cast<size_t>(-1);
  return copy_all(to, from, bytes, count, stream);
}
CUresult cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP* list, unsigned long long, CUstream stream) {
  return copy_all(list, count, stream);
}
CUresult cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP* list, size_t* failed, unsigned long long,
                              CUstream stream) {
  if (failed) *failed = static_cast<size_t>(-1);
  return copy_all(list, count, stream);
}

} // namespace api
} // namespace capturesan::sim
