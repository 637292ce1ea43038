#include "sim/runtime/api.h"
#include "sim/runtime/copy.h"
#include "sim/runtime/driver.h"
#include "sim/runtime/registry.h"
#include "sim/runtime/thread.h"

#include <cstring>

namespace capturesan::runtime {
namespace {

CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

CUmemorytype source_type(cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
  return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

CUmemorytype target_type(cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
  return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

// The runtime names device and host memory by one pointer, the driver by two members.
void name_source(CUDA_MEMCPY3D& copy, CUmemorytype type, const void* pointer) {
  copy.srcMemoryType = type;
  if (type == CU_MEMORYTYPE_HOST)
    copy.srcHost = pointer;
  else
    copy.srcDevice = address(pointer);
}
void name_target(CUDA_MEMCPY3D& copy, CUmemorytype type, void* pointer) {
  copy.dstMemoryType = type;
  if (type == CU_MEMORYTYPE_HOST)
    copy.dstHost = pointer;
  else
    copy.dstDevice = address(pointer);
}

cudaMemcpy3DParms rows(void* target, std::size_t target_pitch, const void* source, std::size_t source_pitch,
                       std::size_t width, std::size_t height, cudaMemcpyKind kind) {
  cudaMemcpy3DParms p{};
  p.srcPtr = {const_cast<void*>(source), source_pitch, width, height};
  p.dstPtr = {target, target_pitch, width, height};
  p.extent = {width, height, 1};
  p.kind = kind;
  return p;
}

cudaError_t copy_now(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind) {
  if (cudaError_t e = check_kind(kind)) return e;
  if (bytes == 0) return cudaSuccess;
  switch (kind) {
  case cudaMemcpyHostToDevice:
    return from_driver(CU_PTDS(cuMemcpyHtoD_v2)(address(target), source, bytes));
  case cudaMemcpyDeviceToHost:
    return from_driver(CU_PTDS(cuMemcpyDtoH_v2)(target, address(source), bytes));
  case cudaMemcpyDeviceToDevice:
    return from_driver(CU_PTDS(cuMemcpyDtoD_v2)(address(target), address(source), bytes));
  default:
    return from_driver(CU_PTDS(cuMemcpy)(address(target), address(source), bytes));
  }
}

cudaError_t copy_later(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (cudaError_t e = check_kind(kind)) return e;
  if (bytes == 0) return cudaSuccess;
  switch (kind) {
  case cudaMemcpyHostToDevice:
    return from_driver(CU_PTSZ(cuMemcpyHtoDAsync_v2)(address(target), source, bytes, stream));
  case cudaMemcpyDeviceToHost:
    return from_driver(CU_PTSZ(cuMemcpyDtoHAsync_v2)(target, address(source), bytes, stream));
  case cudaMemcpyDeviceToDevice:
    return from_driver(CU_PTSZ(cuMemcpyDtoDAsync_v2)(address(target), address(source), bytes, stream));
  default:
    return from_driver(CU_PTSZ(cuMemcpyAsync)(address(target), address(source), bytes, stream));
  }
}

CUDA_MEMCPY2D flat(const CUDA_MEMCPY3D& copy) {
  CUDA_MEMCPY2D p{};
  p.srcMemoryType = copy.srcMemoryType, p.srcHost = copy.srcHost, p.srcDevice = copy.srcDevice;
  p.srcPitch = copy.srcPitch;
  p.dstMemoryType = copy.dstMemoryType, p.dstHost = copy.dstHost, p.dstDevice = copy.dstDevice;
  p.dstPitch = copy.dstPitch;
  p.WidthInBytes = copy.WidthInBytes;
  p.Height = copy.Height;
  return p;
}

cudaError_t rows_as_driver(const cudaMemcpy3DParms& given, CUDA_MEMCPY3D* copy) {
  if (given.extent.width > given.srcPtr.pitch || given.extent.width > given.dstPtr.pitch)
    return cudaErrorInvalidPitchValue;
  return as_driver_copy(given, copy);
}

// Between two devices. There is one address space, so that only the primary contexts matter.
cudaError_t peer_copy(const cudaMemcpy3DPeerParms& given, CUDA_MEMCPY3D_PEER* peer) {
  cudaMemcpy3DParms p{};
  p.srcArray = given.srcArray, p.srcPos = given.srcPos, p.srcPtr = given.srcPtr;
  p.dstArray = given.dstArray, p.dstPos = given.dstPos, p.dstPtr = given.dstPtr;
  p.extent = given.extent;
  p.kind = cudaMemcpyDeviceToDevice;
  CUDA_MEMCPY3D c{};
  if (cudaError_t e = as_driver_copy(p, &c)) return e;
  *peer = CUDA_MEMCPY3D_PEER{};
  peer->srcXInBytes = c.srcXInBytes, peer->srcY = c.srcY, peer->srcZ = c.srcZ;
  peer->srcMemoryType = c.srcMemoryType, peer->srcDevice = c.srcDevice;
  peer->srcPitch = c.srcPitch, peer->srcHeight = c.srcHeight;
  peer->dstXInBytes = c.dstXInBytes, peer->dstY = c.dstY, peer->dstZ = c.dstZ;
  peer->dstMemoryType = c.dstMemoryType, peer->dstDevice = c.dstDevice;
  peer->dstPitch = c.dstPitch, peer->dstHeight = c.dstHeight;
  peer->WidthInBytes = c.WidthInBytes, peer->Height = c.Height, peer->Depth = c.Depth;
  if (cudaError_t e = primary_context(given.srcDevice, &peer->srcContext)) return e;
  return primary_context(given.dstDevice, &peer->dstContext);
}

// Where in a variable, if it is that large.
cudaError_t inside(const void* symbol, std::size_t offset, std::size_t bytes, void** at) {
  variable_place place;
  if (cudaError_t e = variable_of(symbol, &place)) return e;
  if (offset > place.bytes || bytes > place.bytes - offset) return cudaErrorInvalidValue;
  *at = reinterpret_cast<void*>(place.address + offset);
  return cudaSuccess;
}

bool writes_device(cudaMemcpyKind kind) {
  return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}
bool reads_device(cudaMemcpyKind kind) {
  return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}

} // namespace

cudaError_t check_kind(cudaMemcpyKind kind) {
  return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault ? cudaSuccess : cudaErrorInvalidMemcpyDirection;
}

cudaMemcpy3DParms row(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind) {
  return rows(target, bytes, source, bytes, bytes, 1, kind);
}

cudaError_t as_driver_copy(const cudaMemcpy3DParms& given, CUDA_MEMCPY3D* copy) {
  if (cudaError_t e = check_kind(given.kind)) return e;
  *copy = CUDA_MEMCPY3D{};
  if (given.srcArray || given.dstArray) { // none can have been made
    note_lacking("cuArrayCreate_v2");
    return cudaErrorNotSupported;
  }
  copy->srcXInBytes = given.srcPos.x, copy->srcY = given.srcPos.y, copy->srcZ = given.srcPos.z;
  copy->dstXInBytes = given.dstPos.x, copy->dstY = given.dstPos.y, copy->dstZ = given.dstPos.z;
  name_source(*copy, source_type(given.kind), given.srcPtr.ptr);
  name_target(*copy, target_type(given.kind), given.dstPtr.ptr);
  copy->srcPitch = given.srcPtr.pitch, copy->srcHeight = given.srcPtr.ysize;
  copy->dstPitch = given.dstPtr.pitch, copy->dstHeight = given.dstPtr.ysize;
  copy->WidthInBytes = given.extent.width, copy->Height = given.extent.height, copy->Depth = given.extent.depth;
  return cudaSuccess;
}

cudaMemcpy3DParms as_runtime_copy(const CUDA_MEMCPY3D& copy) {
  cudaMemcpy3DParms p{};
  const bool from_host = copy.srcMemoryType == CU_MEMORYTYPE_HOST, to_host = copy.dstMemoryType == CU_MEMORYTYPE_HOST;
  p.srcPos = {copy.srcXInBytes, copy.srcY, copy.srcZ};
  p.dstPos = {copy.dstXInBytes, copy.dstY, copy.dstZ};
  p.srcPtr = {from_host ? const_cast<void*>(copy.srcHost) : reinterpret_cast<void*>(copy.srcDevice), copy.srcPitch,
              copy.WidthInBytes, copy.srcHeight};
  p.dstPtr = {to_host ? copy.dstHost : reinterpret_cast<void*>(copy.dstDevice), copy.dstPitch, copy.WidthInBytes,
              copy.dstHeight};
  p.extent = {copy.WidthInBytes, copy.Height, copy.Depth};
  if (copy.srcMemoryType == CU_MEMORYTYPE_UNIFIED || copy.dstMemoryType == CU_MEMORYTYPE_UNIFIED)
    p.kind = cudaMemcpyDefault;
  else if (from_host)
    p.kind = to_host ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
  else
    p.kind = to_host ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
  return p;
}

namespace api {

cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  return copy_now(target, source, bytes, kind);
}

cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_later(target, source, bytes, kind, stream);
}

cudaError_t cudaMemcpy2D(void* target, size_t target_pitch, const void* source, size_t source_pitch, size_t width,
                         size_t height, cudaMemcpyKind kind) {
  if (width == 0 || height == 0) return cudaSuccess;
  CUDA_MEMCPY3D copy;
  if (cudaError_t e = rows_as_driver(rows(target, target_pitch, source, source_pitch, width, height, kind), &copy))
    return e;
  const CUDA_MEMCPY2D p = flat(copy);
  return from_driver(CU_PTDS(cuMemcpy2DUnaligned_v2)(&p));
}

cudaError_t cudaMemcpy2DAsync(void* target, size_t target_pitch, const void* source, size_t source_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  if (width == 0 || height == 0) return cudaSuccess;
  CUDA_MEMCPY3D copy;
  if (cudaError_t e = rows_as_driver(rows(target, target_pitch, source, source_pitch, width, height, kind), &copy))
    return e;
  const CUDA_MEMCPY2D p = flat(copy);
  return from_driver(CU_PTSZ(cuMemcpy2DAsync_v2)(&p, stream));
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* given) {
  if (!given) return cudaErrorInvalidValue;
  CUDA_MEMCPY3D copy;
  if (cudaError_t e = as_driver_copy(*given, &copy)) return e;
  return from_driver(CU_PTDS(cuMemcpy3D_v2)(&copy));
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* given, cudaStream_t stream) {
  if (!given) return cudaErrorInvalidValue;
  CUDA_MEMCPY3D copy;
  if (cudaError_t e = as_driver_copy(*given, &copy)) return e;
  return from_driver(CU_PTSZ(cuMemcpy3DAsync_v2)(&copy, stream));
}

cudaError_t cudaMemcpyPeer(void* target, int target_device, const void* source, int source_device, size_t bytes) {
  CUcontext to = nullptr, from = nullptr;
  if (cudaError_t e = primary_context(target_device, &to)) return e;
  if (cudaError_t e = primary_context(source_device, &from)) return e;
  return from_driver(CU(cuMemcpyPeer)(address(target), to, address(source), from, bytes));
}

cudaError_t cudaMemcpyPeerAsync(void* target, int target_device, const void* source, int source_device, size_t bytes,
                                cudaStream_t stream) {
  CUcontext to = nullptr, from = nullptr;
  if (cudaError_t e = primary_context(target_device, &to)) return e;
  if (cudaError_t e = primary_context(source_device, &from)) return e;
  return from_driver(CU(cuMemcpyPeerAsync)(address(target), to, address(source), from, bytes, stream));
}

cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* given) {
  if (!given) return cudaErrorInvalidValue;
  CUDA_MEMCPY3D_PEER peer;
  if (cudaError_t e = peer_copy(*given, &peer)) return e;
  return from_driver(CU_PTDS(cuMemcpy3DPeer)(&peer));
}

cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* given, cudaStream_t stream) {
  if (!given) return cudaErrorInvalidValue;
  CUDA_MEMCPY3D_PEER peer;
  if (cudaError_t e = peer_copy(*given, &peer)) return e;
  return from_driver(CU_PTSZ(cuMemcpy3DPeerAsync)(&peer, stream));
}

