#include "sim/memory.h"

#include <algorithm>

namespace capturesan::sim {
namespace {

// Blocks by address; they take themselves out when the last node or exec that holds them goes.
std::map<CUdeviceptr, graph_block*>& graph_blocks() {
  static auto* const all = new std::map<CUdeviceptr, graph_block*>;
  return *all;
}

} // namespace

CUresult allocate_device(CUcontext context, std::size_t bytes, memory_kind kind, CUdeviceptr* result) {
  const CUdeviceptr at = context->device->heap.allocate(bytes);
  if (!at) return CUDA_ERROR_OUT_OF_MEMORY;
  allocation a;
  a.base = at;
  a.bytes = bytes;
  a.kind = kind;
  a.context = context;
  a.device = context->device->ordinal;
  state().memory.add(a);
  *result = at;
  return CUDA_SUCCESS;
}

CUresult allocate_pages(CUcontext context, std::size_t bytes, memory_kind kind, unsigned flags, CUdeviceptr* result) {
  void* pages = map_pages(bytes);
  if (!pages) return CUDA_ERROR_OUT_OF_MEMORY;
  allocation a;
  a.base = reinterpret_cast<CUdeviceptr>(pages);
  a.bytes = bytes;
  a.kind = kind;
  a.context = context;
  a.device = context->device->ordinal;
  a.flags = flags;
  state().memory.add(a);
  *result = a.base;
  return CUDA_SUCCESS;
}

CUresult allocate_pooled(CUmemoryPool pool, CUcontext context, std::size_t bytes, CUdeviceptr* result) {
  auto kept = pool->idle.find(bytes);
  CUdeviceptr at = 0;
  if (kept != pool->idle.end()) {
    at = kept->second;
    pool->idle.erase(kept);
  } else if (!(at = pool->device->heap.allocate(bytes, true))) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  allocation a;
  a.base = at;
  a.bytes = bytes;
  a.kind = memory_kind::pool;
  a.context = context;
  a.device = pool->device->ordinal;
  a.pool = pool;
  state().memory.add(a);
  auto& used = pool->attributes[CU_MEMPOOL_ATTR_USED_MEM_CURRENT];
  auto& high = pool->attributes[CU_MEMPOOL_ATTR_USED_MEM_HIGH];
  used += bytes;
  high = std::max(high, used);
  *result = at;
  return CUDA_SUCCESS;
}

void release_pooled(const allocation& a) {
  if (!a.pool || !is_live(a.pool)) {
    release_allocation(a);
    return;
  }
  a.pool->attributes[CU_MEMPOOL_ATTR_USED_MEM_CURRENT] -= a.bytes;
  a.pool->idle.emplace(a.bytes, a.base);
  state().memory.remove(a.base);
}

void release_idle_pools(device& owner) {
  for (CUmemoryPool pool : owner.pools) {
    if (pool->idle.empty() || pool->attributes[CU_MEMPOOL_ATTR_USED_MEM_CURRENT] != 0) continue;
    if (pool->attributes[CU_MEMPOOL_ATTR_RELEASE_THRESHOLD] != 0) continue; // keeps them; how many is not simulated
    for (const auto& [bytes, at] : pool->idle) owner.heap.release(at);
    pool->idle.clear();
  }
}

void release_allocation(const allocation& a) {
  const CUdeviceptr base = a.base;
  switch (a.kind) {
  case memory_kind::device:
  case memory_kind::pool:
  case memory_kind::module:
    if (device* owner = device_of(a.device)) owner->heap.release(base);
    break;
  case memory_kind::managed:
  case memory_kind::host:
    unmap_pages(reinterpret_cast<void*>(base), a.bytes);
    break;
  case memory_kind::registered:
  case memory_kind::graph:
  case memory_kind::mapped:
    break; // not ours to give back
  }
  state().memory.remove(base);
}

std::shared_ptr<graph_block> new_graph_block(device& owner, std::size_t bytes) {
  const CUdeviceptr at = owner.heap.allocate(bytes, true);
  if (!at) return nullptr;
  auto block = std::make_shared<graph_block>();
  block->address = at;
  block->bytes = bytes;
  block->device = owner.ordinal;
  allocation a;
  a.base = at;
  a.bytes = bytes;
  a.kind = memory_kind::graph;
  a.device = owner.ordinal;
  a.mapped = false;
  state().memory.add(a);
  graph_blocks()[at] = block.get();
  return block;
}

void set_allocated(graph_block& block, bool allocated) {
  if (block.allocated == allocated) return;
  block.allocated = allocated;
  if (allocation* a = state().memory.at(block.address)) a->mapped = allocated;
  device& owner = *device_of(block.device);
  if (allocated)
    owner.graph_used += block.bytes;
  else
    owner.graph_used -= block.bytes;
  owner.graph_used_high = std::max(owner.graph_used_high, owner.graph_used);
}

graph_block* find_graph_block(CUdeviceptr address) {
  auto found = graph_blocks().find(address);
  return found == graph_blocks().end() ? nullptr : found->second;
}

graph_block::~graph_block() {
  if (!address) return;
  graph_blocks().erase(address);
  if (allocated) { // outlives its graph: freed like any other memory
    state().memory.at(address)->kind = memory_kind::pool;
    return;
  }
  state().memory.remove(address);
  device_of(device)->heap.release(address);
}

} // namespace capturesan::sim
