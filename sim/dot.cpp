#include "sim/dot.h"

#include "sim/graph.h"
#include "sim/work.h"

#include <fstream>

namespace capturesan::sim {
namespace {

struct labeller {
  std::string operator()(const empty_call&) const { return "EMPTY"; }
  std::string operator()(const kernel_call& c) const {
    return c.info->name + "\\n" + size(c.grid) + " x " + size(c.block) + ", " + std::to_string(c.shared_bytes) +
           " B shared";
  }
  std::string operator()(const copy_call& c) const {
    return "MEMCPY " + std::to_string(target_of(c.shape).bytes) + " B";
  }
  std::string operator()(const fill_call& c) const {
    return "MEMSET " + std::to_string(target_of(c.shape).bytes) + " B";
  }
  std::string operator()(const host_call&) const { return "HOST"; }
  std::string operator()(const child_call&) const { return "GRAPH"; }
  std::string operator()(const record_call&) const { return "EVENT_RECORD"; }
  std::string operator()(const wait_call&) const { return "WAIT_EVENT"; }
  std::string operator()(const alloc_call& c) const { return "MEM_ALLOC " + std::to_string(c.shape.bytesize) + " B"; }
  std::string operator()(const free_call&) const { return "MEM_FREE"; }
  std::string operator()(const memory_ops& c) const { return "BATCH_MEM_OP " + std::to_string(c.list.size()); }
  std::string operator()(const conditional_call&) const { return "CONDITIONAL"; }

  static std::string size(const extent& e) {
    return "(" + std::to_string(e.x) + "," + std::to_string(e.y) + "," + std::to_string(e.z) + ")";
  }
};

void write(std::ostream& out, CUgraph graph) {
  out << "subgraph cluster_" << graph->id << " {\nlabel=\"graph_" << graph->id << "\";\n";
  for (CUgraphNode node : graph->nodes) {
    out << "n" << node->id << " [shape=box, label=\"" << std::visit(labeller{}, node->work) << "\"];\n";
    if (const auto* child = std::get_if<child_call>(&node->work)) write(out, child->graph);
    if (const auto* conditional = std::get_if<conditional_call>(&node->work))
      for (CUgraph body : conditional->bodies) write(out, body);
  }
  for (const auto& e : edges_of(graph)) out << "n" << e.from->id << " -> n" << e.to->id << ";\n";
  out << "}\n";
}

} // namespace

CUresult write_dot(CUgraph graph, const char* path, unsigned) {
  std::ofstream file(path);
  file << "digraph dot {\n";
  write(file, graph);
  file << "}\n";
  return file.flush() ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

} // namespace capturesan::sim
