#include "sim/graph.h"

#include "sim/state.h"
#include "sim/user_object.h"

#include <algorithm>
#include <cstring>

namespace capturesan::sim {

CUgraphNodeType type_of(const operation& work) {
  static constexpr CUgraphNodeType types[] = {
      CU_GRAPH_NODE_TYPE_EMPTY,        CU_GRAPH_NODE_TYPE_KERNEL,       CU_GRAPH_NODE_TYPE_MEMCPY,
      CU_GRAPH_NODE_TYPE_MEMSET,       CU_GRAPH_NODE_TYPE_HOST,         CU_GRAPH_NODE_TYPE_GRAPH,
      CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_WAIT_EVENT,   CU_GRAPH_NODE_TYPE_MEM_ALLOC,
      CU_GRAPH_NODE_TYPE_MEM_FREE,     CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, CU_GRAPH_NODE_TYPE_CONDITIONAL};
  static_assert(std::size(types) == std::variant_size_v<operation>);
  return types[work.index()];
}

CUgraph new_graph() {
  CUgraph graph = create<CUgraph_st>();
  graph->id = state().next_id++;
  return graph;
}

namespace {

void delete_owned(const operation& work) {
  if (const auto* child = std::get_if<child_call>(&work)) {
    if (child->graph) delete_graph(child->graph);
  } else if (const auto* conditional = std::get_if<conditional_call>(&work)) {
    for (CUgraph body : conditional->bodies) delete_graph(body);
  }
}

} // namespace

void delete_graph(CUgraph graph) {
  for (CUgraphNode node : graph->nodes) {
    delete_owned(node->work);
    destroy(node);
  }
  const auto references = graph->user_objects;
  destroy(graph);
  release_user_objects(references);
}

CUgraphNode add_node(CUgraph graph, operation&& work, std::vector<dependency> before) {
  CUgraphNode node = create<CUgraphNode_st>();
  node->graph = graph;
  node->id = state().next_id++;
  node->work = std::move(work);
  node->before = std::move(before);
  for (const auto& d : node->before) d.node->after.push_back(node);
  if (auto* child = std::get_if<child_call>(&node->work))
    if (child->graph) child->graph->parent = node;
  if (auto* conditional = std::get_if<conditional_call>(&node->work))
    for (CUgraph body : conditional->bodies) body->parent = node;
  if (std::holds_alternative<alloc_call>(node->work) || std::holds_alternative<free_call>(node->work))
    graph->has_memory_nodes = true;
  graph->nodes.push_back(node);
  return node;
}

void delete_node(CUgraphNode node) {
  for (const auto& d : node->before) std::erase(d.node->after, node);
  for (CUgraphNode next : node->after) std::erase_if(next->before, [&](const dependency& d) { return d.node == node; });
  const auto is_node = [&](const dependency& d) { return d.node == node; };
  for (const auto& open : state().captures)
    if (open->graph == node->graph)
      for (CUstream stream : open->streams) std::erase_if(stream->tail, is_node);
  std::erase(node->graph->nodes, node);
  delete_owned(node->work);
  destroy(node);
}

bool add_edge(CUgraphNode from, CUgraphNode to, const CUgraphEdgeData& data) {
  const bool known =
      std::any_of(to->before.begin(), to->before.end(), [&](const dependency& d) { return d.node == from; });
  if (known) return false;
  to->before.push_back({from, data});
  from->after.push_back(to);
  return true;
}

bool remove_edge(CUgraphNode from, CUgraphNode to) {
  const auto removed = std::erase_if(to->before, [&](const dependency& d) { return d.node == from; });
  std::erase(from->after, to);
  return removed != 0;
}

CUgraph clone_graph(CUgraph graph, std::unordered_map<CUgraphNode, CUgraphNode>* copies) {
  std::unordered_map<CUgraphNode, CUgraphNode> own;
  auto& known = copies ? *copies : own;
  CUgraph fresh = new_graph();
  fresh->context = graph->context;
  for (CUgraphNode node : graph->nodes) {
    operation work = node->work;
    if (auto* child = std::get_if<child_call>(&work))
      child->graph = clone_graph(child->graph, &known);
    else if (auto* conditional = std::get_if<conditional_call>(&work))
      for (CUgraph& body : conditional->bodies) body = clone_graph(body, &known);
    CUgraphNode copy = add_node(fresh, std::move(work), {});
    copy->original = node;
    known[node] = copy;
  }
  for (CUgraphNode node : graph->nodes)
    for (const auto& d : node->before) add_edge(known[d.node], known[node], d.data);
  fresh->user_objects = graph->user_objects;
  retain_user_objects(fresh->user_objects);
  return fresh;
}

std::vector<CUgraphNode> in_order(CUgraph graph) {
  std::unordered_map<CUgraphNode, std::size_t> waiting;
  std::vector<CUgraphNode> ordered;
  ordered.reserve(graph->nodes.size());
  waiting.reserve(graph->nodes.size());
  for (CUgraphNode node : graph->nodes) {
    waiting[node] = node->before.size();
    if (node->before.empty()) ordered.push_back(node);
  }
  for (std::size_t i = 0; i < ordered.size(); ++i)
    for (CUgraphNode next : ordered[i]->after)
      if (--waiting[next] == 0) ordered.push_back(next);
  if (ordered.size() != graph->nodes.size()) ordered.clear();
  return ordered;
}

std::vector<edge> edges_of(CUgraph graph) {
  std::vector<edge> all;
  for (CUgraphNode node : graph->nodes)
    for (const auto& d : node->before) all.push_back({d.node, node, d.data});
  return all;
}

bool carries_data(const CUgraphEdgeData& data) {
  const CUgraphEdgeData none{};
  return std::memcmp(&data, &none, sizeof none) != 0;
}

} // namespace capturesan::sim
