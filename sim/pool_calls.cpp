// Memory pools, and allocation in stream order. Work is done at once, so the order of the calls is the order of the
// stream.
#include "sim/api.h"
#include "sim/capture.h"
#include "sim/memory.h"

#include <algorithm>
#include <cstring>

namespace capturesan::sim {
namespace {

// In a capture: an allocation node, whose address is known at once.
CUresult capture_allocation(CUdeviceptr* result, std::size_t bytes, CUmemoryPool pool, CUstream stream) {
  alloc_call call;
  call.shape.poolProps = pool->properties;
  call.shape.bytesize = bytes;
  call.block = new_graph_block(*pool->device, bytes);
  if (!call.block) return CUDA_ERROR_OUT_OF_MEMORY;
  call.shape.dptr = call.block->address;
  *result = call.block->address;
  return submit(stream, std::move(call));
}

CUresult allocate_from(CUdeviceptr* result, std::size_t bytes, CUmemoryPool pool, CUstream stream) {
  if (!result || !pool) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0) { // measured: nothing is a valid amount
    *result = 0;
    return CUDA_SUCCESS;
  }
  if (stream->capture) return capture_allocation(result, bytes, pool, stream);
  return allocate_pooled(pool, stream->context, bytes, result);
}

bool valid(CUmemPool_attribute which) {
  return which >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES && which <= CU_MEMPOOL_ATTR_USED_MEM_HIGH;
}

bool is_flag(CUmemPool_attribute which) { return which <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES; }

} // namespace

namespace api {

CUresult cuMemAllocAsync(CUdeviceptr* result, size_t bytes, CUstream stream) {
  return allocate_from(result, bytes, stream->context->device->pool, stream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* result, size_t bytes, CUmemoryPool pool, CUstream stream) {
  return allocate_from(result, bytes, pool, stream);
}

// In a capture only memory of an allocation node can be freed.
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  if (address == 0) return CUDA_SUCCESS;
  graph_block* block = find_graph_block(address);
  if (stream->capture) {
    const bool can = block && stream->capture->graph->freed.insert(address).second;
    return can ? submit(stream, free_call{address}) : CUDA_ERROR_INVALID_VALUE;
  }
  if (block) {
    if (!block->allocated) return CUDA_ERROR_INVALID_VALUE;
    set_allocated(*block, false);
    return CUDA_SUCCESS;
  }
  const allocation* a = state().memory.at(address);
  if (!a || (a->kind != memory_kind::pool && a->kind != memory_kind::device)) return CUDA_ERROR_INVALID_VALUE;
  release_pooled(*a);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool* result, const CUmemPoolProps* properties) {
  if (!result || !properties || properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  device* owner = device_of(properties->location.id);
  if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || !owner) return CUDA_ERROR_INVALID_VALUE;
  CUmemoryPool pool = create<CUmemPoolHandle_st>();
  pool->device = owner;
  owner->pools.push_back(pool);
  pool->properties = *properties;
  pool->attributes = owner->default_pool->attributes;
  for (int i = CU_MEMPOOL_ATTR_RELEASE_THRESHOLD; i <= CU_MEMPOOL_ATTR_USED_MEM_HIGH; ++i)
    pool->attributes[static_cast<std::size_t>(i)] = 0;
  *result = pool;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  if (!pool || pool->is_default) return CUDA_ERROR_INVALID_VALUE;
  if (pool->device->pool == pool) pool->device->pool = pool->device->default_pool;
  for (auto& [base, a] : state().memory)
    if (a.pool == pool) a.pool = nullptr;
  for (const auto& [bytes, at] : pool->idle) pool->device->heap.release(at);
  std::erase(pool->device->pools, pool);
  destroy(pool);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t) {
  if (!pool) return CUDA_ERROR_INVALID_VALUE;
  release_idle_pools(*pool->device);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void* value) {
  if (!pool || !value || !valid(which)) return CUDA_ERROR_INVALID_VALUE;
  const cuuint64_t found = pool->attributes[static_cast<std::size_t>(which)];
  if (is_flag(which)) {
    const int flag = found != 0;
    std::memcpy(value, &flag, sizeof flag);
  } else {
    std::memcpy(value, &found, sizeof found);
  }
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void* value) {
  if (!pool || !value || !valid(which)) return CUDA_ERROR_INVALID_VALUE;
  auto& own = pool->attributes[static_cast<std::size_t>(which)];
  if (is_flag(which)) {
    int flag = 0;
    std::memcpy(&flag, value, sizeof flag);
    own = flag != 0;
  } else {
    std::memcpy(&own, value, sizeof own);
  }
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* list, size_t count) {
  if (!pool || (count && !list)) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) pool->access[list[i].location.id] = list[i].flags;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
  if (!flags || !pool || !location) return CUDA_ERROR_INVALID_VALUE;
  auto found = pool->access.find(location->id);
  *flags = location->id == pool->device->ordinal ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
           : found != pool->access.end()         ? found->second
                                                 : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGraphMemTrim(CUdevice ordinal) {
  return device_of(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute which, void* value) {
  const device* owner = device_of(ordinal);
  if (!owner) return CUDA_ERROR_INVALID_DEVICE;
  if (!value || which > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) return CUDA_ERROR_INVALID_VALUE;
  const bool high = which == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || which == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
  const cuuint64_t found = high ? owner->graph_used_high : owner->graph_used;
  std::memcpy(value, &found, sizeof found);
  return CUDA_SUCCESS;
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute which, void* value) {
  device* owner = device_of(ordinal);
  if (!owner) return CUDA_ERROR_INVALID_DEVICE;
  const bool high = which == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || which == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
  if (!value || !high) return CUDA_ERROR_INVALID_VALUE;
  owner->graph_used_high = owner->graph_used; // documented: only a reset to the current value
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace capturesan::sim
