#include "analyzer/memory.h"

#include <limits>

namespace capturesan {

namespace {

// One past the last byte; sizes come from a file and may wrap.
std::uint64_t end_of(std::uint64_t base, std::uint64_t size) {
  const std::uint64_t end = base + size;
  return end < base ? std::numeric_limits<std::uint64_t>::max() : end;
}

} // namespace

std::shared_ptr<allocation> memory_map::find(std::uint64_t address) const {
  auto it = by_base_.upper_bound(address);
  if (it == by_base_.begin()) return nullptr;
  --it;
  return it->second->contains(address) ? it->second : nullptr;
}

void memory_map::kill(allocation& a) {
  a.live = false;
  if (a.in_graph) ++graph_epoch_;
}

std::shared_ptr<allocation> memory_map::add(allocation a) {
  const std::uint64_t end = end_of(a.base, a.size);
  auto it = by_base_.upper_bound(a.base);
  if (it != by_base_.begin() && std::prev(it)->second->contains(a.base)) --it;
  while (it != by_base_.end() && it->first < end) {
    kill(*it->second);
    it = by_base_.erase(it);
  }
  a.generation = ++generations_;
  auto made = std::make_shared<allocation>(a);
  by_base_[a.base] = made;
  return made;
}

std::shared_ptr<allocation> memory_map::remove(std::uint64_t base) {
  const auto it = by_base_.find(base);
  if (it == by_base_.end()) return nullptr;
  auto a = it->second;
  kill(*a);
  by_base_.erase(it);
  return a;
}

std::shared_ptr<allocation> memory_map::map(allocation a) {
  const auto it = unmapped_.find(a.base);
  if (it != unmapped_.end()) {
    const auto before = it->second.lock();
    unmapped_.erase(it);
    if (before && before->size == a.size && !find(a.base)) {
      before->live = true;
      if (before->in_graph) ++graph_epoch_;
      by_base_[a.base] = before;
      return before;
    }
  }
  return add(a);
}

void memory_map::remove_context(std::uint64_t context, const allocation& how) {
  if (context == 0) return;
  std::erase_if(by_base_, [&](const auto& entry) {
    allocation& a = *entry.second;
    if (a.context != context) return false;
    a.freed_by = how.freed_by;
    a.freed_stack = how.freed_stack;
    a.freed_thread = how.freed_thread;
    a.freed_ns = how.freed_ns;
    kill(a);
    return true;
  });
}

void memory_map::unmap(std::uint64_t base, std::uint64_t size, const allocation& how) {
  const std::uint64_t end = end_of(base, size);
  for (auto it = by_base_.lower_bound(base); it != by_base_.end() && it->first < end;) {
    allocation& a = *it->second;
    if (a.kind != memory_kind::mapped) {
      ++it;
      continue;
    }
    a.freed_by = how.freed_by;
    a.freed_stack = how.freed_stack;
    a.freed_thread = how.freed_thread;
    a.freed_ns = how.freed_ns;
    kill(a);
    if (a.in_graph) unmapped_[a.base] = it->second;
    it = by_base_.erase(it);
  }
}

void memory_map::release_reservation(std::uint64_t base, std::uint64_t size) {
  const std::uint64_t end = end_of(base, size);
  unmapped_.erase(unmapped_.lower_bound(base), unmapped_.lower_bound(end));
  std::erase_if(unmapped_, [](const auto& entry) { return entry.second.expired(); });
}

} // namespace capturesan