cudaError_t cudaGetSymbolAddress(void** result, const void* symbol) {
  if (!result) return cudaErrorInvalidValue;
  return inside(symbol, 0, 0, result);
}

cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  if (!bytes) return cudaErrorInvalidValue;
  variable_place place;
  if (cudaError_t e = variable_of(symbol, &place)) return e;
  *bytes = place.bytes;
  return cudaSuccess;
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* source, size_t bytes, size_t offset,
                               cudaMemcpyKind kind) {
  if (!writes_device(kind)) return cudaErrorInvalidMemcpyDirection;
  void* target = nullptr;
  if (cudaError_t e = inside(symbol, offset, bytes, &target)) return e;
  return copy_now(target, source, bytes, kind);
}

cudaError_t cudaMemcpyFromSymbol(void* target, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  if (!reads_device(kind)) return cudaErrorInvalidMemcpyDirection;
  void* source = nullptr;
  if (cudaError_t e = inside(symbol, offset, bytes, &source)) return e;
  return copy_now(target, source, bytes, kind);
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* source, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
  if (!writes_device(kind)) return cudaErrorInvalidMemcpyDirection;
  void* target = nullptr;
  if (cudaError_t e = inside(symbol, offset, bytes, &target)) return e;
  return copy_later(target, source, bytes, kind, stream);
}

cudaError_t cudaMemcpyFromSymbolAsync(void* target, const void* symbol, size_t bytes, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  if (!reads_device(kind)) return cudaErrorInvalidMemcpyDirection;
  void* source = nullptr;
  if (cudaError_t e = inside(symbol, offset, bytes, &source)) return e;
  return copy_later(target, source, bytes, kind, stream);
}

} // namespace api
} // namespace capturesan::runtime
