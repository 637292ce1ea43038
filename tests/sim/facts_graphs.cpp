// Graphs: nodes, edges, child and conditional graphs, instantiation, listing.
#include "facts.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace facts {
namespace {

void tell_types(kit& k, CUgraph graph) {
  CUgraphNode nodes[16] = {};
  std::size_t count = 16;
  REQUIRE(cuGraphGetNodes(graph, nodes, &count));
  for (std::size_t i = 0; i < count; ++i) {
    CUgraphNodeType type{};
    REQUIRE(cuGraphNodeGetType(nodes[i], &type));
    k << type;
  }
}

CUgraphNode only_node(CUgraph graph) {
  CUgraphNode node = nullptr;
  std::size_t count = 1;
  REQUIRE(cuGraphGetNodes(graph, &node, &count));
  return node;
}

// Memory types and extent of a captured copy.
template <class F>
void tell_copy(kit& k, F&& copy) {
  k.start();
  CUgraph graph = k.captured([&] { k << copy(); });
  CUDA_MEMCPY3D p{};
  REQUIRE(cuGraphMemcpyNodeGetParams(only_node(graph), &p));
  k << p.srcMemoryType << p.dstMemoryType << static_cast<long long>(p.WidthInBytes) << static_cast<long long>(p.Height)
    << static_cast<long long>(p.Depth);
}

void tell_set(kit& k, CUgraph graph) {
  CUDA_MEMSET_NODE_PARAMS p{};
  REQUIRE(cuGraphMemsetNodeGetParams(only_node(graph), &p));
  k << p.value << p.elementSize << static_cast<long long>(p.width) << static_cast<long long>(p.height)
    << static_cast<long long>(p.pitch);
}

CUresult add_conditional(const kit& k, CUgraph graph, CUgraphConditionalHandle handle, CUgraphConditionalNodeType type,
                         unsigned size, CUgraphNodeParams& params) {
  params = {};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.conditional.handle = handle;
  params.conditional.type = type;
  params.conditional.size = size;
  params.conditional.ctx = k.context;
  CUgraphNode node = nullptr;
  return cuGraphAddNode(&node, graph, nullptr, nullptr, 0, &params);
}

CUgraphConditionalHandle make_condition(const kit& k, CUgraph graph, unsigned value,
                                        unsigned flags = CU_GRAPH_COND_ASSIGN_DEFAULT) {
  CUgraphConditionalHandle handle = 0;
  REQUIRE(cuGraphConditionalHandleCreate(&handle, graph, k.context, value, flags));
  return handle;
}

// Whether the body of an IF ran at each of two launches.
void tell_if(kit& k, unsigned value) {
  k.start();
  CUgraph graph = k.make_graph();
  CUgraphNodeParams params;
  k << add_conditional(k, graph, make_condition(k, graph, value), CU_GRAPH_COND_TYPE_IF, 1, params);
  k.add_kernel(params.conditional.phGraph_out[0], k.buffer);
  k.write(k.buffer, 0);
  CUgraphExec exec = k.instantiate(graph);
  for (int i = 0; i < 2; ++i) k << cuGraphLaunch(exec, k.stream) << cuStreamSynchronize(k.stream) << k.read(k.buffer);
}

} // namespace

