#include "sim/api.h"
#include "sim/memory.h"

#include <cstring>
#include <new>

namespace capturesan::sim {
namespace {

constexpr std::size_t pitch_alignment = 512;

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

bool is_device_kind(memory_kind kind) { return kind != memory_kind::host && kind != memory_kind::registered; }

CUresult free_host(void* p, memory_kind kind, CUresult if_missing) {
  const allocation* a = state().memory.at(reinterpret_cast<CUdeviceptr>(p));
  if (!a || a->kind != kind) return if_missing;
  release_allocation(*a);
  return CUDA_SUCCESS;
}

template <class T>
CUresult store(void* data, T value) {
  std::memcpy(data, &value, sizeof value);
  return CUDA_SUCCESS;
}

// One attribute of a pointer that the driver knows.
CUresult attribute_of(const allocation& a, CUpointer_attribute which, CUdeviceptr address, void* data) {
  switch (which) {
  case CU_POINTER_ATTRIBUTE_CONTEXT:
    return store(data, a.context);
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    return store(data, is_device_kind(a.kind) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
  case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    return store(data, address);
  case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    if (a.kind != memory_kind::host && a.kind != memory_kind::registered && a.kind != memory_kind::managed)
      return CUDA_ERROR_INVALID_VALUE;
    return store(data, pointer(address));
  case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    return store(data, 0u);
  case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    return store(data, static_cast<unsigned long long>(a.id));
  case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    return store(data, a.kind == memory_kind::managed);
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    return store(data, a.device);
  case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    return store(data, a.kind == memory_kind::device ? 1 : 0);
  case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    return store(data, pointer(a.base));
  case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    return store(data, a.bytes);
  case CU_POINTER_ATTRIBUTE_MAPPED:
    return store(data, a.mapped);
  case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    return store(data, cuuint64_t{0});
  case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    return store(data, 0);
  case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    return store(data, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
  case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    return store(data, a.pool);
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

// What cuPointerGetAttributes answers for memory the driver does not know.
void store_unknown(CUpointer_attribute which, void* data) {
  if (which == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
    store(data, 0);
  else if (which == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
    store(data, -2);
  else if (which == CU_POINTER_ATTRIBUTE_IS_MANAGED || which == CU_POINTER_ATTRIBUTE_MAPPED)
    store(data, false);
  else if (which == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || which == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE ||
           which == CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE || which == CU_POINTER_ATTRIBUTE_ACCESS_FLAGS)
    store(data, 0);
  else
    store(data, cuuint64_t{0});
}

} // namespace

namespace api {

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  const auto& heap = current_context()->device->heap;
  if (free) *free = heap.total() - heap.used();
  if (total) *total = heap.total();
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* result, size_t bytes) {
  if (!result || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  return allocate_device(current_context(), bytes, memory_kind::device, result);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* result, size_t* pitch, size_t width, size_t height, unsigned element) {
  if (!result || !pitch || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
  if (element != 4 && element != 8 && element != 16) return CUDA_ERROR_INVALID_VALUE;
  *pitch = (width + pitch_alignment - 1) / pitch_alignment * pitch_alignment;
  return allocate_device(current_context(), *pitch * height, memory_kind::device, result);
}

CUresult cuMemAllocManaged(CUdeviceptr* result, size_t bytes, unsigned flags) {
  if (!result || bytes == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
    return CUDA_ERROR_INVALID_VALUE;
  return allocate_pages(current_context(), bytes, memory_kind::managed, flags, result);
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  // Needs no context, but a lost one shows.
  if (CUcontext context = current_context(); context && context->fault) return context->fault;
  if (address == 0) return CUDA_SUCCESS;
  if (graph_block* block = find_graph_block(address)) {
    if (!block->allocated) return CUDA_ERROR_INVALID_VALUE;
    set_allocated(*block, false);
    return CUDA_SUCCESS;
  }
  const allocation* a = state().memory.at(address);
  const bool own =
      a && (a->kind == memory_kind::device || a->kind == memory_kind::managed || a->kind == memory_kind::pool);
  if (!own) return CUDA_ERROR_INVALID_VALUE;
  release_pooled(*a); // as any other if it is of no pool
  return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  const allocation* a = state().memory.find(address);
  if (!a) return CUDA_ERROR_NOT_FOUND;
  if (base) *base = a->base;
  if (bytes) *bytes = a->bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void** result, size_t bytes, unsigned flags) {
  constexpr unsigned known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if (!result || flags & ~known) return CUDA_ERROR_INVALID_VALUE;
  *result = nullptr;
  if (bytes == 0) return CUDA_SUCCESS;
  CUdeviceptr address = 0;
  const CUresult r = allocate_pages(current_context(), bytes, memory_kind::host, flags, &address);
  *result = pointer(address);
  return r;
}

CUresult cuMemAllocHost_v2(void** result, size_t bytes) { return api::cuMemHostAlloc(result, bytes, 0); }

CUresult cuMemFreeHost(void* p) {
  if (!p) return CUDA_SUCCESS;
  return free_host(p, memory_kind::host, CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemHostRegister_v2(void* p, size_t bytes, unsigned flags) {
  if (!p || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const auto base = reinterpret_cast<CUdeviceptr>(p);
  if (state().memory.find(base)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  allocation a;
  a.base = base;
  a.bytes = bytes;
  a.kind = memory_kind::registered;
  a.context = current_context();
  a.device = a.context->device->ordinal;
  a.flags = flags;
  state().memory.add(a);
  return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void* p) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  return free_host(p, memory_kind::registered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* result, void* p, unsigned flags) {
  if (!result || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const allocation* a = state().memory.find(reinterpret_cast<CUdeviceptr>(p));
  if (!a || is_device_kind(a->kind)) return CUDA_ERROR_INVALID_VALUE;
  *result = reinterpret_cast<CUdeviceptr>(p);
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned* flags, void* p) {
  const allocation* a = state().memory.find(reinterpret_cast<CUdeviceptr>(p));
  if (!flags || !a || a->kind != memory_kind::host) return CUDA_ERROR_INVALID_VALUE;
  *flags = a->flags;
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute which, CUdeviceptr address) {
  if (!data) return CUDA_ERROR_INVALID_VALUE;
  const allocation* a = state().memory.find(address);
  return a ? attribute_of(*a, which, address, data) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* which, void** data, CUdeviceptr address) {
  if (count == 0 || !which || !data) return CUDA_ERROR_INVALID_VALUE;
  const allocation* a = state().memory.find(address);
  for (unsigned i = 0; i < count; ++i) {
    store_unknown(which[i], data[i]);
    if (a) attribute_of(*a, which[i], address, data[i]);
  }
  return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute which, CUdeviceptr address) {
  if (!value || which != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
  return state().memory.find(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// A handle can be had, as on a real driver; nothing here can open it.
CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  const allocation* a = state().memory.find(address);
  if (!handle || !a || a->kind != memory_kind::device) return CUDA_ERROR_INVALID_VALUE;
  *handle = {};
  std::memcpy(handle->reserved, &a->base, sizeof a->base);
  return CUDA_SUCCESS;
}

CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice, CUstream) {
  const allocation* a = state().memory.find(address);
  return bytes && a && a->kind == memory_kind::managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation, unsigned, CUstream stream) {
  return api::cuMemPrefetchAsync(address, bytes, 0, stream);
}

CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise, CUdevice) {
  const allocation* a = state().memory.find(address);
  return bytes && a && a->kind == memory_kind::managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation) {
  return api::cuMemAdvise(address, bytes, advice, 0);
}

} // namespace api
} // namespace capturesan::sim
