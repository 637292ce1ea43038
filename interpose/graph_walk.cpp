#include "interpose/graph_walk.h"

#include "interpose/node_params.h"
#include "interpose/real.h"
#include "interpose/window.h"
#include "interpose/writer.h"

namespace capturesan::shim {

namespace {

struct walk {
  node_writer& w;
  u32 index = 0;
  bool memory_nodes = false, child_graphs = false;
};

bool read_kernel(node_writer& w, CUgraphNode node, node_out& out) {
  if (auto* get = driver_function<decltype(cuGraphKernelNodeGetParams_v2)>(call_id::cuGraphKernelNodeGetParams_v2)) {
    CUDA_KERNEL_NODE_PARAMS_v2 p{};
    if (get(node, &p) == CUDA_SUCCESS) {
      fill_kernel(w, out, p, {p.func, p.func == nullptr ? p.kern : nullptr});
      // A launch may have named the kernel: then no call tells where its function came from. The driver names both
      // (tests/golden, "handles: the node of a kernel launched by handle names which").
      out.record.value[3] = reinterpret_cast<u64>(p.kern);
      return true;
    }
  }
  auto* get = driver_function<decltype(cuGraphKernelNodeGetParams)>(call_id::cuGraphKernelNodeGetParams);
  CUDA_KERNEL_NODE_PARAMS_v1 p{};
  if (get == nullptr || get(node, &p) != CUDA_SUCCESS) {
    return false;
  }
  fill_kernel(w, out, p, {p.func, nullptr});
  return true;
}

// Whether a kernel on the device may give the node other parameters. The driver is asked only in a program that has
// made such a node, and not while a capture is open: nobody measured the call there.
bool device_may_update(CUgraphNode node) {
  if (!any_updatable_node()) {
    return false;
  }
  auto* get = driver_function<decltype(cuGraphKernelNodeGetAttribute)>(call_id::cuGraphKernelNodeGetAttribute);
  CUlaunchAttributeValue v{};
  if (get == nullptr || window_open() ||
      get(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &v) != CUDA_SUCCESS) {
    return true; // perhaps
  }
  return v.deviceUpdatableKernelNode.deviceUpdatable != 0;
}

bool read_memcpy(CUgraphNode node, node_out& out) {
  auto* get = driver_function<decltype(cuGraphMemcpyNodeGetParams)>(call_id::cuGraphMemcpyNodeGetParams);
  CUDA_MEMCPY3D p{};
  if (get == nullptr || get(node, &p) != CUDA_SUCCESS) {
    return false;
  }
  fill_memcpy(out, p);
  return true;
}

bool read_memset(CUgraphNode node, node_out& out) {
  auto* get = driver_function<decltype(cuGraphMemsetNodeGetParams)>(call_id::cuGraphMemsetNodeGetParams);
  CUDA_MEMSET_NODE_PARAMS p{};
  if (get == nullptr || get(node, &p) != CUDA_SUCCESS) {
    return false;
  }
  fill_memset(out, p);
  return true;
}

bool read_other(node_writer& w, CUgraphNode node, CUgraphNodeType type, node_out& out) {
  u64* v = out.record.value;
  switch (type) {
  case CU_GRAPH_NODE_TYPE_HOST: {
    auto* get = driver_function<decltype(cuGraphHostNodeGetParams)>(call_id::cuGraphHostNodeGetParams);
    CUDA_HOST_NODE_PARAMS p{};
    if (get == nullptr || get(node, &p) != CUDA_SUCCESS) {
      return false;
    }
    fill_host(out, p);
    return true;
  }
  case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
    auto* get = driver_function<decltype(cuGraphBatchMemOpNodeGetParams)>(call_id::cuGraphBatchMemOpNodeGetParams);
    CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 p{};
    if (get == nullptr || get(node, &p) != CUDA_SUCCESS) {
      return false;
    }
    fill_batch(w, out, p);
    return true;
  }
  case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
    auto* get = driver_function<decltype(cuGraphMemAllocNodeGetParams)>(call_id::cuGraphMemAllocNodeGetParams);
    CUDA_MEM_ALLOC_NODE_PARAMS p{};
    if (get == nullptr || get(node, &p) != CUDA_SUCCESS) {
      return false;
    }
    v[0] = p.dptr;
    v[1] = p.bytesize;
    return true;
  }
  case CU_GRAPH_NODE_TYPE_MEM_FREE: {
    auto* get = driver_function<decltype(cuGraphMemFreeNodeGetParams)>(call_id::cuGraphMemFreeNodeGetParams);
    CUdeviceptr p = 0;
    if (get == nullptr || get(node, &p) != CUDA_SUCCESS) {
      return false;
    }
    v[0] = p;
    return true;
  }
  case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD: {
    const bool wait = type == CU_GRAPH_NODE_TYPE_WAIT_EVENT;
    auto* get = driver_function<decltype(cuGraphEventWaitNodeGetEvent)>(wait ? call_id::cuGraphEventWaitNodeGetEvent
                                                                             : call_id::cuGraphEventRecordNodeGetEvent);
    CUevent e = nullptr;
    if (get == nullptr || get(node, &e) != CUDA_SUCCESS) {
      return false;
    }
    v[0] = reinterpret_cast<u64>(e);
    return true;
  }
  case CU_GRAPH_NODE_TYPE_CONDITIONAL: // its bodies cannot be asked for
    return false;
  default:
    return true;
  }
}