const std::vector<fact> graph_facts = {
    {"types of captured nodes: kernel, set, copy, host, record, wait, write value",
     [](kit& k) {
       k.start();
       CUevent e = k.make_event();
       CUgraph graph = k.captured([&] {
         REQUIRE(k.launch(k.stream));
         REQUIRE(cuMemsetD8Async(k.buffer, 0, 4, k.stream));
         REQUIRE(cuMemcpyDtoDAsync(k.buffer, k.buffer + 64, 4, k.stream));
         REQUIRE(cuLaunchHostFunc(
             k.stream, [](void*) {}, nullptr));
         REQUIRE(cuEventRecordWithFlags(e, k.stream, CU_EVENT_RECORD_EXTERNAL));
         REQUIRE(cuStreamWaitEvent(k.stream, e, CU_EVENT_WAIT_EXTERNAL));
         REQUIRE(cuStreamWriteValue32(k.stream, k.buffer, 1, 0));
       });
       tell_types(k, graph);
     }},
    {"types of captured nodes: allocation and free",
     [](kit& k) {
       k.start();
       CUdeviceptr a = 0;
       tell_types(k, k.captured([&] {
         REQUIRE(cuMemAllocAsync(&a, 64, k.stream));
         REQUIRE(cuMemFreeAsync(a, k.stream));
       }));
     }},
    {"captured launch of an exec: type of the node; nodes of the child",
     [](kit& k) {
       k.start();
       CUgraph inner = k.make_graph();
       CUgraphNode n = k.add_kernel(inner, k.buffer);
       k.add_kernel(inner, k.buffer, {n});
       CUgraphExec exec = k.instantiate(inner);
       k.begin(k.stream);
       k << cuGraphLaunch(exec, k.stream);
       CUgraph graph = nullptr;
       k << cuStreamEndCapture(k.stream, &graph);
       if (!graph) return;
       tell_types(k, graph);
       CUgraph child = nullptr;
       std::size_t count = 0;
       k << cuGraphChildGraphNodeGetGraph(only_node(graph), &child);
       if (child) k << cuGraphGetNodes(child, nullptr, &count) << static_cast<long long>(count);
     }},
    {"captured copy: HtoD",
     [](kit& k) {
       static char host[64];
       tell_copy(k, [&] { return cuMemcpyHtoDAsync(k.buffer, host, 64, k.stream); });
     }},
    {"captured copy: DtoH",
     [](kit& k) {
       static char host[64];
       tell_copy(k, [&] { return cuMemcpyDtoHAsync(host, k.buffer, 64, k.stream); });
     }},
    {"captured copy: DtoD",
     [](kit& k) { tell_copy(k, [&] { return cuMemcpyDtoDAsync(k.buffer, k.buffer + 64, 64, k.stream); }); }},
    {"captured copy: general form, device to device",
     [](kit& k) { tell_copy(k, [&] { return cuMemcpyAsync(k.buffer, k.buffer + 64, 64, k.stream); }); }},
    {"captured copy: general form, host to device",
     [](kit& k) {
       static char host[64];
       tell_copy(k, [&] { return cuMemcpyAsync(k.buffer, reinterpret_cast<CUdeviceptr>(host), 64, k.stream); });
     }},
    {"captured set: one dimension",
     [](kit& k) {
       k.start();
       tell_set(k, k.captured([&] { REQUIRE(cuMemsetD32Async(k.buffer, 7, 16, k.stream)); }));
     }},
    {"captured set: two dimensions",
     [](kit& k) {
       k.start();
       tell_set(k, k.captured([&] { REQUIRE(cuMemsetD2D16Async(k.buffer, 512, 7, 16, 4, k.stream)); }));
     }},
    {"captured launch: description",
     [](kit& k) {
       k.start();
       CUgraph graph = k.captured([&] { REQUIRE(k.launch(k.stream)); });
       CUDA_KERNEL_NODE_PARAMS p{};
       k << cuGraphKernelNodeGetParams(only_node(graph), &p) << (p.func == k.store) << (p.kern == nullptr)
         << (p.ctx == nullptr) << (p.kernelParams != nullptr) << (p.extra == nullptr)
         << (p.kernelParams && *static_cast<CUdeviceptr*>(p.kernelParams[0]) == k.buffer);
     }},
    {"captured launch through one buffer: description",
     [](kit& k) {
       k.start();
       std::size_t bytes = sizeof k.buffer;
       void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &k.buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                        CU_LAUNCH_PARAM_END};
       CUgraph graph =
           k.captured([&] { REQUIRE(cuLaunchKernel(k.store, 1, 1, 1, 1, 1, 1, 0, k.stream, nullptr, extra)); });
       CUDA_KERNEL_NODE_PARAMS p{};
       k << cuGraphKernelNodeGetParams(only_node(graph), &p) << (p.kernelParams != nullptr) << (p.extra != nullptr);
     }},
    {"captured launch with overlap: edges: old call; new call; port and type",
     [](kit& k) {
       k.start();
       CUlaunchAttribute a{};
       a.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
       a.value.programmaticStreamSerializationAllowed = 1;
       CUlaunchConfig c{};
       c.gridDimX = c.gridDimY = c.gridDimZ = c.blockDimX = c.blockDimY = c.blockDimZ = 1;
       c.hStream = k.stream, c.attrs = &a, c.numAttrs = 1;
       void* values[] = {&k.buffer};
       CUgraph graph = k.captured([&] {
         REQUIRE(k.launch(k.stream));
         REQUIRE(cuLaunchKernelEx(&c, k.store, values, nullptr));
       });
       CUgraphNode from = nullptr, to = nullptr;
       CUgraphEdgeData data{};
       std::size_t count = 1;
       k << cuGraphGetEdges(graph, &from, &to, nullptr, &count);
       count = 1;
       k << cuGraphGetEdges(graph, &from, &to, &data, &count) << data.from_port << data.to_port << data.type;
     }},
    {"edges: twice; self; cycle instantiates",
     [](kit& k) {
       k.start();
       CUgraph graph = k.make_graph();
       CUgraphNode a = k.add_kernel(graph, k.buffer), b = k.add_kernel(graph, k.buffer, {a});
       CUgraphExec exec = nullptr;
       k << cuGraphAddDependencies(graph, &a, &b, nullptr, 1) << cuGraphAddDependencies(graph, &a, &a, nullptr, 1)
         << cuGraphAddDependencies(graph, &b, &a, nullptr, 1) << cuGraphInstantiate(&exec, graph, 0);
     }},
    {"edges: remove one that is not there",
     [](kit& k) {
       k.start();
       CUgraph graph = k.make_graph();
       CUgraphNode a = k.add_kernel(graph, k.buffer), b = k.add_kernel(graph, k.buffer);
       k << cuGraphRemoveDependencies(graph, &a, &b, nullptr, 1);
     }},
    {"nodes: listing with less and with more room",
     [](kit& k) {
       k.start();
       CUgraph graph = k.make_graph();
       CUgraphNode a = k.add_kernel(graph, k.buffer);
       k.add_kernel(graph, k.buffer);
       CUgraphNode list[4] = {};
       std::size_t count = 1;
       k << cuGraphGetNodes(graph, list, &count) << static_cast<long long>(count) << (list[0] == a);
       count = 4;
       list[3] = a;
       k << cuGraphGetNodes(graph, list, &count) << static_cast<long long>(count) << (list[3] == nullptr);
     }},
    {"nodes: bad dependency; set of element 3; no width",
     [](kit& k) {
       k.start();
       CUgraph graph = k.make_graph(), foreign = k.make_graph();
       CUgraphNode f = k.add_kernel(foreign, k.buffer), n = nullptr;
       CUDA_MEMSET_NODE_PARAMS p{};
       p.dst = k.buffer, p.elementSize = 3, p.width = 1, p.height = 1;
       k << cuGraphAddEmptyNode(&n, graph, &f, 1) << cuGraphAddMemsetNode(&n, graph, nullptr, 0, &p, k.context);
       p.elementSize = 1, p.width = 0;
       k << cuGraphAddMemsetNode(&n, graph, nullptr, 0, &p, k.context);
     }},
    {"child: destroying the child's graph; adding to it; clone is a copy",
     [](kit& k) {
       k.start();
       CUgraph graph = k.make_graph(), inner = k.make_graph(), child = nullptr;
       k.add_kernel(inner, k.buffer);
       CUgraphNode n = nullptr;
       std::size_t count = 0;
       k << cuGraphAddChildGraphNode(&n, graph, nullptr, 0, inner);
       k.add_kernel(inner, k.buffer);
       k << cuGraphChildGraphNodeGetGraph(n, &child) << (child == inner) << cuGraphGetNodes(child, nullptr, &count)
         << static_cast<long long>(count) << cuGraphDestroy(child);
     }},
    {"child: two kernels in it run",
     [](kit& k) {
       k.start();
       CUgraph graph = k.make_graph(), inner = k.make_graph();
       CUgraphNode a = k.add_kernel(inner, k.buffer), n = nullptr;
       k.add_kernel(inner, k.buffer, {a});
       REQUIRE(cuGraphAddChildGraphNode(&n, graph, nullptr, 0, inner));
       k.write(k.buffer, 0);
       CUgraphExec exec = k.instantiate(graph);
       k << cuGraphLaunch(exec, k.stream) << cuStreamSynchronize(k.stream) << k.read(k.buffer);
     }},
    {"conditional: IF with 1", [](kit& k) { tell_if(k, 1); }},
    {"conditional: IF with 0", [](kit& k) { tell_if(k, 0); }},
    {"conditional: sizes: IF 3; WHILE 2; SWITCH 0; unknown handle; handle used twice",
     [](kit& k) {
       k.start();
       CUgraph graph = k.make_graph();
       CUgraphNodeParams p;
       const auto h = make_condition(k, graph, 1);
       k << add_conditional(k, graph, h, CU_GRAPH_COND_TYPE_IF, 3, p)
         << add_conditional(k, graph, h, CU_GRAPH_COND_TYPE_WHILE, 2, p)
         << add_conditional(k, graph, h, CU_GRAPH_COND_TYPE_SWITCH, 0, p)
         << add_conditional(k, graph, h, CU_GRAPH_COND_TYPE_IF, 1, p)
         << add_conditional(k, graph, h, CU_GRAPH_COND_TYPE_IF, 1, p);
     }},
    {"conditional: SWITCH with 1 of 3",
     [](kit& k) {
       k.start();
       CUgraph graph = k.make_graph();
       CUgraphNodeParams p;
       k << add_conditional(k, graph, make_condition(k, graph, 1), CU_GRAPH_COND_TYPE_SWITCH, 3, p);
       for (unsigned i = 0; i < 3; ++i) k.add_set(p.conditional.phGraph_out[i], k.buffer, 4, 1, i + 1);
       k.write(k.buffer, 0);
       k << cuGraphLaunch(k.instantiate(graph), k.stream) << cuStreamSynchronize(k.stream) << (k.read(k.buffer) & 0xff);
     }},
    {"conditional: host node in the body",
     [](kit& k) {
       k.start();
       CUgraph graph = k.make_graph();
       CUgraphNodeParams p;
       REQUIRE(add_conditional(k, graph, make_condition(k, graph, 1), CU_GRAPH_COND_TYPE_IF, 1, p));
       CUDA_HOST_NODE_PARAMS host{[](void*) {}, nullptr};
       CUgraphNode n = nullptr;
       CUgraphExec exec = nullptr;
       k << cuGraphAddHostNode(&n, p.conditional.phGraph_out[0], nullptr, 0, &host)
         << cuGraphInstantiate(&exec, graph, 0);
     }},
    {"conditional: a handle without a node",
     [](kit& k) {
       k.start();
       CUgraph graph = k.make_graph();
       make_condition(k, graph, 1);
       CUDA_GRAPH_INSTANTIATE_PARAMS params{};
       CUgraphExec exec = nullptr;
       k << cuGraphInstantiateWithParams(&exec, graph, &params) << params.result_out;
     }},
    {"instantiate: unknown flag; result of a good one; flags read back",
     [](kit& k) {
       k.start();
       CUgraph graph = k.make_graph();
       CUgraphExec exec = nullptr;
       cuuint64_t flags = 99;
       CUDA_GRAPH_INSTANTIATE_PARAMS params{};
       k << cuGraphInstantiate(&exec, graph, 64) << cuGraphInstantiateWithParams(&exec, graph, &params)
         << params.result_out << cuGraphInstantiate(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)
         << cuGraphExecGetFlags(exec, &flags) << static_cast<long long>(flags);
     }},
    {"instantiate: the graph may be destroyed before the launch",
     [](kit& k) {
       k.start();
       CUgraph graph = k.make_graph();
       k.add_kernel(graph, k.buffer);
       CUgraphExec exec = k.instantiate(graph);
       k << cuGraphDestroy(graph) << cuGraphLaunch(exec, k.stream) << cuStreamSynchronize(k.stream);
     }},
    {"clone: find in clone; of a node not in it",
     [](kit& k) {
       k.start();
       CUgraph graph = k.make_graph(), copy = nullptr, foreign = k.make_graph();
       CUgraphNode a = k.add_kernel(graph, k.buffer), f = k.add_kernel(foreign, k.buffer), found = nullptr;
       k << cuGraphClone(&copy, graph) << cuGraphNodeFindInClone(&found, a, copy) << (found != nullptr && found != a)
         << cuGraphNodeFindInClone(&found, f, copy);
     }},
    {"getters: params of the wrong kind",
     [](kit& k) {
       k.start();
       CUgraph graph = k.make_graph();
       CUgraphNode set = k.add_set(graph, k.buffer);
       CUDA_KERNEL_NODE_PARAMS kernel{};
       CUDA_MEMCPY3D copy{};
       k << cuGraphKernelNodeGetParams(set, &kernel) << cuGraphMemcpyNodeGetParams(set, &copy);
     }},
    {"user object: released with the graph and the exec",
     [](kit& k) {
       k.start();
       static int freed = 0;
       CUuserObject object = nullptr;
       CUgraph graph = k.make_graph();
       k << cuUserObjectCreate(
                &object, &freed, [](void* p) { ++*static_cast<int*>(p); }, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
         << cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
       CUgraphExec exec = k.instantiate(graph);
       k << cuGraphDestroy(graph) << freed << cuGraphExecDestroy(exec);
       REQUIRE(cuCtxSynchronize());
       for (int i = 0; i < 200 && !freed; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
       k << freed;
     }},
    {"dot: written; to a folder that is not there",
     [](kit& k) {
       k.start();
       CUgraph graph = k.make_graph();
       k.add_kernel(graph, k.buffer);
       char name[] = "/tmp/capturesan-dot-XXXXXX";
       close(mkstemp(name));
       k << cuGraphDebugDotPrint(graph, name, 0) << cuGraphDebugDotPrint(graph, "/no/such/folder/graph.dot", 0);
       std::remove(name);
     }},
};

} // namespace facts
