// Memory nodes.
#include "facts.h"

namespace facts {
namespace {

struct graph_with_memory {
  CUgraph graph = nullptr;
  CUdeviceptr address = 0;
};

// Allocates, sets, and frees only if asked to.
graph_with_memory make(kit& k, bool frees) {
  graph_with_memory made;
  made.graph = k.captured([&] {
    REQUIRE(cuMemAllocAsync(&made.address, 4096, k.stream));
    REQUIRE(cuMemsetD8Async(made.address, 1, 64, k.stream));
    if (frees) REQUIRE(cuMemFreeAsync(made.address, k.stream));
  });
  return made;
}

} // namespace

const std::vector<fact> graph_memory_facts = {
    {"memory nodes: no free: launch; again; after cuMemFree; after cuMemFreeAsync",
     [](kit& k) {
       k.start();
       auto m = make(k, false);
       CUgraphExec exec = k.instantiate(m.graph);
       k << cuGraphLaunch(exec, k.stream) << cuGraphLaunch(exec, k.stream) << cuStreamSynchronize(k.stream)
         << cuMemFree(m.address) << cuGraphLaunch(exec, k.stream) << cuMemFreeAsync(m.address, k.stream)
         << cuGraphLaunch(exec, k.stream) << cuStreamSynchronize(k.stream);
     }},
    {"memory nodes: auto free: three launches",
     [](kit& k) {
       k.start();
       CUgraphExec exec = k.instantiate(make(k, false).graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
       for (int i = 0; i < 3; ++i) k << cuGraphLaunch(exec, k.stream);
       k << cuStreamSynchronize(k.stream);
     }},
    {"memory nodes: freed in the graph: three launches; free by hand",
     [](kit& k) {
       k.start();
       auto m = make(k, true);
       CUgraphExec exec = k.instantiate(m.graph);
       for (int i = 0; i < 3; ++i) k << cuGraphLaunch(exec, k.stream);
       k << cuStreamSynchronize(k.stream) << cuMemFree(m.address);
     }},
    {"memory nodes: second instantiate; after the first exec is gone",
     [](kit& k) {
       k.start();
       auto m = make(k, true);
       CUgraphExec exec = k.instantiate(m.graph), second = nullptr;
       k << cuGraphInstantiate(&second, m.graph, 0) << cuGraphExecDestroy(exec)
         << cuGraphInstantiate(&second, m.graph, 0);
     }},
    {"memory nodes: clone; as child; destroy a node; add an edge",
     [](kit& k) {
       k.start();
       auto m = make(k, true);
       CUgraph copy = nullptr, outer = k.make_graph();
       CUgraphNode n = nullptr, nodes[3] = {};
       std::size_t count = 3;
       REQUIRE(cuGraphGetNodes(m.graph, nodes, &count));
       k << cuGraphClone(&copy, m.graph) << cuGraphAddChildGraphNode(&n, outer, nullptr, 0, m.graph)
         << cuGraphDestroyNode(nodes[0]) << cuGraphAddDependencies(m.graph, &nodes[0], &nodes[2], nullptr, 1);
     }},
    {"memory nodes: the address before the launch: attribute; range; copy; free",
     [](kit& k) {
       k.start();
       auto m = make(k, false);
       unsigned type = 0, value = 0;
       CUdeviceptr base = 0;
       std::size_t bytes = 0;
       k << cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, m.address)
         << cuMemGetAddressRange(&base, &bytes, m.address) << cuMemcpyHtoD(m.address, &value, 4)
         << cuMemFree(m.address);
     }},
    {"memory nodes: the address after the launch: range; copy; after free: copy",
     [](kit& k) {
       k.start();
       auto m = make(k, false);
       CUgraphExec exec = k.instantiate(m.graph);
       unsigned value = 0;
       CUdeviceptr base = 0;
       std::size_t bytes = 0;
       REQUIRE(cuGraphLaunch(exec, k.stream));
       REQUIRE(cuStreamSynchronize(k.stream));
       k << cuMemGetAddressRange(&base, &bytes, m.address) << (base == m.address) << cuMemcpyDtoH(&value, m.address, 4)
         << static_cast<long long>(value & 0xff) << cuMemFree(m.address) << cuMemcpyDtoH(&value, m.address, 4);
     }},
    {"memory nodes: exec destroyed while allocated; free afterwards",
     [](kit& k) {
       k.start();
       auto m = make(k, false);
       CUgraphExec exec = k.instantiate(m.graph);
       REQUIRE(cuGraphLaunch(exec, k.stream));
       k << cuGraphExecDestroy(exec) << cuGraphDestroy(m.graph) << cuStreamSynchronize(k.stream)
         << cuMemFree(m.address);
     }},
    {"memory nodes: free node of foreign memory; twice of the same",
     [](kit& k) {
       k.start();
       CUgraph g = k.make_graph();
       CUgraphNode a = nullptr, f = nullptr;
       CUDA_MEM_ALLOC_NODE_PARAMS p{};
       p.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
       p.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, k.device};
       p.bytesize = 4096;
       k << cuGraphAddMemFreeNode(&f, g, nullptr, 0, k.buffer) << cuGraphAddMemAllocNode(&a, g, nullptr, 0, &p)
         << (p.dptr != 0) << cuGraphAddMemFreeNode(&f, g, &a, 1, p.dptr) << cuGraphAddMemFreeNode(&f, g, &a, 1, p.dptr);
     }},
    {"memory nodes: two allocations without a free between have two addresses",
     [](kit& k) {
       k.start();
       CUdeviceptr a = 0, b = 0;
       k.captured([&] {
         REQUIRE(cuMemAllocAsync(&a, 4096, k.stream));
         REQUIRE(cuMemAllocAsync(&b, 4096, k.stream));
       });
       k << (a != b) << static_cast<long long>(a % 512);
     }},
    {"memory nodes: allocate in a capture, free in the next one",
     [](kit& k) {
       k.start();
       auto m = make(k, false);
       CUgraph second = k.captured([&] { k << cuMemFreeAsync(m.address, k.stream); });
       CUgraphExec a = k.instantiate(m.graph), b = nullptr;
       k << cuGraphInstantiate(&b, second, 0) << cuGraphLaunch(a, k.stream) << cuGraphLaunch(b, k.stream)
         << cuGraphLaunch(a, k.stream) << cuStreamSynchronize(k.stream);
     }},
    {"memory nodes: free of a freed block in a capture",
     [](kit& k) {
       k.start();
       CUdeviceptr a = 0;
       k.begin(k.stream);
       REQUIRE(cuMemAllocAsync(&a, 64, k.stream));
       k << cuMemFreeAsync(a, k.stream) << cuMemFreeAsync(a, k.stream);
       k.tell_end(k.stream);
     }},
    {"memory nodes: used bytes of the device: before; after a launch; after free and trim",
     [](kit& k) {
       k.start();
       cuuint64_t used = 9;
       const auto tell = [&] {
         REQUIRE(cuDeviceGetGraphMemAttribute(k.device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
         k << (used > 0);
       };
       tell();
       auto m = make(k, false);
       CUgraphExec exec = k.instantiate(m.graph);
       REQUIRE(cuGraphLaunch(exec, k.stream));
       REQUIRE(cuStreamSynchronize(k.stream));
       tell();
       REQUIRE(cuMemFree(m.address));
       REQUIRE(cuDeviceGraphMemTrim(k.device));
       tell();
     }},
};

} // namespace facts
