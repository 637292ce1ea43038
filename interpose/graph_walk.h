// Writes what an exec will replay: one node record per node, before the event of the instantiation or update.
#pragma once

#include "interpose/cuda_abi.h"
#include "interpose/node_params.h"

namespace capturesan::shim {

// Nodes of the graph with their operands, child graphs included. Returns false if something had to be left out (more
// nodes than max_walked_nodes, bodies of conditional nodes, parameters that cannot be had).
bool write_graph(thread_state* t, u64 exec, CUgraph graph);

// The new nodes of a child-graph node of an exec: a record of the node itself, with index 0, then those below it.
void write_child(node_writer& w, u64 node, CUgraph child);

inline constexpr u32 max_walked_nodes = 1u << 20;

// Number of nodes of a graph, 0 if it cannot be asked.
u64 node_count(CUgraph graph);

} // namespace capturesan::shim
