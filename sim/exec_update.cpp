// What may be exchanged in an executable graph, by single nodes or by a whole graph.
#include "sim/exec.h"
#include "sim/graph.h"
#include "sim/state.h"

namespace capturesan::sim {
namespace {

CUgraphExecUpdateResult check_kernel(const kernel_call& old, const kernel_call& fresh) {
  if (old.context != fresh.context) return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
  if (old.cooperative != fresh.cooperative) return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

// Documented: neither the kind of memory nor the device of an operand may change.
CUgraphExecUpdateResult check_copy(const copy_call& old, const copy_call& fresh) {
  const bool same = old.shape.srcMemoryType == fresh.shape.srcMemoryType &&
                    old.shape.dstMemoryType == fresh.shape.dstMemoryType && old.context == fresh.context;
  return same ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

// Documented: only sets of one dimension may change their extent.
CUgraphExecUpdateResult check_fill(const fill_call& old, const fill_call& fresh) {
  const bool same_shape = old.shape.width == fresh.shape.width && old.shape.height == fresh.shape.height &&
                          old.shape.elementSize == fresh.shape.elementSize;
  const bool linear = old.shape.height == 1 && fresh.shape.height == 1;
  return old.context == fresh.context && (same_shape || linear) ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                                                                : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

struct mismatch {
  CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  CUgraphNode node = nullptr, from = nullptr;
  explicit operator bool() const { return result != CU_GRAPH_EXEC_UPDATE_SUCCESS; }
};

mismatch check_node(const step& own, const step& fresh);

// Both in their order: the same graph built the same way gives the same order.
mismatch compare(const program& own, const program& fresh) {
  if (own.steps.size() != fresh.steps.size()) return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED};
  for (std::size_t i = 0; i < own.steps.size(); ++i) {
    const step &a = own.steps[i], &b = fresh.steps[i];
    if (type_of(a.work) != type_of(b.work)) return {CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, b.node};
    if (a.before != b.before) return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED}; // measured: names no node
  }
  for (std::size_t i = 0; i < own.steps.size(); ++i)
    if (auto found = check_node(own.steps[i], fresh.steps[i])) return found;
  return {};
}

CUgraphExecUpdateResult check_work(const operation& old, const operation& fresh) {
  if (old.index() != fresh.index()) return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
  if (const auto* k = std::get_if<kernel_call>(&old)) return check_kernel(*k, std::get<kernel_call>(fresh));
  if (const auto* c = std::get_if<copy_call>(&old)) return check_copy(*c, std::get<copy_call>(fresh));
  if (const auto* f = std::get_if<fill_call>(&old)) return check_fill(*f, std::get<fill_call>(fresh));
  return CU_GRAPH_EXEC_UPDATE_SUCCESS; // measured: also for memory nodes
}

mismatch check_node(const step& own, const step& fresh) {
  if (const auto result = check_work(own.work, fresh.work)) return {result, fresh.node};
  if (own.inner.size() != fresh.inner.size()) return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, fresh.node};
  for (std::size_t i = 0; i < own.inner.size(); ++i)
    if (auto found = compare(*own.inner[i], *fresh.inner[i])) return found;
  return {};
}

// The exec keeps its structure (and with it the nodes by which the program names its steps).
void take_work(program& own, program& fresh) {
  for (std::size_t i = 0; i < own.steps.size(); ++i) {
    own.steps[i].work = fresh.steps[i].work;
    for (std::size_t k = 0; k < own.steps[i].inner.size(); ++k)
      take_work(*own.steps[i].inner[k], *fresh.steps[i].inner[k]);
  }
  ++own.revision;
}

} // namespace

CUgraphExecUpdateResult replace_work(step& own, const operation& work) {
  const auto result = check_work(own.work, work);
  if (result == CU_GRAPH_EXEC_UPDATE_SUCCESS) own.work = work;
  return result;
}

CUgraphExecUpdateResult replace_inner(program& own, CUgraph graph) {
  auto fresh = build(graph);
  if (!fresh.built) return CU_GRAPH_EXEC_UPDATE_ERROR;
  const mismatch found = compare(own, *fresh.built);
  if (!found) take_work(own, *fresh.built);
  return found.result;
}

CUresult update(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* report) {
  auto fresh = build(graph);
  const mismatch found =
      fresh.built ? compare(*exec->program, *fresh.built) : mismatch{CU_GRAPH_EXEC_UPDATE_ERROR, fresh.node};
  if (report) *report = {found.result, found.node, found.from};
  if (found) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  take_work(*exec->program, *fresh.built);
  return CUDA_SUCCESS;
}

} // namespace capturesan::sim
