// The values of conditional nodes.
#pragma once

#include "sim/exec.h"

namespace capturesan::sim {

CUgraphConditionalHandle new_condition(CUgraph graph, unsigned value, bool assign_at_launch);
bool is_condition(CUgraphConditionalHandle handle);
// A handle belongs to one node; false: it has one.
bool claim_condition(CUgraphConditionalHandle handle);
bool is_claimed(CUgraphConditionalHandle handle);
unsigned condition_value(CUgraphConditionalHandle handle);
// How often the value was set, by a host kernel through capturesan_set_condition().
std::uint64_t condition_writes(CUgraphConditionalHandle handle);
void set_condition(CUgraphConditionalHandle handle, unsigned value);
// At a launch: back to the default where the handle says so.
void reset_conditions(const program& p);

} // namespace capturesan::sim
