#include "analyzer/memory.h"

#include <algorithm>
#include <limits>

namespace capturesan {

namespace {

// One past the last byte; sizes come from a file and may wrap.
std::uint64_t end_of(std::uint64_t base, std::uint64_t size) {
  const std::uint64_t end = base + size;
  return end < base ? std::numeric_limits<std::uint64_t>::max() : end;
}

constexpr std::size_t most_dead = 4096; // kept; the oldest go first

void note_end(allocation& a, const allocation& how) {
  a.freed_by = how.freed_by;
  a.freed_stack = how.freed_stack;
  a.freed_thread = how.freed_thread;
  a.freed_ns = how.freed_ns;
}

} // namespace

std::shared_ptr<allocation> memory_map::find(std::uint64_t address) const {
  auto it = by_base_.upper_bound(address);
  if (it == by_base_.begin()) return nullptr;
  --it;
  return it->second->contains(address) ? it->second : nullptr;
}

void memory_map::kill(const std::shared_ptr<allocation>& a) {
  a->live = false;
  if (a->in_graph) {
    ++graph_epoch_;
    mapped_died_ = mapped_died_ || a->kind == memory_kind::mapped;
  }
  if (!keep_dead_) return;
  if (dead_.size() == most_dead) dead_.pop_front();
  dead_.push_back(a);
}

std::shared_ptr<allocation> memory_map::add(allocation a) {
  const std::uint64_t end = end_of(a.base, a.size);
  auto it = by_base_.upper_bound(a.base);
  if (it != by_base_.begin() && std::prev(it)->second->contains(a.base)) --it;
  while (it != by_base_.end() && it->first < end) {
    it->second->freed_ns = a.made_ns;
    kill(it->second);
    it = by_base_.erase(it);
  }
  a.generation = ++generations_;
  auto made = std::make_shared<allocation>(a);
  by_base_[a.base] = made;
  return made;
}

std::shared_ptr<allocation> memory_map::remove(std::uint64_t base, const allocation& how) {
  const auto it = by_base_.find(base);
  if (it == by_base_.end()) return nullptr;
  auto a = it->second;
  note_end(*a, how);
  kill(a);
  by_base_.erase(it);
  return a;
}

void memory_map::reserve(std::uint64_t base, std::uint64_t size) { reservations_[base] = {size, ++reserved_, false}; }

void memory_map::release_reservation(std::uint64_t base) { reservations_.erase(base); }

std::uint64_t memory_map::reservation_of(std::uint64_t address) const {
  auto it = reservations_.upper_bound(address);
  if (it == reservations_.begin()) return 0;
  --it;
  return address - it->first < it->second.size ? it->second.number : 0;
}

void memory_map::make_private(std::uint64_t address) {
  if (const auto a = find(address)) a->private_pool = true;
  auto it = reservations_.upper_bound(address);
  if (it == reservations_.begin()) return;
  --it;
  if (address - it->first < it->second.size) it->second.private_pool = true;
}

bool memory_map::is_private(const allocation& a) const {
  if (a.private_pool) return true;
  if (a.reservation == 0) return false;
  const auto it = reservations_.upper_bound(a.base);
  return it != reservations_.begin() && std::prev(it)->second.number == a.reservation &&
         std::prev(it)->second.private_pool;
}

std::shared_ptr<allocation> memory_map::map(allocation a) {
  a.reservation = reservation_of(a.base);
  if (mapped_died_) ++graph_epoch_; // a graph's memory may be back
  return add(a);
}

std::shared_ptr<allocation> memory_map::mapped_again(const allocation& dead, std::uint64_t address) const {
  if (dead.kind != memory_kind::mapped) return nullptr;
  auto now = find(address);
  return now && now->kind == memory_kind::mapped && now->reservation == dead.reservation ? now : nullptr;
}

void memory_map::keep_dead(bool on) {
  keep_dead_ = on;
  if (!on) dead_.clear();
}

std::shared_ptr<allocation> memory_map::find_dead(std::uint64_t address, std::int64_t from_ns,
                                                  std::int64_t to_ns) const {
  const auto it = std::find_if(dead_.rbegin(), dead_.rend(), [&](const auto& a) {
    return a->contains(address) && a->made_ns <= to_ns && a->freed_ns >= from_ns;
  });
  return it == dead_.rend() ? nullptr : *it;
}

void memory_map::remove_context(std::uint64_t context, const allocation& how) {
  if (context == 0) return;
  std::erase_if(by_base_, [&](const auto& entry) {
    if (entry.second->context != context) return false;
    note_end(*entry.second, how);
    kill(entry.second);
    return true;
  });
}

void memory_map::unmap(std::uint64_t base, std::uint64_t size, const allocation& how) {
  const std::uint64_t end = end_of(base, size);
  for (auto it = by_base_.lower_bound(base); it != by_base_.end() && it->first < end;) {
    if (it->second->kind != memory_kind::mapped) {
      ++it;
      continue;
    }
    note_end(*it->second, how);
    kill(it->second);
    it = by_base_.erase(it);
  }
}

} // namespace capturesan
