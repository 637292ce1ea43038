// Which allocation an address belongs to, and belonged to. One address may have many owners one after the other:
// generations.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>

#include "analyzer/process.h"

namespace capturesan {

enum class memory_kind : std::uint8_t {
  unknown,
  device,
  managed,
  pool,
  mapped,
  pinned,
  registered,
  ipc,      // of another process
  block,    // of a framework's allocator; lies in an allocation of the driver
  pageable, // ordinary host memory that a graph uses
  stack     // the same, on a thread's stack
};

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
  std::int64_t made_ns = 0, freed_ns = 0;
  std::uint64_t context = 0;     // that takes it along when it goes; 0 = none, or not known
  std::uint64_t reservation = 0; // mapped: number of the address reservation it lies in; 0 = not known
  // block: handed out to a stream that was capturing. Of the driver: such a block was handed out in it; no other pool
  // of the framework gets a part of it before the driver has it back.
  bool private_pool = false;
  std::uint32_t place = 0; // block: where in the program it was handed out; 0 = not known
  // Freed in the order of a stream: when it was put there. 0 = it was not, or the host has waited for it since.
  std::int64_t queued_ns = 0;
  std::uint64_t freed_on = 0, freed_in = 0; // that stream (stream_key), and the context
  std::uint32_t opened = 0;                 // ipc: how often, beyond the first time
  std::uint64_t stack_high = 0;             // stack: upper end of that stack
  bool thread_ended = false;                // stack: gone with its thread
  bool end_proved = true; // stack: false if the launch that showed its end may have been made on another stack

  bool contains(std::uint64_t address) const { return address - base < size; }
};

// Dead allocations live on only as long as somebody holds them.
class memory_map {
 public:
  // The live allocation that holds the address; null if there is none.
  std::shared_ptr<allocation> find(std::uint64_t address) const;

  // What overlaps the new range must have been freed unseen and is marked dead.
  std::shared_ptr<allocation> add(allocation a);
  // Marks the allocation that begins at `base` dead, notes who did it (the freed_ fields of `how`), and returns it;
  // null if there is none.
  std::shared_ptr<allocation> remove(std::uint64_t base, const allocation& how);

  // Virtual memory: the owner of a mapped range is its address reservation. Mapping a range again, in whatever pieces,
  // without the reservation having been given up, brings the same owner back: its address was kept on purpose.
  void reserve(std::uint64_t base, std::uint64_t size);
  void release_reservation(std::uint64_t base);
  std::shared_ptr<allocation> map(allocation a);
  void unmap(std::uint64_t base, std::uint64_t size, const allocation& how);
  // What holds the address now, if it is mapped again within the reservation of `dead`; null otherwise.
  std::shared_ptr<allocation> mapped_again(const allocation& dead, std::uint64_t address) const;

  // While on, what dies can be asked for: a graph may name memory that was freed before it was instantiated.
  void keep_dead(bool on);
  bool keeps_dead() const { return keep_dead_; }
  // The allocation that held the address some time between the two instants, and is dead now.
  std::shared_ptr<allocation> find_dead(std::uint64_t address, std::int64_t from_ns, std::int64_t to_ns) const;

  // A holder that is not in the map died, or came back: pageable memory, a stack.
  void changed() { ++graph_epoch_; }

  // The memory at that address belongs to a private pool of a framework, until the driver has it back; a mapped range
  // with all of its reservation.
  void make_private(std::uint64_t address);
  bool is_private(const allocation& a) const;

  // A context went, and its memory with it.
  void remove_context(std::uint64_t context, const allocation& how);

  std::size_t live() const { return by_base_.size(); }
  // Changes whenever memory that a graph refers to died or came back.
  std::uint64_t graph_epoch() const { return graph_epoch_; }

 private:
  void kill(const std::shared_ptr<allocation>& a);
  std::uint64_t reservation_of(std::uint64_t address) const;
  std::map<std::uint64_t, std::shared_ptr<allocation>> by_base_;
  struct reservation {
    std::uint64_t size = 0, number = 0;
    bool private_pool = false;
  };
  std::map<std::uint64_t, reservation> reservations_; // by base
  std::deque<std::shared_ptr<allocation>> dead_;      // oldest first, while keep_dead is on
  bool keep_dead_ = false;
  bool mapped_died_ = false; // that a graph refers to
  std::uint64_t reserved_ = 0;
  std::uint64_t generations_ = 0;
  std::uint64_t graph_epoch_ = 0;
};

} // namespace capturesan
