#include "sim/heap.h"

#include <algorithm>
#include <sys/mman.h>

namespace capturesan::sim {
namespace {

constexpr std::size_t round_up(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

void* as_pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

} // namespace

// Pages are not really unmapped but made inaccessible, so that nothing else of the process takes their place unseen; a
// later map_pages() of no more than their size does. What is over is a few bytes of bookkeeping for each.
std::map<CUdeviceptr, std::size_t>& given_back() {
  static auto* const all = new std::map<CUdeviceptr, std::size_t>;
  return *all;
}

bool was_given_back(CUdeviceptr address) {
  auto next = given_back().upper_bound(address);
  return next != given_back().begin() && address - std::prev(next)->first < std::prev(next)->second;
}

void* map_pages(std::size_t bytes) {
  bytes = round_up(bytes, 4096);
  for (auto at = given_back().begin(); at != given_back().end(); ++at) {
    if (at->second != bytes || mprotect(as_pointer(at->first), bytes, PROT_READ | PROT_WRITE) != 0) continue;
    void* const again = as_pointer(at->first);
    given_back().erase(at);
    return again;
  }
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

void unmap_pages(void* address, std::size_t bytes) {
  bytes = round_up(bytes, 4096);
  madvise(address, bytes, MADV_DONTNEED);
  mprotect(address, bytes, PROT_NONE);
  given_back()[reinterpret_cast<CUdeviceptr>(address)] = bytes;
}

// Addresses only: nothing is accessible until it is allocated. A process with a limit on its address space gets a
// smaller region.
bool device_heap::open_region() {
  if (size_) return true;
  for (std::size_t bytes = std::size_t{256} << 30; bytes >= std::size_t{64} << 20; bytes /= 2) {
    void* p = mmap(nullptr, bytes + slab_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) continue;
    base_ = round_up(reinterpret_cast<CUdeviceptr>(p), slab_bytes);
    size_ = bytes;
    return true;
  }
  return false;
}

// First fit among the gaps between ranges.
CUdeviceptr device_heap::place(std::size_t bytes, std::size_t alignment) {
  if (!open_region()) return 0;
  CUdeviceptr at = round_up(base_, alignment);
  for (const auto& [start, taken] : ranges_) {
    if (start >= at && start - at >= bytes) break;
    at = std::max<CUdeviceptr>(at, round_up(start + taken.bytes, alignment));
  }
  return at + bytes <= base_ + size_ ? at : 0;
}

CUdeviceptr device_heap::allocate_block(std::size_t bytes) {
  for (auto& [start, r] : ranges_) {
    if (!r.shared || r.bytes - r.used < bytes) continue;
    CUdeviceptr at = start;
    for (const auto& [block, size] : r.blocks) {
      if (block - at >= bytes) break;
      at = block + size;
    }
    if (at + bytes > start + r.bytes) continue;
    r.blocks.emplace(at, bytes);
    r.used += bytes;
    return at;
  }
  return 0;
}

CUdeviceptr device_heap::allocate(std::size_t bytes, bool own_slabs) {
  const bool shared = !own_slabs && bytes <= largest_shared_block;
  bytes = round_up(bytes, shared ? block_alignment : slab_bytes);
  if (used_ + bytes > total_) return 0;
  if (shared)
    if (CUdeviceptr at = allocate_block(bytes)) {
      used_ += bytes;
      return at;
    }
  const std::size_t span = round_up(bytes, slab_bytes);
  const CUdeviceptr at = place(span, slab_bytes);
  if (!at || mprotect(as_pointer(at), span, PROT_READ | PROT_WRITE) != 0) return 0;
  range& fresh = ranges_[at];
  fresh.bytes = span;
  fresh.shared = shared;
  fresh.used = bytes;
  if (shared) fresh.blocks.emplace(at, bytes);
  used_ += bytes;
  return at;
}

CUdeviceptr device_heap::reserve(std::size_t bytes, std::size_t alignment) {
  bytes = round_up(bytes, slab_bytes);
  const CUdeviceptr at = place(bytes, std::max(alignment, slab_bytes));
  if (!at || mprotect(as_pointer(at), bytes, PROT_READ | PROT_WRITE) != 0) return 0;
  range& fresh = ranges_[at];
  fresh.bytes = bytes;
  fresh.reserved = true;
  return at;
}

// Pages of a dead slab lose their content but stay readable, so that a host implementation of a kernel that follows a
// stale pointer inside a structure does not crash the program.
void device_heap::release(CUdeviceptr address) {
  auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin()) return;
  auto found = std::prev(next);
  range& r = found->second;
  if (r.shared) {
    auto block = r.blocks.find(address);
    if (block == r.blocks.end()) return;
    used_ -= block->second;
    r.used -= block->second;
    r.blocks.erase(block);
    if (!r.blocks.empty()) return;
  } else {
    used_ -= r.used;
  }
  madvise(as_pointer(found->first), r.bytes, MADV_DONTNEED);
  ranges_.erase(found);
  ++generation_;
}

bool device_heap::accessible(CUdeviceptr address, std::size_t bytes) const {
  const CUdeviceptr end = address + bytes;
  while (address < end) {
    auto next = ranges_.upper_bound(address);
    if (next == ranges_.begin()) return false;
    const auto& [start, r] = *std::prev(next);
    if (r.reserved || address >= start + r.bytes) return false;
    address = start + r.bytes;
  }
  return true;
}

allocation& memory_map::add(allocation a) {
  a.id = next_id_++;
  ++generation_;
  return live_[a.base] = a;
}

allocation* memory_map::find(CUdeviceptr address) {
  allocation* a = holding(address);
  return a && (a->mapped || a->kind != memory_kind::graph) ? a : nullptr;
}

allocation* memory_map::holding(CUdeviceptr address) {
  auto next = live_.upper_bound(address);
  if (next == live_.begin()) return nullptr;
  allocation& a = std::prev(next)->second;
  return address - a.base < a.bytes ? &a : nullptr;
}

bool memory_map::covers(CUdeviceptr address, std::size_t bytes, bool mapped) {
  const CUdeviceptr end = address + bytes;
  do {
    const allocation* a = holding(address);
    if (!a || !(a->mapped || (!mapped && a->kind == memory_kind::graph))) return false;
    address = a->base + a->bytes;
  } while (address < end);
  return true;
}

allocation* memory_map::at(CUdeviceptr base) {
  auto found = live_.find(base);
  return found == live_.end() ? nullptr : &found->second;
}

} // namespace capturesan::sim