void walk_graph(walk& k, CUgraph graph, u32 parent, int depth);

void walk_node(walk& k, CUgraphNode node, u32 parent, int depth) {
  auto* type_of = driver_function<decltype(cuGraphNodeGetType)>(call_id::cuGraphNodeGetType);
  CUgraphNodeType type{};
  if (type_of == nullptr || type_of(node, &type) != CUDA_SUCCESS) {
    k.w.whole = false;
    return;
  }
  node_out out;
  out.record.kind = trace::record_kind::node;
  out.record.type = static_cast<trace::node_type>(type);
  out.record.index = k.index++;
  out.record.node = reinterpret_cast<u64>(node);
  out.record.parent = parent;
  k.memory_nodes = k.memory_nodes || type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE;
  k.child_graphs = k.child_graphs || type == CU_GRAPH_NODE_TYPE_GRAPH;
  CUgraph child = nullptr;
  bool known = true;
  if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
    known = read_kernel(k.w, node, out);
    out.record.value[4] = device_may_update(node) ? 1 : 0;
  } else if (type == CU_GRAPH_NODE_TYPE_MEMCPY) {
    known = read_memcpy(node, out);
  } else if (type == CU_GRAPH_NODE_TYPE_MEMSET) {
    known = read_memset(node, out);
  } else if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
    auto* get = driver_function<decltype(cuGraphChildGraphNodeGetGraph)>(call_id::cuGraphChildGraphNodeGetGraph);
    known = get != nullptr && get(node, &child) == CUDA_SUCCESS;
    out.record.value[0] = reinterpret_cast<u64>(child);
  } else {
    known = read_other(k.w, node, type, out);
  }
  k.w.whole = k.w.whole && known;
  write_node(k.w, out);
  if (child != nullptr) {
    walk_graph(k, child, out.record.index + 1, depth + 1);
  }
}

// Calls `visit` with every node of one graph.
template <class Visit>
void each_node(walk& k, CUgraph graph, Visit visit) {
  auto* get = driver_function<decltype(cuGraphGetNodes)>(call_id::cuGraphGetNodes);
  std::size_t n = node_count(graph);
  if (get == nullptr || n > max_walked_nodes) {
    k.w.whole = false;
    return;
  }
  if (n == 0) {
    return;
  }
  CUgraphNode few[32]; // on the caller's stack, of whatever size that is
  const std::size_t bytes = n * sizeof(CUgraphNode);
  long at = 0;
  CUgraphNode* nodes = few;
  if (n > sizeof(few) / sizeof(few[0])) {
    at = raw(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == -1) {
      k.w.whole = false;
      return;
    }
    nodes = reinterpret_cast<CUgraphNode*>(at);
  }
  if (get(graph, nodes, &n) == CUDA_SUCCESS) {
    for (std::size_t i = 0; i < n; ++i) {
      visit(nodes[i]);
    }
  } else {
    k.w.whole = false;
  }
  if (at != 0) {
    raw(SYS_munmap, at, static_cast<long>(bytes));
  }
}

void walk_graph(walk& k, CUgraph graph, u32 parent, int depth) {
  if (depth > 16 || k.index + node_count(graph) > max_walked_nodes) {
    k.w.whole = false;
    return;
  }
  each_node(k, graph, [&](CUgraphNode node) { walk_node(k, node, parent, depth); });
}

