// Graphs as a whole: making, copying, edges, listing.
#include "sim/graph.h"

#include "sim/api.h"
#include "sim/dot.h"
#include "sim/state.h"

#include <algorithm>

namespace capturesan::sim {
namespace {

// The form in which the driver returns lists: without room, the number; with room, as many as fit, the rest cleared.
template <class T>
CUresult list_out(const std::vector<T>& found, T* out, std::size_t* count) {
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  if (!out) {
    *count = found.size();
    return CUDA_SUCCESS;
  }
  for (std::size_t i = 0; i < *count; ++i) out[i] = i < found.size() ? found[i] : T{};
  *count = std::min(*count, found.size());
  return CUDA_SUCCESS;
}

// Two or three lists in step.
CUresult edges_out(const std::vector<edge>& found, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                   bool with_data, std::size_t* count) {
  if (!count || (!from) != (!to)) return CUDA_ERROR_INVALID_VALUE;
  if (!from) {
    *count = found.size();
    return CUDA_SUCCESS;
  }
  const bool any = std::any_of(found.begin(), found.end(), [](const edge& e) { return carries_data(e.data); });
  if (any && !(with_data && data)) return CUDA_ERROR_LOSSY_QUERY;
  for (std::size_t i = 0; i < *count; ++i) {
    const edge e = i < found.size() ? found[i] : edge{};
    from[i] = e.from;
    to[i] = e.to;
    if (data) data[i] = e.data;
  }
  *count = std::min(*count, found.size());
  return CUDA_SUCCESS;
}

CUresult neighbours_out(const std::vector<dependency>& found, CUgraphNode* nodes, CUgraphEdgeData* data, bool with_data,
                        std::size_t* count) {
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  if (!nodes) {
    *count = found.size();
    return CUDA_SUCCESS;
  }
  const bool any = std::any_of(found.begin(), found.end(), [](const dependency& d) { return carries_data(d.data); });
  if (any && !(with_data && data)) return CUDA_ERROR_LOSSY_QUERY;
  for (std::size_t i = 0; i < *count; ++i) {
    const dependency d = i < found.size() ? found[i] : dependency{};
    nodes[i] = d.node;
    if (data) data[i] = d.data;
  }
  *count = std::min(*count, found.size());
  return CUDA_SUCCESS;
}

std::vector<dependency> dependents_of(CUgraphNode node) {
  std::vector<dependency> found;
  for (CUgraphNode next : node->after)
    for (const auto& d : next->before)
      if (d.node == node) found.push_back({next, d.data});
  return found;
}

CUresult check_edges(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, std::size_t count) {
  if (count && (!from || !to)) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i)
    if (!is_live(from[i]) || !is_live(to[i]) || from[i]->graph != graph || to[i]->graph != graph || from[i] == to[i])
      return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

bool has_memory_nodes(CUgraph graph) { return graph->has_memory_nodes; }

} // namespace

namespace api {

CUresult cuGraphCreate(CUgraph* result, unsigned flags) {
  if (!result || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *result = new_graph();
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph) {
  if (graph->parent) return CUDA_ERROR_INVALID_VALUE; // documented: a child graph belongs to its node
  delete_graph(graph);
  return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph* result, CUgraph graph) {
  if (!result) return CUDA_ERROR_INVALID_VALUE;
  if (has_memory_nodes(graph)) return CUDA_ERROR_NOT_SUPPORTED;
  *result = clone_graph(graph);
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(CUgraphNode* result, CUgraphNode original, CUgraph clone) {
  if (!result) return CUDA_ERROR_INVALID_VALUE;
  for (CUgraphNode node : clone->nodes)
    if (node->original == original) {
      *result = node;
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphDestroyNode(CUgraphNode node) {
  const bool memory = std::holds_alternative<alloc_call>(node->work) || std::holds_alternative<free_call>(node->work);
  if (memory) return CUDA_ERROR_NOT_SUPPORTED; // documented
  delete_node(node);
  return CUDA_SUCCESS;
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData* data, size_t count) {
  if (CUresult r = check_edges(graph, from, to, count)) return r;
  for (std::size_t i = 0; i < count; ++i)
    if (!add_edge(from[i], to[i], data ? data[i] : CUgraphEdgeData{})) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  return api::cuGraphAddDependencies_v2(graph, from, to, nullptr, count);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData*, size_t count) {
  if (CUresult r = check_edges(graph, from, to, count)) return r;
  for (std::size_t i = 0; i < count; ++i)
    if (!remove_edge(from[i], to[i])) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  return api::cuGraphRemoveDependencies_v2(graph, from, to, nullptr, count);
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  return list_out(graph->nodes, nodes, count);
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  std::vector<CUgraphNode> roots;
  for (CUgraphNode node : graph->nodes)
    if (node->before.empty()) roots.push_back(node);
  return list_out(roots, nodes, count);
}

CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data, size_t* count) {
  return edges_out(edges_of(graph), from, to, data, true, count);
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return edges_out(edges_of(graph), from, to, nullptr, false, count);
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  if (!type) return CUDA_ERROR_INVALID_VALUE;
  *type = type_of(node->work);
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data, size_t* count) {
  return neighbours_out(node->before, nodes, data, true, count);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, size_t* count) {
  return neighbours_out(node->before, nodes, nullptr, false, count);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data, size_t* count) {
  return neighbours_out(dependents_of(node), nodes, data, true, count);
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* nodes, size_t* count) {
  return neighbours_out(dependents_of(node), nodes, nullptr, false, count);
}

CUresult cuGraphDebugDotPrint(CUgraph graph, const char* path, unsigned flags) {
  return path ? write_dot(graph, path, flags) : CUDA_ERROR_INVALID_VALUE;
}

} // namespace api
} // namespace capturesan::sim
