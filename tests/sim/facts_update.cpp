// Changing an executable graph: by nodes, by a whole graph, and what is refused.
#include "facts.h"

namespace facts {
namespace {

// Result and reason of an update of what `first` makes by what `second` makes.
template <class F, class G>
void tell_update(kit& k, F&& first, G&& second, unsigned long long flags = 0) {
  k.start();
  CUgraph before = k.make_graph(), after = k.make_graph();
  first(before);
  second(after);
  CUgraphExec exec = k.instantiate(before, flags);
  CUgraphExecUpdateResultInfo info{};
  k << cuGraphExecUpdate(exec, after, &info) << info.result << (info.errorNode != nullptr)
    << (info.errorFromNode != nullptr);
}

void add_host(CUgraph graph, CUhostFn function) {
  CUDA_HOST_NODE_PARAMS params{function, nullptr};
  CUgraphNode node = nullptr;
  REQUIRE(cuGraphAddHostNode(&node, graph, nullptr, 0, &params));
}

CUDA_MEMCPY3D copy_shape(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  CUDA_MEMCPY3D shape{};
  shape.srcMemoryType = shape.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  shape.srcDevice = from, shape.dstDevice = to;
  shape.WidthInBytes = bytes, shape.Height = shape.Depth = 1;
  return shape;
}

CUDA_MEMCPY3D host_shape(void* to, CUdeviceptr from, std::size_t bytes) {
  CUDA_MEMCPY3D shape = copy_shape(0, from, bytes);
  shape.dstMemoryType = CU_MEMORYTYPE_HOST;
  shape.dstHost = to;
  return shape;
}

CUgraphNode add_copy(const kit& k, CUgraph graph, const CUDA_MEMCPY3D& shape) {
  CUgraphNode node = nullptr;
  REQUIRE(cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &shape, k.context));
  return node;
}

CUDA_KERNEL_NODE_PARAMS kernel_params(CUfunction function, void** values, unsigned grid = 1) {
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = function;
  params.gridDimX = grid;
  params.gridDimY = params.gridDimZ = params.blockDimX = params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = values;
  return params;
}

void add_other(const kit& k, CUgraph graph) {
  CUdeviceptr target = k.buffer;
  unsigned value = 5;
  void* values[] = {&target, &value};
  const auto params = kernel_params(k.other, values);
  CUgraphNode node = nullptr;
  REQUIRE(cuGraphAddKernelNode(&node, graph, nullptr, 0, &params));
}

CUDA_MEMSET_NODE_PARAMS set_params(CUdeviceptr to, std::size_t width, unsigned value) {
  CUDA_MEMSET_NODE_PARAMS params{};
  params.dst = to, params.value = value, params.elementSize = 1, params.width = width, params.height = 1;
  return params;
}

} // namespace

