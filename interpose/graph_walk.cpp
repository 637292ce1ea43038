#include "interpose/graph_walk.h"

#include "interpose/functions.h"
#include "interpose/real.h"
#include "interpose/writer.h"

namespace capturesan::shim {

namespace {

struct walk {
  thread_state* t;
  u32 index = 0;
  bool whole = true;
  parameter_layout* layout; // scratch, in the walk's own mapping: too large for a stack of unknown size
  u8* block;
};

struct node_out {
  trace::node_record record{};
  const void* payload = nullptr;
};

u64 pack_grid(u32 x, u32 y, u32 z) { return u64{x} | u64{y & 0xffff} << 32 | u64{z & 0xffff} << 48; }
u64 pack_block(u32 x, u32 y, u32 z, u32 shared_bytes) {
  return u64{x & 0xffff} | u64{y & 0xffff} << 16 | u64{z & 0xffff} << 32 | u64{(shared_bytes + 1023) / 1024} << 48;
}

template <class Params>
void fill_kernel(walk& w, node_out& out, const Params& p, kernel_handle k) {
  read_layout(k, *w.layout);
  write_function(w.t, k, *w.layout);
  bool cut = false;
  const u32 bytes = pack_parameters(*w.layout, p.kernelParams, p.extra, w.block, max_parameter_bytes, cut);
  w.whole = w.whole && !cut;
  out.record.value[0] = k.key();
  out.record.value[1] = pack_grid(p.gridDimX, p.gridDimY, p.gridDimZ);
  out.record.value[2] = pack_block(p.blockDimX, p.blockDimY, p.blockDimZ, p.sharedMemBytes);
  out.record.bytes = bytes;
  out.payload = w.block;
}

bool read_kernel(walk& w, CUgraphNode node, node_out& out) {
  if (auto* get = driver_function<decltype(cuGraphKernelNodeGetParams_v2)>(call_id::cuGraphKernelNodeGetParams_v2)) {
    CUDA_KERNEL_NODE_PARAMS_v2 p{};
    if (get(node, &p) == CUDA_SUCCESS) {
      fill_kernel(w, out, p, {p.func, p.func == nullptr ? p.kern : nullptr});
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

struct copy_side {
  u64 address;
  u64 flags; // 1 host, 4 array
};

copy_side side_of(CUmemorytype type, CUdeviceptr device, const void* host, CUarray array, std::size_t x, std::size_t y,
                  std::size_t z, std::size_t pitch, std::size_t height) {
  const u64 start = x + y * pitch + z * pitch * height;
  switch (type) {
  case CU_MEMORYTYPE_HOST:
    return {reinterpret_cast<u64>(host) + start, 1};
  case CU_MEMORYTYPE_ARRAY:
    return {reinterpret_cast<u64>(array), 4};
  default:
    return {device + start, 0};
  }
}

bool read_memcpy(CUgraphNode node, node_out& out) {
  auto* get = driver_function<decltype(cuGraphMemcpyNodeGetParams)>(call_id::cuGraphMemcpyNodeGetParams);
  CUDA_MEMCPY3D p{};
  if (get == nullptr || get(node, &p) != CUDA_SUCCESS) {
    return false;
  }
  const copy_side dst = side_of(p.dstMemoryType, p.dstDevice, p.dstHost, p.dstArray, p.dstXInBytes, p.dstY, p.dstZ,
                                p.dstPitch, p.dstHeight);
  const copy_side src = side_of(p.srcMemoryType, p.srcDevice, p.srcHost, p.srcArray, p.srcXInBytes, p.srcY, p.srcZ,
                                p.srcPitch, p.srcHeight);
  out.record.value[0] = dst.address;
  out.record.value[1] = src.address;
  out.record.value[2] = p.WidthInBytes * (p.Height == 0 ? 1 : p.Height) * (p.Depth == 0 ? 1 : p.Depth);
  out.record.value[3] = dst.flags | src.flags << 1;
  return true;
}

bool read_memset(CUgraphNode node, node_out& out) {
  auto* get = driver_function<decltype(cuGraphMemsetNodeGetParams)>(call_id::cuGraphMemsetNodeGetParams);
  CUDA_MEMSET_NODE_PARAMS p{};
  if (get == nullptr || get(node, &p) != CUDA_SUCCESS) {
    return false;
  }
  out.record.value[0] = p.dst;
  out.record.value[1] = p.value;
  out.record.value[2] = p.height > 1 ? p.pitch * (p.height - 1) + p.width * p.elementSize : p.width * p.elementSize;
  return true;
}

bool read_other(CUgraphNode node, CUgraphNodeType type, node_out& out) {
  u64* v = out.record.value;
  switch (type) {
  case CU_GRAPH_NODE_TYPE_HOST: {
    auto* get = driver_function<decltype(cuGraphHostNodeGetParams)>(call_id::cuGraphHostNodeGetParams);
    CUDA_HOST_NODE_PARAMS p{};
    if (get == nullptr || get(node, &p) != CUDA_SUCCESS) {
      return false;
    }
    v[0] = reinterpret_cast<u64>(p.fn);
    v[1] = reinterpret_cast<u64>(p.userData);
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

void write_node(walk& w, const node_out& out) {
  const std::size_t slots = trace::slots_for(sizeof(out.record), out.record.bytes);
  void* at = reserve(w.t, slots);
  if (at == nullptr) {
    w.whole = false;
    return;
  }
  std::memcpy(at, &out.record, sizeof(out.record));
  static_cast<trace::node_record*>(at)->slots = static_cast<u8>(slots);
  if (out.record.bytes != 0) {
    std::memcpy(static_cast<u8*>(at) + sizeof(out.record), out.payload, out.record.bytes);
  }
  commit(w.t, slots);
}

void walk_graph(walk& w, CUgraph graph, u32 parent, int depth);

void walk_node(walk& w, CUgraphNode node, u32 parent, int depth) {
  auto* type_of = driver_function<decltype(cuGraphNodeGetType)>(call_id::cuGraphNodeGetType);
  CUgraphNodeType type{};
  if (type_of == nullptr || type_of(node, &type) != CUDA_SUCCESS) {
    w.whole = false;
    return;
  }
  node_out out;
  out.record.kind = trace::record_kind::node;
  out.record.type = static_cast<trace::node_type>(type);
  out.record.index = w.index++;
  out.record.node = reinterpret_cast<u64>(node);
  out.record.parent = parent;
  CUgraph child = nullptr;
  bool known = true;
  if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
    known = read_kernel(w, node, out);
  } else if (type == CU_GRAPH_NODE_TYPE_MEMCPY) {
    known = read_memcpy(node, out);
  } else if (type == CU_GRAPH_NODE_TYPE_MEMSET) {
    known = read_memset(node, out);
  } else if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
    auto* get = driver_function<decltype(cuGraphChildGraphNodeGetGraph)>(call_id::cuGraphChildGraphNodeGetGraph);
    known = get != nullptr && get(node, &child) == CUDA_SUCCESS;
    out.record.value[0] = reinterpret_cast<u64>(child);
  } else {
    known = read_other(node, type, out);
  }
  w.whole = w.whole && known;
  write_node(w, out);
  if (child != nullptr) {
    walk_graph(w, child, out.record.index + 1, depth + 1);
  }
}

void walk_graph(walk& w, CUgraph graph, u32 parent, int depth) {
  auto* get = driver_function<decltype(cuGraphGetNodes)>(call_id::cuGraphGetNodes);
  std::size_t n = node_count(graph);
  if (get == nullptr || depth > 16 || w.index + n > max_walked_nodes) {
    w.whole = false;
    return;
  }
  if (n == 0) {
    return;
  }
  const std::size_t bytes = n * sizeof(CUgraphNode);
  const long at = raw(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == -1) {
    w.whole = false;
    return;
  }
  auto* nodes = reinterpret_cast<CUgraphNode*>(at);
  if (get(graph, nodes, &n) == CUDA_SUCCESS) {
    for (std::size_t i = 0; i < n; ++i) {
      walk_node(w, nodes[i], parent, depth);
    }
  } else {
    w.whole = false;
  }
  raw(SYS_munmap, at, static_cast<long>(bytes));
}

} // namespace

u64 node_count(CUgraph graph) {
  auto* get = driver_function<decltype(cuGraphGetNodes)>(call_id::cuGraphGetNodes);
  std::size_t n = 0;
  return get != nullptr && graph != nullptr && get(graph, nullptr, &n) == CUDA_SUCCESS ? n : 0;
}

bool write_graph(thread_state* t, CUgraph graph) {
  const std::size_t bytes = sizeof(parameter_layout) + max_parameter_bytes;
  const long at = raw(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == -1) {
    return false;
  }
  walk w{t, 0, true, reinterpret_cast<parameter_layout*>(at), reinterpret_cast<u8*>(at) + sizeof(parameter_layout)};
  walk_graph(w, graph, 0, 0);
  raw(SYS_munmap, at, static_cast<long>(bytes));
  return w.whole;
}

} // namespace capturesan::shim
