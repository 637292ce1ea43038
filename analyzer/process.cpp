#include "analyzer/process.h"

#include <algorithm>

namespace capturesan {

namespace {

const std::unordered_map<std::string_view, const trace::call_info*>& known_calls() {
  static const auto table = [] {
    std::unordered_map<std::string_view, const trace::call_info*> t;
    t.reserve(trace::call_count);
    for (const trace::call_info& c : trace::call_table) t.emplace(c.symbol, &c);
    for (const trace::call_info& c : trace::foreign_table) t.emplace(c.symbol, &c);
    return t;
  }();
  return table;
}

} // namespace

void traced_process::name_call(std::uint16_t id, std::string_view symbol) {
  if (calls_.size() <= id) calls_.resize(id + std::size_t{1});
  call_ref& c = calls_[id];
  c = {};
  c.symbol = symbol;
  c.api = symbol;
  c.per_thread = trace::per_thread_variant(symbol);
  const auto it = known_calls().find(symbol);
  if (it != known_calls().end()) {
    c.api = it->second->api;
    c.cls = it->second->cls;
    c.known = true;
  }
  c.order_entry = trace::info(c.cls).order == trace::order_at::entry;
}

const call_ref& traced_process::unnamed_call(std::uint16_t id) {
  name_call(id, "call " + std::to_string(id));
  calls_[id].named = false;
  return calls_[id];
}

bool traced_process::may_miss(std::int64_t from_ns, std::int64_t until_ns) const {
  const auto meets = [&](const tick_span& s) {
    if (s.empty()) return false;
    const bool begun = s.first == 0 || to_ns(s.first) <= until_ns;
    return begun && (s.last == tick_span::no_end || from_ns <= to_ns(s.last));
  };
  return meets(gaps.dropped) || meets(gaps.unnamed) || meets(gaps.unseen) || meets(gaps.recycled) || meets(gaps.cut);
}

std::span<const std::uint64_t> traced_process::stack(std::uint32_t id) const {
  const auto it = stacks_.find(id);
  if (it == stacks_.end()) return {};
  return {addresses_.data() + it->second.offset, it->second.count};
}

void traced_process::add_stack(std::uint32_t id, std::span<const std::uint64_t> addresses) {
  // Ids are made from content, so a second record with the same id says the same.
  const auto [it, fresh] = stacks_.try_emplace(id);
  if (!fresh) return;
  it->second = {static_cast<std::uint32_t>(addresses_.size()), static_cast<std::uint32_t>(addresses.size())};
  addresses_.insert(addresses_.end(), addresses.begin(), addresses.end());
}

const traced_module* traced_process::module_at(std::uint64_t address) const {
  const auto it = std::find_if(modules_.rbegin(), modules_.rend(),
                               [&](const traced_module& m) { return m.begin <= address && address < m.end; });
  return it == modules_.rend() ? nullptr : &*it;
}

} // namespace capturesan