const std::vector<fact> update_facts = {
    {"update: same graph",
     [](kit& k) {
       tell_update(
           k, [&](CUgraph g) { k.add_kernel(g, k.buffer); }, [&](CUgraph g) { k.add_kernel(g, k.buffer); });
     }},
    {"update: other pointer takes effect",
     [](kit& k) {
       k.start();
       CUgraph a = k.make_graph(), b = k.make_graph();
       k.add_kernel(a, k.buffer), k.add_kernel(b, k.buffer + 512);
       CUgraphExec exec = k.instantiate(a);
       CUgraphExecUpdateResultInfo info{};
       k.write(k.buffer, 0), k.write(k.buffer + 512, 0);
       k << cuGraphExecUpdate(exec, b, &info) << info.result << cuGraphLaunch(exec, k.stream)
         << cuStreamSynchronize(k.stream) << k.read(k.buffer) << k.read(k.buffer + 512);
     }},
    {"update: one node more",
     [](kit& k) {
       tell_update(
           k, [&](CUgraph g) { k.add_kernel(g, k.buffer); },
           [&](CUgraph g) { k.add_kernel(g, k.buffer, {k.add_kernel(g, k.buffer)}); });
     }},
    {"update: one node less",
     [](kit& k) {
       tell_update(
           k, [&](CUgraph g) { k.add_kernel(g, k.buffer, {k.add_kernel(g, k.buffer)}); },
           [&](CUgraph g) { k.add_kernel(g, k.buffer); });
     }},
    {"update: an edge more",
     [](kit& k) {
       tell_update(
           k, [&](CUgraph g) { k.add_kernel(g, k.buffer), k.add_kernel(g, k.buffer); },
           [&](CUgraph g) { k.add_kernel(g, k.buffer, {k.add_kernel(g, k.buffer)}); });
     }},
    {"update: another type of node",
     [](kit& k) {
       tell_update(
           k, [&](CUgraph g) { k.add_kernel(g, k.buffer); }, [&](CUgraph g) { k.add_set(g, k.buffer); });
     }},
    {"update: another function",
     [](kit& k) {
       tell_update(
           k, [&](CUgraph g) { k.add_kernel(g, k.buffer); }, [&](CUgraph g) { add_other(k, g); });
     }},
    {"update: set: another length",
     [](kit& k) {
       tell_update(
           k, [&](CUgraph g) { k.add_set(g, k.buffer, 64); }, [&](CUgraph g) { k.add_set(g, k.buffer, 128); });
     }},
    {"update: set: two dimensions, another height",
     [](kit& k) {
       tell_update(
           k, [&](CUgraph g) { k.add_set(g, k.buffer, 64, 2); }, [&](CUgraph g) { k.add_set(g, k.buffer, 64, 4); });
     }},
    {"update: set: two dimensions, another value",
     [](kit& k) {
       tell_update(
           k, [&](CUgraph g) { k.add_set(g, k.buffer, 64, 2, 1); },
           [&](CUgraph g) { k.add_set(g, k.buffer, 64, 2, 2); });
     }},
    {"update: set: one dimension to two",
     [](kit& k) {
       tell_update(
           k, [&](CUgraph g) { k.add_set(g, k.buffer, 64, 1); }, [&](CUgraph g) { k.add_set(g, k.buffer, 64, 2); });
     }},
    {"update: copy: another length",
     [](kit& k) {
       tell_update(
           k, [&](CUgraph g) { add_copy(k, g, copy_shape(k.buffer, k.buffer + 4096, 64)); },
           [&](CUgraph g) { add_copy(k, g, copy_shape(k.buffer, k.buffer + 4096, 128)); });
     }},
    {"update: copy: to the host instead of the device",
     [](kit& k) {
       static char host[64];
       tell_update(
           k, [&](CUgraph g) { add_copy(k, g, copy_shape(k.buffer, k.buffer + 4096, 64)); },
           [&](CUgraph g) { add_copy(k, g, host_shape(host, k.buffer, 64)); });
     }},
    {"update: host function: another one",
     [](kit& k) {
       tell_update(
           k, [](CUgraph g) { add_host(g, [](void*) {}); }, [](CUgraph g) { add_host(g, [](void* p) { (void)p; }); });
     }},
    {"update: child graph: one node more in it",
     [](kit& k) {
       const auto add = [&](CUgraph g, int kernels) {
         CUgraph inner = k.make_graph();
         for (int i = 0; i < kernels; ++i) k.add_kernel(inner, k.buffer);
         CUgraphNode n = nullptr;
         REQUIRE(cuGraphAddChildGraphNode(&n, g, nullptr, 0, inner));
       };
       tell_update(
           k, [&](CUgraph g) { add(g, 1); }, [&](CUgraph g) { add(g, 2); });
     }},
    {"update: captured twice: same shape, other pointer",
     [](kit& k) {
       k.start();
       const auto make = [&](CUdeviceptr p) {
         return k.captured([&] {
           REQUIRE(cuMemsetD8Async(p, 0, 64, k.stream));
           REQUIRE(k.launch(k.stream, p));
         });
       };
       CUgraphExec exec = k.instantiate(make(k.buffer));
       CUgraphExecUpdateResultInfo info{};
       k << cuGraphExecUpdate(exec, make(k.buffer + 4096), &info) << info.result;
     }},
    {"update: node with memory",
     [](kit& k) {
       k.start();
       const auto make = [&] {
         return k.captured([&] {
           CUdeviceptr a = 0;
           REQUIRE(cuMemAllocAsync(&a, 64, k.stream));
           REQUIRE(cuMemFreeAsync(a, k.stream));
         });
       };
       CUgraphExec exec = k.instantiate(make());
       CUgraphExecUpdateResultInfo info{};
       k << cuGraphExecUpdate(exec, make(), &info) << info.result;
     }},
    {"update: empty by empty",
     [](kit& k) {
       tell_update(
           k, [](CUgraph) {}, [](CUgraph) {});
     }},
    {"params: kernel: other grid and pointer take effect; the graph's node keeps its own",
     [](kit& k) {
       k.start();
       CUgraph g = k.make_graph();
       CUgraphNode n = k.add_kernel(g, k.buffer);
       CUgraphExec exec = k.instantiate(g);
       CUdeviceptr target = k.buffer + 512;
       void* values[] = {&target};
       const auto fresh = kernel_params(k.store, values, 1);
       k.write(k.buffer, 0), k.write(target, 0);
       k << cuGraphExecKernelNodeSetParams(exec, n, &fresh) << cuGraphLaunch(exec, k.stream)
         << cuStreamSynchronize(k.stream) << k.read(k.buffer) << k.read(target);
       CUDA_KERNEL_NODE_PARAMS p{};
       REQUIRE(cuGraphKernelNodeGetParams(n, &p));
       k << (*static_cast<CUdeviceptr*>(p.kernelParams[0]) == k.buffer);
     }},
    {"params: kernel: another function; node of another graph; node of another type",
     [](kit& k) {
       k.start();
       CUgraph g = k.make_graph(), foreign = k.make_graph();
       CUgraphNode n = k.add_kernel(g, k.buffer), set = k.add_set(g, k.buffer), f = k.add_kernel(foreign, k.buffer);
       CUgraphExec exec = k.instantiate(g);
       CUdeviceptr target = k.buffer;
       unsigned value = 1;
       void* values[] = {&target, &value};
       const auto fresh = kernel_params(k.other, values);
       k << cuGraphExecKernelNodeSetParams(exec, n, &fresh) << cuGraphExecKernelNodeSetParams(exec, f, &fresh)
         << cuGraphExecKernelNodeSetParams(exec, set, &fresh);
     }},
    {"params: set: another length; another target",
     [](kit& k) {
       k.start();
       CUgraph g = k.make_graph();
       CUgraphNode n = k.add_set(g, k.buffer);
       CUgraphExec exec = k.instantiate(g);
       auto p = set_params(k.buffer, 128, 3);
       k << cuGraphExecMemsetNodeSetParams(exec, n, &p, k.context);
       p = set_params(k.buffer + 4096, 64, 3);
       k << cuGraphExecMemsetNodeSetParams(exec, n, &p, k.context);
     }},
    {"params: copy: another length; to the host instead of the device",
     [](kit& k) {
       static char host[64];
       k.start();
       CUgraph g = k.make_graph();
       CUgraphNode n = add_copy(k, g, copy_shape(k.buffer, k.buffer + 4096, 64));
       CUgraphExec exec = k.instantiate(g);
       auto p = copy_shape(k.buffer, k.buffer + 4096, 128);
       k << cuGraphExecMemcpyNodeSetParams(exec, n, &p, k.context);
       p = host_shape(host, k.buffer, 64);
       k << cuGraphExecMemcpyNodeSetParams(exec, n, &p, k.context);
     }},
    {"enabled: kernel off: no effect; read back; on again",
     [](kit& k) {
       k.start();
       CUgraph g = k.make_graph();
       CUgraphNode n = k.add_kernel(g, k.buffer);
       CUgraphExec exec = k.instantiate(g);
       unsigned on = 9;
       k.write(k.buffer, 0);
       k << cuGraphNodeSetEnabled(exec, n, 0) << cuGraphNodeGetEnabled(exec, n, &on) << on;
       REQUIRE(cuGraphLaunch(exec, k.stream));
       REQUIRE(cuStreamSynchronize(k.stream));
       k << k.read(k.buffer) << cuGraphNodeSetEnabled(exec, n, 1) << cuGraphLaunch(exec, k.stream)
         << cuStreamSynchronize(k.stream) << k.read(k.buffer);
     }},
    {"enabled: set; host node; child graph; empty node; node of another graph",
     [](kit& k) {
       k.start();
       CUgraph g = k.make_graph(), inner = k.make_graph(), foreign = k.make_graph();
       k.add_kernel(inner, k.buffer);
       CUDA_HOST_NODE_PARAMS host{[](void*) {}, nullptr};
       CUgraphNode set = k.add_set(g, k.buffer), h = nullptr, c = nullptr, e = nullptr,
                   f = k.add_kernel(foreign, k.buffer);
       REQUIRE(cuGraphAddHostNode(&h, g, nullptr, 0, &host));
       REQUIRE(cuGraphAddChildGraphNode(&c, g, nullptr, 0, inner));
       REQUIRE(cuGraphAddEmptyNode(&e, g, nullptr, 0));
       CUgraphExec exec = k.instantiate(g);
       for (CUgraphNode n : {set, h, c, e, f}) k << cuGraphNodeSetEnabled(exec, n, 0);
     }},
    {"enabled: survives an update",
     [](kit& k) {
       k.start();
       CUgraph g = k.make_graph();
       CUgraphNode n = k.add_kernel(g, k.buffer);
       CUgraphExec exec = k.instantiate(g);
       CUgraphExecUpdateResultInfo info{};
       unsigned on = 9;
       REQUIRE(cuGraphNodeSetEnabled(exec, n, 0));
       k << cuGraphExecUpdate(exec, g, &info) << cuGraphNodeGetEnabled(exec, n, &on) << on;
     }},
};

} // namespace facts
