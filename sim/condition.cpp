#include "sim/condition.h"

#include <utility>

namespace capturesan::sim {
namespace {

struct condition {
  unsigned value = 0;
  unsigned default_value = 0;
  bool assign_at_launch = false;
  bool claimed = false;
  std::uint64_t writes = 0;
};

std::unordered_map<CUgraphConditionalHandle, condition>& conditions() {
  static auto* const all = new std::unordered_map<CUgraphConditionalHandle, condition>;
  return *all;
}

} // namespace

CUgraphConditionalHandle new_condition(CUgraph graph, unsigned value, bool assign_at_launch) {
  static CUgraphConditionalHandle next = 1;
  const auto handle = next++;
  conditions()[handle] = {value, value, assign_at_launch, false, 0};
  graph->conditions.push_back(handle);
  return handle;
}

bool is_condition(CUgraphConditionalHandle handle) { return conditions().count(handle) != 0; }

bool claim_condition(CUgraphConditionalHandle handle) { return !std::exchange(conditions()[handle].claimed, true); }
bool is_claimed(CUgraphConditionalHandle handle) { return conditions()[handle].claimed; }

unsigned condition_value(CUgraphConditionalHandle handle) { return conditions()[handle].value; }
std::uint64_t condition_writes(CUgraphConditionalHandle handle) { return conditions()[handle].writes; }

void set_condition(CUgraphConditionalHandle handle, unsigned value) {
  if (!is_condition(handle)) return;
  conditions()[handle].value = value;
  ++conditions()[handle].writes;
}

void reset_conditions(const program& p) {
  if (conditions().empty()) return;
  for (const auto& s : p.steps) {
    if (const auto* conditional = std::get_if<conditional_call>(&s.work)) {
      condition& c = conditions()[conditional->handle];
      if (c.assign_at_launch) c.value = c.default_value;
    }
    for (const auto& inner : s.inner) reset_conditions(*inner);
  }
}

} // namespace capturesan::sim
