// Two graphs of one topology, node by node: which pointers, numbers and geometries differ. What differs between two
// captures of the same work with other inputs is what a replay has frozen.
#pragma once

#include <string>
#include <vector>

#include "analyzer/model.h"

namespace capturesan {

// An executable graph as it was recorded; made with model::keep_parameters.
struct graph_copy {
  int id = 0;
  std::string place; // exec_state::place
  std::vector<exec_node> nodes;
  std::vector<pointer_use> pointers;
};

struct graph_difference {
  enum class kind : std::uint8_t { topology, function, geometry, pointer, number, size };
  kind what = kind::number;
  std::uint32_t node = 0; // position in the graph
  std::string node_type, kernel;
  int parameter = -1;       // of a kernel
  std::uint64_t offset = 0; // in it, or in the parameters if they are not known one by one
  std::string before, after;
};

std::string_view name_of(graph_difference::kind k);

// In order of node. Pointers are compared by address if both graphs are of one process, and otherwise by which
// allocation, in order of first use, they point into and where. If the topologies differ, that is all that is said.
std::vector<graph_difference> compare_graphs(const graph_copy& a, const graph_copy& b, bool same_process);

} // namespace capturesan
