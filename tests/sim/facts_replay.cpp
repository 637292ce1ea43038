// Replays after what the graph refers to has gone: memory, code, host buffers, events.
#include "facts.h"

#include <cstdlib>

namespace facts {
namespace {

CUgraphExec exec_on(kit& k, CUdeviceptr target) {
  return k.instantiate(k.captured([&] { REQUIRE(k.launch(k.stream, target)); }));
}

void replay(kit& k, CUgraphExec exec) { k << cuGraphLaunch(exec, k.stream) << cuStreamSynchronize(k.stream); }

// Captures `work` on an allocation with a neighbour, frees that, and instantiates.
template <class F>
void tell_instantiate(kit& k, F&& work) {
  k.start();
  CUdeviceptr a = k.allocate(kib);
  k.allocate(kib);
  CUgraph graph = k.captured([&] { REQUIRE(work(a)); });
  REQUIRE(cuMemFree(a));
  CUgraphExec exec = nullptr;
  k << cuGraphInstantiate(&exec, graph, 0);
}

CUmodule load_again(CUfunction* store) {
  static const char text[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                             ".visible .entry lonely(.param .u64 p) { ret; }\n";
  CUmodule module = nullptr;
  REQUIRE(cuModuleLoadData(&module, text));
  REQUIRE(cuModuleGetFunction(store, module, "lonely"));
  return module;
}

} // namespace

const std::vector<fact> replay_facts = {
    {"replay: kernel target freed, neighbour in its slab",
     [](kit& k) {
       k.start();
       CUdeviceptr a = k.allocate(4), keep = k.allocate(4);
       k.write(a, 0);
       CUgraphExec exec = exec_on(k, a);
       replay(k, exec);
       REQUIRE(cuMemFree(a));
       replay(k, exec);
       k << (keep != 0);
     }},
    {"replay: kernel target freed and the address handed out again",
     [](kit& k) {
       k.start();
       CUdeviceptr a = k.allocate(4);
       k.allocate(4);
       CUgraphExec exec = exec_on(k, a);
       REQUIRE(cuMemFree(a));
       CUdeviceptr b = k.allocate(4);
       k.write(b, 100);
       k << (a == b);
       replay(k, exec);
       k << k.read(b);
     }},
    {"replay: 64 MiB target freed; then other calls",
     [](kit& k) {
       k.start();
       CUdeviceptr a = k.allocate(64 * mib), other = 0;
       CUgraphExec exec = exec_on(k, a);
       REQUIRE(cuMemFree(a));
       replay(k, exec);
       CUcontext c = nullptr;
       std::size_t free = 0, total = 0;
       int n = 0;
       k << cuMemAlloc(&other, 4) << k.launch(k.stream) << cuCtxSynchronize() << cuCtxGetCurrent(&c)
         << cuMemGetInfo(&free, &total) << cuMemFree(k.buffer) << cuDeviceGetCount(&n) << cuStreamQuery(k.stream)
         << cuCtxGetDevice(&n) << cuGraphExecDestroy(exec);
     }},
    {"eager: kernel on a freed 64 MiB block: launch; query of an event after it",
     [](kit& k) {
       k.start();
       CUdeviceptr a = k.allocate(64 * mib);
       REQUIRE(cuMemFree(a));
       CUevent e = k.make_event();
       k << k.launch(k.stream, a) << cuEventSynchronize(e);
       k << cuStreamSynchronize(k.stream);
     }},
    {"replay: set of freed memory, neighbour in its slab",
     [](kit& k) {
       k.start();
       CUdeviceptr a = k.allocate(kib);
       k.allocate(kib);
       CUgraphExec exec = k.instantiate(k.captured([&] { REQUIRE(cuMemsetD8Async(a, 1, 64, k.stream)); }));
       REQUIRE(cuMemFree(a));
       replay(k, exec);
     }},
    {"replay: set of a freed 64 MiB block",
     [](kit& k) {
       k.start();
       CUdeviceptr a = k.allocate(64 * mib);
       CUgraphExec exec = k.instantiate(k.captured([&] { REQUIRE(cuMemsetD8Async(a, 1, 64, k.stream)); }));
       REQUIRE(cuMemFree(a));
       replay(k, exec);
     }},
    {"replay: copy from freed memory, neighbour in its slab",
     [](kit& k) {
       k.start();
       CUdeviceptr a = k.allocate(kib);
       k.allocate(kib);
       CUgraphExec exec = k.instantiate(k.captured([&] { REQUIRE(cuMemcpyDtoDAsync(k.buffer, a, 64, k.stream)); }));
       REQUIRE(cuMemFree(a));
       replay(k, exec);
     }},
    {"replay: copy from a freed 64 MiB block",
     [](kit& k) {
       k.start();
       CUdeviceptr a = k.allocate(64 * mib);
       CUgraphExec exec = k.instantiate(k.captured([&] { REQUIRE(cuMemcpyDtoDAsync(k.buffer, a, 64, k.stream)); }));
       REQUIRE(cuMemFree(a));
       replay(k, exec);
     }},
    {"instantiate: kernel target freed",
     [](kit& k) { tell_instantiate(k, [&](CUdeviceptr a) { return k.launch(k.stream, a); }); }},
    {"instantiate: set target freed",
     [](kit& k) { tell_instantiate(k, [&](CUdeviceptr a) { return cuMemsetD8Async(a, 0, 64, k.stream); }); }},
    {"instantiate: copy source freed",
     [](kit& k) { tell_instantiate(k, [&](CUdeviceptr a) { return cuMemcpyDtoDAsync(k.buffer, a, 64, k.stream); }); }},
    {"instantiate: source of a copy to the host freed",
     [](kit& k) {
       static char host[64];
       tell_instantiate(k, [&](CUdeviceptr a) { return cuMemcpyDtoHAsync(host, a, 64, k.stream); });
     }},
    {"replay: kernel on pinned memory freed",
     [](kit& k) {
       k.start();
       void* p = nullptr;
       REQUIRE(cuMemHostAlloc(&p, 4096, 0));
       CUgraphExec exec = exec_on(k, reinterpret_cast<CUdeviceptr>(p));
       k << cuMemFreeHost(p);
       replay(k, exec);
     }},
    {"replay: kernel on managed memory freed",
     [](kit& k) {
       k.start();
       CUdeviceptr a = 0;
       REQUIRE(cuMemAllocManaged(&a, 4096, CU_MEM_ATTACH_GLOBAL));
       CUgraphExec exec = exec_on(k, a);
       k << cuMemFree(a);
       replay(k, exec);
     }},
    {"replay: kernel on pool memory freed in stream order",
     [](kit& k) {
       k.start();
       CUdeviceptr a = 0;
       REQUIRE(cuMemAllocAsync(&a, 4096, k.stream));
       CUgraphExec exec = exec_on(k, a);
       k << cuMemFreeAsync(a, k.stream);
       replay(k, exec);
       replay(k, exec);
     }},
    {"replay: kernel on unmapped virtual memory",
     [](kit& k) {
       k.start();
       CUdeviceptr a = 0;
       CUmemGenericAllocationHandle h = 0;
       CUmemAllocationProp p{};
       p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
       p.location = {CU_MEM_LOCATION_TYPE_DEVICE, k.device};
       CUmemAccessDesc access{p.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
       REQUIRE(cuMemAddressReserve(&a, 2 * mib, 0, 0, 0));
       REQUIRE(cuMemCreate(&h, 2 * mib, &p, 0));
       REQUIRE(cuMemMap(a, 2 * mib, 0, h, 0));
       REQUIRE(cuMemSetAccess(a, 2 * mib, &access, 1));
       CUgraphExec exec = exec_on(k, a);
       replay(k, exec);
       REQUIRE(cuMemUnmap(a, 2 * mib));
       replay(k, exec);
     }},
    {"after a fault: what still answers",
     [](kit& k) {
       k.start();
       CUevent e = k.make_event();
       CUgraph g = k.make_graph(), graph = nullptr;
       k.add_kernel(g, k.buffer);
       CUgraphExec exec = k.instantiate(g), fresh = nullptr;
       CUdeviceptr a = k.allocate(64 * mib);
       REQUIRE(cuMemFree(a));
       REQUIRE(k.launch(k.stream, a));
       k << cuStreamSynchronize(k.stream);
       unsigned flags = 0, value = 0;
       CUstream s = nullptr;
       CUfunction f = nullptr;
       k << cuCtxGetFlags(&flags) << cuMemcpyHtoD(k.buffer, &value, 4) << cuEventQuery(e) << cuStreamCreate(&s, 0)
         << cuModuleGetFunction(&f, k.module, "store")
         << cuPointerGetAttribute(&flags, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, k.buffer) << cuGraphCreate(&graph, 0)
         << cuGraphInstantiate(&fresh, g, 0) << cuGraphLaunch(exec, k.stream) << cuEventRecord(e, k.stream)
         << cuEventDestroy(e) << cuStreamDestroy(k.second) << cuCtxSetCurrent(k.context) << cuModuleUnload(k.module)
         << cuStreamBeginCapture(k.stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
     }},
    {"after a fault: reset of the primary context",
     [](kit& k) {
       k.start();
       CUdeviceptr a = k.allocate(64 * mib);
       REQUIRE(cuMemFree(a));
       REQUIRE(k.launch(k.stream, a));
       k << cuStreamSynchronize(k.stream) << cuDevicePrimaryCtxReset(k.device) << cuCtxSynchronize();
       CUcontext c = nullptr;
       k << cuDevicePrimaryCtxRetain(&c, k.device) << cuCtxSetCurrent(c) << cuMemAlloc(&a, 64) << cuCtxSynchronize();
     }},
    {"replay: pageable source changed after the capture",
     [](kit& k) {
       k.start();
       static unsigned host = 1;
       CUgraphExec exec = k.instantiate(k.captured([&] { REQUIRE(cuMemcpyHtoDAsync(k.buffer, &host, 4, k.stream)); }));
       host = 2;
       replay(k, exec);
       k << k.read(k.buffer);
     }},
    {"replay: pinned source changed after the capture",
     [](kit& k) {
       k.start();
       void* p = nullptr;
       REQUIRE(cuMemHostAlloc(&p, 4096, 0));
       auto* host = static_cast<unsigned*>(p);
       *host = 1;
       CUgraphExec exec = k.instantiate(k.captured([&] { REQUIRE(cuMemcpyHtoDAsync(k.buffer, host, 4, k.stream)); }));
       *host = 2;
       replay(k, exec);
       k << k.read(k.buffer);
     }},
    {"replay: value of a kernel's argument is frozen",
     [](kit& k) {
       k.start();
       unsigned value = 1;
       CUdeviceptr target = k.buffer;
       void* values[] = {&target, &value};
       CUgraphExec exec = k.instantiate(
           k.captured([&] { REQUIRE(cuLaunchKernel(k.other, 1, 1, 1, 1, 1, 1, 0, k.stream, values, nullptr)); }));
       value = 2;
       replay(k, exec);
       k << k.read(k.buffer);
     }},
    {"replay: module unloaded: unload; launch; synchronise",
     [](kit& k) {
       k.start();
       CUfunction lonely = nullptr;
       CUmodule module = load_again(&lonely);
       CUdeviceptr target = k.buffer;
       void* values[] = {&target};
       CUgraphExec exec = k.instantiate(
           k.captured([&] { REQUIRE(cuLaunchKernel(lonely, 1, 1, 1, 1, 1, 1, 0, k.stream, values, nullptr)); }));
       replay(k, exec);
       k << cuModuleUnload(module);
     }},
    {"replay: event of an external record destroyed",
     [](kit& k) {
       k.start();
       CUevent e = k.make_event();
       CUgraphExec exec =
           k.instantiate(k.captured([&] { REQUIRE(cuEventRecordWithFlags(e, k.stream, CU_EVENT_RECORD_EXTERNAL)); }));
       k << cuEventDestroy(e);
       replay(k, exec);
     }},
    {"replay: on the legacy stream; on another stream; host function runs each time",
     [](kit& k) {
       k.start();
       static int runs = 0;
       CUgraphExec exec = k.instantiate(k.captured([&] {
         REQUIRE(cuLaunchHostFunc(
             k.stream, [](void*) { ++runs; }, nullptr));
       }));
       k << cuGraphLaunch(exec, nullptr) << cuGraphLaunch(exec, k.second) << cuCtxSynchronize() << runs;
     }},
    {"replay: the stream of the capture destroyed",
     [](kit& k) {
       k.start();
       CUgraphExec exec = exec_on(k, k.buffer);
       k << cuStreamDestroy(k.stream) << cuGraphLaunch(exec, k.second) << cuStreamSynchronize(k.second);
     }},
    {"exec: destroyed while its launch may run; graph upload of it before",
     [](kit& k) {
       k.start();
       CUgraphExec exec = exec_on(k, k.buffer);
       k << cuGraphUpload(exec, k.second) << cuGraphLaunch(exec, k.stream) << cuGraphExecDestroy(exec)
         << cuStreamSynchronize(k.stream);
     }},
    {"register: a copy node of memory unregistered since",
     [](kit& k) {
       k.start();
       auto* host = static_cast<unsigned*>(std::aligned_alloc(4096, 4096));
       *host = 9;
       REQUIRE(cuMemHostRegister(host, 4096, 0));
       CUgraphExec exec = k.instantiate(k.captured([&] { REQUIRE(cuMemcpyHtoDAsync(k.buffer, host, 4, k.stream)); }));
       k << cuMemHostUnregister(host);
       replay(k, exec);
     }},
};

} // namespace facts
