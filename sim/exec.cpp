#include "sim/exec.h"

#include "sim/condition.h"
#include "sim/graph.h"
#include "sim/memory.h"
#include "sim/state.h"
#include "sim/user_object.h"
#include "sim/work.h"

#include <algorithm>

namespace capturesan::sim {
namespace {

build_result failed(CUresult error, CUgraphInstantiateResult reason, CUgraphNode node) {
  return {nullptr, error, reason, node};
}

// Measured: the target of a set must be allocated when the graph is instantiated, and both ends of a copy on the device
// (there the real driver answers UNKNOWN for the source, and crashes for the target). Nothing else is checked.
CUresult check_memory(const operation& work) {
  const auto known = [](copy_range r) { return r.bytes == 0 || state().memory.names(r.start, r.bytes); };
  if (const auto* fill = std::get_if<fill_call>(&work))
    return known(target_of(fill->shape)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  const auto* copy = std::get_if<copy_call>(&work);
  const bool inside =
      copy && copy->shape.srcMemoryType == CU_MEMORYTYPE_DEVICE && copy->shape.dstMemoryType == CU_MEMORYTYPE_DEVICE;
  if (!inside || (known(source_of(copy->shape)) && known(target_of(copy->shape)))) return CUDA_SUCCESS;
  return CUDA_ERROR_UNKNOWN;
}

// Documented: what the bodies of conditional nodes may hold.
bool can_be_conditional(const operation& work) {
  return std::holds_alternative<kernel_call>(work) || std::holds_alternative<empty_call>(work) ||
         std::holds_alternative<child_call>(work) || std::holds_alternative<fill_call>(work) ||
         std::holds_alternative<copy_call>(work) || std::holds_alternative<conditional_call>(work);
}

// Child graphs and bodies, each a program of its own.
build_result build_inner(step& own) {
  std::vector<CUgraph> graphs;
  if (const auto* child = std::get_if<child_call>(&own.work))
    graphs = {child->graph};
  else if (const auto* conditional = std::get_if<conditional_call>(&own.work))
    graphs = conditional->bodies;
  for (CUgraph graph : graphs) {
    auto inner = build(graph);
    if (!inner.built) return inner;
    if (std::holds_alternative<conditional_call>(own.work))
      for (const auto& s : inner.built->steps)
        if (!can_be_conditional(s.work))
          return failed(CUDA_ERROR_INVALID_VALUE, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, s.node);
    own.inner.push_back(std::move(inner.built));
  }
  return {};
}

bool has_effect(const step& s) {
  if (!s.enabled) return false;
  if (std::holds_alternative<empty_call>(s.work) || std::holds_alternative<wait_call>(s.work)) return false;
  const auto* kernel = std::get_if<kernel_call>(&s.work);
  return !kernel || has_host_kernel(kernel->info->name) || meets_dead_memory(*kernel);
}

std::shared_ptr<const std::vector<std::uint32_t>> plan_of(program& p) {
  plan& now = p.current;
  const auto memory = memory_generation(), kernels = host_kernel_generation();
  if (now.steps && now.memory == memory && now.kernels == kernels && now.revision == p.revision) return now.steps;
  auto steps = std::make_shared<std::vector<std::uint32_t>>();
  for (std::uint32_t i = 0; i < p.steps.size(); ++i)
    if (has_effect(p.steps[i])) steps->push_back(i);
  now = {steps, memory, kernels, p.revision};
  return steps;
}

void run_program(const std::shared_ptr<program>& p, CUcontext context);

void run_conditional(const step& own, CUcontext context) {
  const auto conditional = std::get<conditional_call>(own.work);
  const auto bodies = own.inner;
  unsigned value = condition_value(conditional.handle);
  switch (conditional.type) {
  case CU_GRAPH_COND_TYPE_IF:
    if (value)
      run_program(bodies[0], context);
    else if (bodies.size() > 1)
      run_program(bodies[1], context);
    return;
  case CU_GRAPH_COND_TYPE_SWITCH:
    if (value < bodies.size()) run_program(bodies[value], context);
    return;
  case CU_GRAPH_COND_TYPE_WHILE:
    // Only a kernel can end the loop, and most do not run: it goes on as long as each round sets the condition anew.
    for (bool again = true; value && again; value = condition_value(conditional.handle)) {
      const auto before = condition_writes(conditional.handle);
      run_program(bodies[0], context);
      again = condition_writes(conditional.handle) != before;
    }
    return;
  }
}

// The lock is released where the program's own functions run, so everything is looked up again after each step.
void run_program(const std::shared_ptr<program>& p, CUcontext context) {
  const auto steps = plan_of(*p);
  for (const auto i : *steps) {
    if (!is_live(context)) return;
    const step& s = p->steps[i];
    if (std::holds_alternative<child_call>(s.work))
      run_program(s.inner[0], context);
    else if (std::holds_alternative<conditional_call>(s.work))
      run_conditional(s, context);
    else
      replay(s.work, context);
  }
}

template <class F>
void for_each_step(program& p, F&& act) {
  for (auto& s : p.steps) {
    act(s);
    for (const auto& inner : s.inner) for_each_step(*inner, act);
  }
}

// Memory that an earlier launch allocated and nobody freed.
CUresult prepare_memory(CUgraphExec exec) {
  const bool free_first = exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
  CUresult result = CUDA_SUCCESS;
  for_each_step(*exec->program, [&](step& s) {
    const auto* call = std::get_if<alloc_call>(&s.work);
    if (!call || !call->block->allocated) return;
    if (free_first)
      set_allocated(*call->block, false);
    else
      result = CUDA_ERROR_INVALID_VALUE;
  });
  return result;
}

CUgraph graph_of(const program& p) {
  CUgraph graph = new_graph();
  std::vector<CUgraphNode> nodes;
  for (const auto& s : p.steps) {
    operation work = s.work;
    if (auto* child = std::get_if<child_call>(&work)) child->graph = graph_of(*s.inner[0]);
    std::vector<dependency> before;
    for (auto i : s.before) before.push_back({nodes[i], {}});
    nodes.push_back(add_node(graph, std::move(work), std::move(before)));
  }
  return graph;
}

} // namespace

build_result build(CUgraph graph) {
  const auto order = in_order(graph);
  if (order.empty() && !graph->nodes.empty())
    return failed(CUDA_ERROR_INVALID_VALUE, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, nullptr);
  for (const auto handle : graph->conditions)
    if (!is_claimed(handle))
      return failed(CUDA_ERROR_INVALID_VALUE, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED, nullptr);
  auto built = std::make_shared<program>();
  built->steps.reserve(order.size());
  built->index.reserve(order.size());
  for (CUgraphNode node : order) {
    if (const CUresult r = check_memory(node->work)) return failed(r, CUDA_GRAPH_INSTANTIATE_ERROR, node);
    step s;
    s.node = node;
    s.node_id = node->id;
    s.work = node->work;
    for (const auto& d : node->before) s.before.push_back(built->index[d.node]);
    std::sort(s.before.begin(), s.before.end());
    if (auto inner = build_inner(s); inner.error) return inner;
    built->index[node] = static_cast<std::uint32_t>(built->steps.size());
    built->steps.push_back(std::move(s));
  }
  return {std::move(built), CUDA_SUCCESS, CUDA_GRAPH_INSTANTIATE_SUCCESS, nullptr};
}

CUresult instantiate(CUgraph graph, unsigned long long flags, CUgraphExec* result,
                     CUDA_GRAPH_INSTANTIATE_PARAMS* report) {
  constexpr unsigned long long known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                       CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH |
                                       CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  if (CUcontext context = current_context(); context && context->fault) return context->fault;
  if (!result || flags & ~known) return CUDA_ERROR_INVALID_VALUE;
  // Measured: a graph with memory nodes has at most one exec at a time.
  if (graph->has_memory_nodes && graph->memory_exec && is_live(graph->memory_exec)) return CUDA_ERROR_NOT_SUPPORTED;
  auto made = build(graph);
  if (report) {
    report->result_out = made.reason;
    report->hErrNode_out = made.node;
  }
  if (!made.built) return made.error;
  CUgraphExec exec = create<CUgraphExec_st>();
  exec->id = state().next_id++;
  exec->graph = graph;
  exec->graph_id = graph->id;
  exec->context = current_context();
  exec->flags = flags & ~static_cast<unsigned long long>(
                            CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY); // measured: not read back
  exec->program = std::move(made.built);
  exec->user_objects = graph->user_objects;
  retain_user_objects(exec->user_objects);
  if (graph->has_memory_nodes) graph->memory_exec = exec;
  *result = exec;
  return CUDA_SUCCESS;
}

void delete_exec(CUgraphExec exec) {
  if (is_live(exec->graph) && exec->graph->memory_exec == exec) exec->graph->memory_exec = nullptr;
  const auto references = exec->user_objects;
  destroy(exec);
  release_user_objects(references);
}

CUresult launch(CUgraphExec exec, CUstream stream) {
  const auto own = exec->program; // outlives the exec while the lock is released
  if (stream->capture) return submit(stream, child_call{graph_of(*own)}); // only where refusals are off
  if (CUresult r = prepare_memory(exec)) return r;
  reset_conditions(*own);
  run_program(own, stream->context);
  return CUDA_SUCCESS;
}

step* find_step(program& in, CUgraphNode node) {
  auto found = in.index.find(node);
  if (found != in.index.end() && in.steps[found->second].node_id == node->id) return &in.steps[found->second];
  for (auto& s : in.steps)
    for (const auto& inner : s.inner)
      if (step* deeper = find_step(*inner, node)) return deeper;
  return nullptr;
}

void touch(CUgraphExec exec) {
  ++exec->program->revision;
  for (auto& s : exec->program->steps)
    for (const auto& inner : s.inner) ++inner->revision;
}

} // namespace capturesan::sim
