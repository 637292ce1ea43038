// Programs that look as if they used what is gone, and are right; and what a neighbour of each does wrong. That memory
// of pools and mapped memory outlive a context, a graph the context it was instantiated in, a switch an update, and a
// launch a free that waits for it, was measured on an H200 with driver 580.159.04; the rest is documented.
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "examples/example.h"
#include "examples/mapped.h"

using namespace example;

namespace {

constexpr std::size_t large = std::size_t{2} << 20; // alone in its slab
constexpr unsigned one = 1;

CUgraph capture(CUstream stream, const std::function<void()>& work) {
  CUgraph graph = nullptr;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  work();
  CHECK(cuStreamEndCapture(stream, &graph));
  return graph;
}

CUgraphNode first_node(CUgraph graph) {
  CUgraphNode node = nullptr;
  std::size_t n = 1;
  CHECK(cuGraphGetNodes(graph, &node, &n));
  return node;
}

void set_kernel(CUgraphExec exec, CUgraphNode node, CUfunction kernel, CUdeviceptr address) {
  unsigned n = count, by = one;
  void* values[] = {&address, &n, &by};
  CUDA_KERNEL_NODE_PARAMS p{};
  p.func = kernel;
  p.gridDimX = p.gridDimY = p.gridDimZ = p.blockDimY = p.blockDimZ = 1;
  p.blockDimX = count;
  p.kernelParams = values;
  CHECK(cuGraphExecKernelNodeSetParams(exec, node, &p));
}

CUcontext make_context() {
  CUcontext context = nullptr;
  CUctxCreateParams params{};
  CHECK(cuCtxCreate(&context, &params, 0, 0));
  return context;
}

device* gpu = nullptr;
CUstream s = nullptr;

// The workspace of each step is as large as the step needs, and the graph gets its address if that is another one.
void workspace(bool in_order, bool looks) {
  CUgraphExec exec = nullptr;
  CUgraphNode node = nullptr;
  CUdeviceptr in_graph = 0;
  for (std::size_t step = 0; step < 8; ++step) {
    CUdeviceptr now = 0;
    const std::size_t size = bytes * (1 + step % 3);
    CHECK(in_order ? cuMemAllocAsync(&now, size, s) : cuMemAlloc(&now, size));
    if (exec == nullptr) {
      const CUgraph graph = capture(s, [&] { CHECK(launch(gpu->add, s, now, count, one)); });
      node = first_node(graph);
      exec = instantiate(graph);
      in_graph = now;
    } else if (looks && now != in_graph) {
      set_kernel(exec, node, gpu->add, in_graph = now);
    }
    CHECK(cuGraphLaunch(exec, s));
    CHECK(cuStreamSynchronize(s));
    CHECK(in_order ? cuMemFreeAsync(now, s) : cuMemFree(now));
    CHECK(cuStreamSynchronize(s));
  }
}

// The same with page-locked memory.
void staging() {
  const CUdeviceptr target = allocate(2 * bytes);
  CUgraphExec exec = nullptr;
  void* in_graph = nullptr;
  for (int step = 0; step < 4; ++step) {
    void* now = nullptr;
    CHECK(cuMemHostAlloc(&now, step % 2 == 0 ? bytes : 2 * bytes, 0));
    std::memset(now, step, bytes);
    if (exec == nullptr) exec = instantiate(capture(s, [&] { CHECK(cuMemcpyHtoDAsync(target, now, bytes, s)); }));
    if (in_graph != nullptr && in_graph != now) std::exit(3); // the driver gives it another place: not what is tested
    in_graph = now;
    replay(exec, s, 1);
    CHECK(cuMemFreeHost(now));
  }
}

// A context takes along what belongs to it; mapped memory and memory of pools do not.
void context_memory(bool of_pool) {
  const CUcontext second = make_context();
  const mapped area;
  CUdeviceptr block = 0;
  const CUstream t = make_stream();
  CHECK(of_pool ? cuMemAllocAsync(&block, bytes, t) : cuMemAlloc(&block, bytes));
  CHECK(cuStreamSynchronize(t));
  CHECK(cuCtxSetCurrent(gpu->context));
  const CUgraphExec exec = instantiate(capture(s, [&] {
    CHECK(launch(gpu->add, s, area.address, count, one));
    CHECK(launch(gpu->add, s, block, count, one));
  }));
  replay(exec, s, 1);
  CHECK(cuCtxDestroy(second));
  CHECK(cuCtxSetCurrent(gpu->context));
  replay(exec, s, 1);
}

void other_context() {
  const CUdeviceptr p = allocate();
  const CUgraph graph = capture(s, [&] { CHECK(launch(gpu->add, s, p, count, one)); });
  const CUcontext second = make_context();
  const CUgraphExec exec = instantiate(graph);
  CHECK(cuCtxDestroy(second));
  CHECK(cuCtxSetCurrent(gpu->context));
  replay(exec, s, 2);
}

void reload(bool told) {
  CUmodule module = nullptr;
  CUfunction add = nullptr;
  const auto load = [&] {
    CHECK(cuModuleLoadData(&module, example_kernels));
    CHECK(cuModuleGetFunction(&add, module, "add"));
  };
  load();
  const CUdeviceptr p = allocate();
  const CUgraph graph = capture(s, [&] { CHECK(launch(add, s, p, count, one)); });
  const CUgraphExec exec = instantiate(graph);
  replay(exec, s, 1);
  CHECK(cuModuleUnload(module));
  load();
  if (told) set_kernel(exec, first_node(graph), add, p);
  replay(exec, s, 1);
}

// Two kernels, of which one is switched off before the graph is updated.
void switched_off(bool off) {
  const CUdeviceptr p = allocate(), q = allocate(large);
  const auto make = [&](CUdeviceptr last) {
    return capture(s, [&] {
      CHECK(launch(gpu->add, s, p, count, one));
      CHECK(cuMemsetD8Async(last, 0, bytes, s));
    });
  };
  const CUgraph graph = make(q);
  CUgraphNode nodes[2] = {};
  std::size_t n = 2;
  CHECK(cuGraphGetNodes(graph, nodes, &n));
  CUgraphNodeType type{};
  CHECK(cuGraphNodeGetType(nodes[0], &type));
  const CUgraphNode set = nodes[type == CU_GRAPH_NODE_TYPE_MEMSET ? 0 : 1];
  const CUgraphExec exec = instantiate(graph);
  replay(exec, s, 1);
  if (off) CHECK(cuGraphNodeSetEnabled(exec, set, 0));
  CUgraphExecUpdateResultInfo info{};
  CHECK(cuGraphExecUpdate(exec, make(q), &info));
  unsigned on = 9;
  CHECK(cuGraphNodeGetEnabled(exec, set, &on));
  if (on != (off ? 0u : 1u)) std::exit(3);
  CHECK(cuMemFree(q));
  replay(exec, s, 1);
}

// The free waits for the launch, though the host makes it first.
void later_free(bool waits) {
  const CUstream t = make_stream();
  const CUdeviceptr flag = allocate();
  CUdeviceptr p = 0;
  CHECK(cuMemsetD8(flag, 0, bytes));
  CHECK(cuMemAllocAsync(&p, bytes, s));
  CHECK(cuStreamSynchronize(s));
  const CUgraphExec exec = instantiate(capture(s, [&] { CHECK(launch(gpu->add, s, p, count, one)); }));
  replay(exec, s, 1);
  if (waits) CHECK(cuStreamWaitValue32(t, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
  CHECK(cuMemFreeAsync(p, t));
  if (!waits) CHECK(cuStreamSynchronize(t));
  CHECK(cuGraphLaunch(exec, s));
  CHECK(cuStreamWriteValue32(s, flag, 1, 0));
  CHECK(cuStreamSynchronize(t));
  CHECK(cuStreamSynchronize(s));
}

// On a GPU a kernel may give the node another address; here only what the host does.
void updatable(bool by_launch, bool yes) {
  const CUdeviceptr p = allocate(large);
  CUdeviceptr address = p;
  unsigned n = count, by = one;
  void* values[] = {&address, &n, &by};
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
  attribute.value.deviceUpdatableKernelNode.deviceUpdatable = 1;
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = count;
  config.hStream = s;
  config.attrs = &attribute;
  config.numAttrs = yes && by_launch ? 1 : 0;
  const CUgraph graph = capture(s, [&] { CHECK(cuLaunchKernelEx(&config, gpu->add, values, nullptr)); });
  if (yes && !by_launch) CHECK(cuGraphKernelNodeSetAttribute(first_node(graph), attribute.id, &attribute.value));
  const CUgraphExec exec = instantiate(graph);
  CHECK(cuMemFree(p));
  allocate(large); // gets the address: only the driver's own checks are not to be met
  replay(exec, s, 1);
}

void conditional() {
  CUgraph graph = nullptr, same = nullptr;
  CUgraphConditionalHandle handle{};
  CHECK(cuGraphCreate(&graph, 0));
  CHECK(cuGraphConditionalHandleCreate(&handle, graph, gpu->context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.conditional.handle = handle;
  params.conditional.type = CU_GRAPH_COND_TYPE_IF;
  params.conditional.size = 1;
  params.conditional.ctx = gpu->context;
  CUgraphNode node = nullptr;
  CHECK(cuGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
  const CUdeviceptr p = allocate();
  CHECK(cuStreamBeginCaptureToGraph(s, params.conditional.phGraph_out[0], nullptr, nullptr, 0,
                                    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CHECK(launch(gpu->add, s, p, count, one));
  CHECK(cuStreamEndCapture(s, &same));
  replay(instantiate(graph), s, 1);
}

// What a captured graph names goes before the graph becomes part of another one.
void child(bool by_add_node, bool freed) {
  CUdeviceptr p = allocate();
  const CUgraph inner = capture(s, [&] { CHECK(launch(gpu->add, s, p, count, one)); });
  if (freed) {
    CHECK(cuMemFree(p));
    if (allocate(2 * bytes) != p) std::exit(3);
  }
  CUgraph outer = nullptr;
  CUgraphNode node = nullptr;
  CHECK(cuGraphCreate(&outer, 0));
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph.graph = inner;
  CHECK(by_add_node ? cuGraphAddNode(&node, outer, nullptr, nullptr, 0, &params)
                    : cuGraphAddChildGraphNode(&node, outer, nullptr, 0, inner));
  replay(instantiate(outer), s, 1);
}

// A set over three pieces of mapped memory, in one stretch or in two rows with the second piece between them.
void pieces(bool rows) {
  const mapped first;
  const std::size_t piece = first.size;
  CUdeviceptr area = 0;
  CHECK(cuMemAddressReserve(&area, 3 * piece, 0, 0, 0));
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemAccessDesc access{};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  for (int i = 0; i < 3; ++i) {
    CUmemGenericAllocationHandle pages{};
    CHECK(cuMemCreate(&pages, piece, &properties, 0));
    CHECK(cuMemMap(area + i * piece, piece, 0, pages, 0));
  }
  CHECK(cuMemSetAccess(area, 3 * piece, &access, 1));
  const CUgraphExec exec = instantiate(capture(s, [&] {
    CHECK(rows ? cuMemsetD2D8Async(area, 2 * piece, 0, piece, 2, s) : cuMemsetD8Async(area, 0, 3 * piece, s));
  }));
  replay(exec, s, 1);
  CHECK(cuMemUnmap(area + piece, piece));
  replay(exec, s, 1);
  if (rows) std::exit(0); // the simulated driver checks the whole stretch, and nothing works any more
}

void set_back(bool freed) {
  const CUdeviceptr p = allocate(large), q = allocate(large);
  const CUgraph graph = capture(s, [&] { CHECK(launch(gpu->add, s, p, count, one)); });
  const CUgraphExec exec = instantiate(graph);
  set_kernel(exec, first_node(graph), gpu->add, q);
  if (freed) CHECK(cuMemFree(p));
  replay(exec, s, 1);
  set_kernel(exec, first_node(graph), gpu->add, p);
  replay(exec, s, 1);
}

const std::map<std::string, std::function<void()>> cases = {
    {"workspace", [] { workspace(false, true); }},
    {"workspace-of-pool", [] { workspace(true, true); }},
    {"staging", staging},
    {"context-pool", [] { context_memory(true); }},
    {"context-own", [] { context_memory(false); }},
    {"other-context", other_context},
    {"reload", [] { reload(true); }},
    {"reload-untold", [] { reload(false); }},
    {"switched-off", [] { switched_off(true); }},
    {"left-on", [] { switched_off(false); }},
    {"later-free", [] { later_free(true); }},
    {"earlier-free", [] { later_free(false); }},
    {"updatable-launch", [] { updatable(true, true); }},
    {"updatable-node", [] { updatable(false, true); }},
    {"not-updatable", [] { updatable(true, false); }},
    {"conditional", conditional},
    {"child", [] { child(false, false); }},
    {"child-freed", [] { child(false, true); }},
    {"child-node-freed", [] { child(true, true); }},
    {"pieces", [] { pieces(false); }},
    {"rows", [] { pieces(true); }},
    {"set-back", [] { set_back(false); }},
    {"set-back-freed", [] { set_back(true); }},
};

} // namespace

int main(int argc, char** argv) {
  const auto what = argc == 2 ? cases.find(argv[1]) : cases.end();
  if (what == cases.end()) return 2;
  device here;
  gpu = &here;
  s = make_stream();
  what->second();
  CHECK(cuStreamDestroy(s));
}
