// Executable graphs: the nodes of a graph in an order in which they can run, each with its own copy of the parameters.
#pragma once

#include "sim/objects.h"

#include <memory>
#include <unordered_map>
#include <vector>

namespace capturesan::sim {

struct program;

struct step {
  CUgraphNode node = nullptr; // it was made of; may be gone
  std::uint64_t node_id = 0;  // handles are reused, ids are not
  operation work;
  bool enabled = true;
  std::vector<std::uint32_t> before;           // indices of the steps it depends on
  std::vector<std::shared_ptr<program>> inner; // child graph; bodies of a conditional node
};

// The steps that do something at a launch, until memory, host kernels or parameters change. Shared with launches under
// way.
struct plan {
  std::shared_ptr<const std::vector<std::uint32_t>> steps;
  std::uint64_t memory = 0, kernels = 0, revision = 0;
};

struct program {
  std::vector<step> steps;
  std::unordered_map<CUgraphNode, std::uint32_t> index;
  std::uint64_t revision = 0; // changes with every change of a parameter
  plan current;
};

// Null, with a reason, if the graph cannot run.
struct build_result {
  std::shared_ptr<program> built;
  CUresult error = CUDA_SUCCESS;
  CUgraphInstantiateResult reason = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  CUgraphNode node = nullptr; // the offending one
};
build_result build(CUgraph graph);

CUresult instantiate(CUgraph graph, unsigned long long flags, CUgraphExec* result,
                     CUDA_GRAPH_INSTANTIATE_PARAMS* report);
void delete_exec(CUgraphExec exec);
CUresult launch(CUgraphExec exec, CUstream stream);

// The step of a node, or null; also in child graphs.
step* find_step(program& in, CUgraphNode node);
void touch(CUgraphExec exec);

// Whether what a node does may be exchanged for other work of an executable graph.
CUgraphExecUpdateResult replace_work(step& own, const operation& work);
// Gives a child program the work of another graph of the same structure.
CUgraphExecUpdateResult replace_inner(program& own, CUgraph graph);
CUresult update(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* report);

} // namespace capturesan::sim