// Edges that carry data are an error for the older call (CUDA_ERROR_LOSSY_QUERY): it is only for drivers without _v2.
bool read_edges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data, std::size_t* n) {
  if (auto* get = driver_function<decltype(cuGraphGetEdges_v2)>(call_id::cuGraphGetEdges_v2)) {
    return get(graph, from, to, data, n) == CUDA_SUCCESS;
  }
  auto* get = driver_function<decltype(cuGraphGetEdges)>(call_id::cuGraphGetEdges);
  return get != nullptr && get(graph, from, to, n) == CUDA_SUCCESS;
}

// One edges record or more; none if the edges cannot be had.
void write_edges(walk& k, CUgraph graph) {
  constexpr std::size_t most = std::size_t{1} << 20, per_record = 1000;
  struct edge {
    CUgraphNode from, to;
  };
  std::size_t n = 0;
  if (!read_edges(graph, nullptr, nullptr, nullptr, &n) || n > most) {
    k.w.whole = false;
    return;
  }
  trace::payload_record head{};
  head.kind = trace::record_kind::edges;
  head.key = reinterpret_cast<u64>(graph);
  if (n == 0) {
    k.w.whole = write_payload(k.w.t, head, nullptr, 0) && k.w.whole;
    return;
  }
  const std::size_t bytes = n * (2 * sizeof(CUgraphNode) + sizeof(CUgraphEdgeData) + sizeof(edge));
  const long at =
      raw(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == -1) {
    k.w.whole = false;
    return;
  }
  auto* from = reinterpret_cast<CUgraphNode*>(at);
  auto* to = from + n;
  auto* pairs = reinterpret_cast<edge*>(to + n);
  auto* data = reinterpret_cast<CUgraphEdgeData*>(pairs + n);
  if (read_edges(graph, from, to, data, &n)) {
    for (std::size_t i = 0; i < n; ++i) {
      pairs[i] = {from[i], to[i]};
    }
    for (std::size_t i = 0; i < n; i += per_record) {
      const std::size_t count = n - i < per_record ? n - i : per_record;
      k.w.whole = write_payload(k.w.t, head, pairs + i, count * sizeof(edge)) && k.w.whole;
    }
  } else {
    k.w.whole = false;
  }
  raw(SYS_munmap, at, static_cast<long>(bytes));
}

// Of a graph and of the child graphs in it, so that memory nodes of a child can be ordered too.
void write_all_edges(walk& k, CUgraph graph, int depth) {
  write_edges(k, graph);
  auto* type_of = driver_function<decltype(cuGraphNodeGetType)>(call_id::cuGraphNodeGetType);
  auto* child_of = driver_function<decltype(cuGraphChildGraphNodeGetGraph)>(call_id::cuGraphChildGraphNodeGetGraph);
  if (!k.child_graphs || type_of == nullptr || child_of == nullptr || depth > 16) {
    return;
  }
  each_node(k, graph, [&](CUgraphNode node) {
    CUgraphNodeType type{};
    CUgraph child = nullptr;
    if (type_of(node, &type) == CUDA_SUCCESS && type == CU_GRAPH_NODE_TYPE_GRAPH &&
        child_of(node, &child) == CUDA_SUCCESS) {
      write_all_edges(k, child, depth + 1);
    }
  });
}

} // namespace

u64 node_count(CUgraph graph) {
  auto* get = driver_function<decltype(cuGraphGetNodes)>(call_id::cuGraphGetNodes);
  std::size_t n = 0;
  return get != nullptr && graph != nullptr && get(graph, nullptr, &n) == CUDA_SUCCESS ? n : 0;
}

void write_child(node_writer& w, u64 node, CUgraph child) {
  node_out out;
  out.record.kind = trace::record_kind::node;
  out.record.type = trace::node_type::graph;
  out.record.node = node;
  out.record.value[0] = reinterpret_cast<u64>(child);
  write_node(w, out);
  walk k{w, 1};
  walk_graph(k, child, 1, 1);
}

bool write_graph(thread_state* t, u64 exec, CUgraph graph) {
  node_scratch scratch(t, exec);
  if (!scratch.ok()) {
    return false;
  }
  walk k{scratch.writer};
  walk_graph(k, graph, 0, 0);
  if (k.memory_nodes) { // only these need their order judged
    write_all_edges(k, graph, 0);
  }
  return k.w.whole;
}

} // namespace capturesan::shim
