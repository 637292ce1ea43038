// Graphs: nodes, edges, copies of them.
#pragma once

#include "sim/objects.h"

#include <unordered_map>
#include <vector>

namespace capturesan::sim {

CUgraph new_graph();
void delete_graph(CUgraph graph);
CUgraphNode add_node(CUgraph graph, operation&& work, std::vector<dependency> before);
void delete_node(CUgraphNode node);

// False: the edge is there already.
bool add_edge(CUgraphNode from, CUgraphNode to, const CUgraphEdgeData& data);
bool remove_edge(CUgraphNode from, CUgraphNode to);

// A deep copy; `copies` receives the copy of each node.
CUgraph clone_graph(CUgraph graph, std::unordered_map<CUgraphNode, CUgraphNode>* copies = nullptr);

// Nodes so that each comes after those it depends on; empty if there is a cycle.
std::vector<CUgraphNode> in_order(CUgraph graph);

// Edges in the order of their targets.
struct edge {
  CUgraphNode from, to;
  CUgraphEdgeData data;
};
std::vector<edge> edges_of(CUgraph graph);

bool carries_data(const CUgraphEdgeData& data);

} // namespace capturesan::sim
