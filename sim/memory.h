// Getting and giving back memory of each kind.
#pragma once

#include "sim/state.h"

namespace capturesan::sim {

CUresult allocate_device(CUcontext context, std::size_t bytes, memory_kind kind, CUdeviceptr* result);
// Host, managed: pages of their own.
CUresult allocate_pages(CUcontext context, std::size_t bytes, memory_kind kind, unsigned flags, CUdeviceptr* result);
// Blocks of a pool: freed ones are used again, and are accessible until a wait of the device finds nothing of the pool
// in use.
CUresult allocate_pooled(CUmemoryPool pool, CUcontext context, std::size_t bytes, CUdeviceptr* result);
void release_pooled(const allocation& a);
void release_idle_pools(device& owner);

// Gives the memory back and forgets the allocation.
void release_allocation(const allocation& a);

// Memory of an allocation node: an address now, memory when the node runs. Null: no room.
std::shared_ptr<graph_block> new_graph_block(device& owner, std::size_t bytes);
void set_allocated(graph_block& block, bool allocated);
// The block that begins at an address, or null.
graph_block* find_graph_block(CUdeviceptr address);

} // namespace capturesan::sim
