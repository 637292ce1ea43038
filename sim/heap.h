// Device memory, as real memory of this process at addresses of a region of its own, and the map of all memory the
// driver knows. Small allocations share slabs of 2 MiB, first fit, as on the measured driver: a freed address comes
// back with the next allocation of its size, and an address stops being accessible only when nothing live is left in
// its slab.
#pragma once

#include "sim/cuda_api.h"

#include <cstddef>
#include <cstdint>
#include <map>

namespace capturesan::sim {

inline constexpr std::size_t slab_bytes = std::size_t{2} << 20;
inline constexpr std::size_t block_alignment = 512;
inline constexpr std::size_t largest_shared_block = std::size_t{1} << 20;

class device_heap {
 public:
  // 0: no room. With `own_slabs` the block shares its slabs with nothing.
  CUdeviceptr allocate(std::size_t bytes, bool own_slabs = false);
  void release(CUdeviceptr address);
  // Reserves addresses without memory (virtual memory management); 0: no room. Freed with release().
  CUdeviceptr reserve(std::size_t bytes, std::size_t alignment);

  bool contains(CUdeviceptr address) const { return address - base_ < size_; }
  // False: an address of this device with nothing live in its slab, an access would fault. Reserved ranges are not
  // accessible; what is mapped into them the memory map knows.
  bool accessible(CUdeviceptr address, std::size_t bytes) const;

  std::size_t used() const { return used_; }
  std::size_t total() const { return total_; }
  // Changes whenever a slab dies: what was accessible before may not be any more.
  std::uint64_t generation() const { return generation_; }

 private:
  struct range { // of whole slabs
    std::size_t bytes = 0;
    bool shared = false;
    bool reserved = false;
    std::size_t used = 0;
    std::map<CUdeviceptr, std::size_t> blocks; // of a shared slab
  };
  bool open_region();
  CUdeviceptr place(std::size_t bytes, std::size_t alignment);
  CUdeviceptr allocate_block(std::size_t bytes);

  CUdeviceptr base_ = 0;
  std::size_t size_ = 0;
  std::size_t total_ = std::size_t{80} << 30;
  std::size_t used_ = 0;
  std::uint64_t generation_ = 0;
  std::map<CUdeviceptr, range> ranges_;
};

enum class memory_kind : std::uint8_t { device, managed, host, registered, pool, graph, mapped, module };

struct allocation {
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  memory_kind kind = memory_kind::device;
  CUcontext context = nullptr;
  int device = 0;
  unsigned flags = 0;
  std::uint64_t id = 0;
  CUmemoryPool pool = nullptr;
  bool mapped = true; // graph memory: allocated now
};

// All memory that is live, by address.
class memory_map {
 public:
  allocation& add(allocation a);
  // The live allocation that holds the address, or null. Memory of an allocation node is live from its launch to its
  // free.
  allocation* find(CUdeviceptr address);
  // Whether all of the range is allocated, by one allocation or by several that adjoin.
  bool covers(CUdeviceptr address, std::size_t bytes) { return covers(address, bytes, true); }
  // The same where memory of allocation nodes counts that is not allocated yet.
  bool names(CUdeviceptr address, std::size_t bytes) { return covers(address, bytes, false); }
  allocation* at(CUdeviceptr base);
  void remove(CUdeviceptr base) {
    live_.erase(base);
    ++generation_;
  }
  std::uint64_t generation() const { return generation_; } // changes whenever something is added or removed
  auto begin() { return live_.begin(); }
  auto end() { return live_.end(); }

 private:
  allocation* holding(CUdeviceptr address);
  bool covers(CUdeviceptr address, std::size_t bytes, bool mapped);

  std::map<CUdeviceptr, allocation> live_;
  std::uint64_t next_id_ = 1;
  std::uint64_t generation_ = 0;
};

// Page-aligned host memory; null: none left.
void* map_pages(std::size_t bytes);
void unmap_pages(void* address, std::size_t bytes);
// Whether the address is of memory that was unmapped here and is nobody's since, as far as is known here.
bool was_given_back(CUdeviceptr address);

} // namespace capturesan::sim
