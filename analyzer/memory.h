// Which allocation an address belongs to, and belonged to. One address may have many owners one after the other:
// generations.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>

#include "analyzer/process.h"

namespace capturesan {

enum class memory_kind : std::uint8_t { unknown, device, managed, pool, mapped, pinned, registered };

struct allocation {
  std::uint64_t base = 0, size = 0;
  std::uint64_t generation = 0; // unique in the process, in order of allocation
  memory_kind kind = memory_kind::unknown;
  bool live = true;
  bool in_graph = false; // a pointer of an exec is in it
  const call_ref* made_by = nullptr;
  const call_ref* freed_by = nullptr;
  std::uint32_t made_stack = 0, freed_stack = 0;
  std::uint32_t made_thread = 0, freed_thread = 0;
  std::int64_t freed_ns = 0;
  std::uint64_t context = 0; // current when it was made; 0 = not known

  bool contains(std::uint64_t address) const { return address - base < size; }
};

// Dead allocations live on only as long as somebody holds them.
class memory_map {
 public:
  // The live allocation that holds the address; null if there is none.
  std::shared_ptr<allocation> find(std::uint64_t address) const;

  // What overlaps the new range must have been freed unseen and is marked dead.
  std::shared_ptr<allocation> add(allocation a);
  // Marks the allocation that begins at `base` dead and returns it; null if there is none.
  std::shared_ptr<allocation> remove(std::uint64_t base);

  // Virtual memory: the owner of a mapped range is its address reservation. Mapping the same range again, without the
  // reservation having been given up, brings the same owner back: its address was kept on purpose.
  std::shared_ptr<allocation> map(allocation a);
  void unmap(std::uint64_t base, std::uint64_t size, const allocation& how);
  void release_reservation(std::uint64_t base, std::uint64_t size);

  // A context went, and its memory with it.
  void remove_context(std::uint64_t context, const allocation& how);

  std::size_t live() const { return by_base_.size(); }
  // Changes whenever memory that a graph refers to died or came back.
  std::uint64_t graph_epoch() const { return graph_epoch_; }

 private:
  void kill(allocation& a);
  std::map<std::uint64_t, std::shared_ptr<allocation>> by_base_;
  std::map<std::uint64_t, std::weak_ptr<allocation>> unmapped_; // by base
  std::uint64_t generations_ = 0;
  std::uint64_t graph_epoch_ = 0;
};

} // namespace capturesan
