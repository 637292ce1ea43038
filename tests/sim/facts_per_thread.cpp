// Programs compiled for per-thread default streams: their synchronous copies (the _ptds variants) beside captures. And
// captures to graphs that overlap in two threads.
#include "facts.h"

namespace facts {
namespace {

constexpr auto global = CU_STREAM_CAPTURE_MODE_GLOBAL, local = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
               relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;

// The variant that a program compiled with per-thread default streams is given.
template <class Fn>
Fn* per_thread(const char* name) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult how{};
  REQUIRE(cuGetProcAddress(name, &found, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &how));
  return reinterpret_cast<Fn*>(found);
}

unsigned pageable[16];

// One synchronous call of each kind, all on the calling thread's default stream.
using work = CUresult (*)(kit&);
CUresult to_device(kit& k) { return per_thread<decltype(cuMemcpyHtoD)>("cuMemcpyHtoD")(k.buffer, pageable, 64); }
CUresult to_host(kit& k) { return per_thread<decltype(cuMemcpyDtoH)>("cuMemcpyDtoH")(pageable, k.buffer, 64); }
CUresult on_device(kit& k) { return per_thread<decltype(cuMemcpyDtoD)>("cuMemcpyDtoD")(k.buffer, k.buffer + 4096, 64); }
CUresult any(kit& k) { return per_thread<decltype(cuMemcpy)>("cuMemcpy")(k.buffer, k.buffer + 4096, 64); }
CUresult set(kit& k) { return per_thread<decltype(cuMemsetD8)>("cuMemsetD8")(k.buffer, 0, 64); }

void tell_states(kit& k, CUstream captured) {
  CUgraph graph = nullptr;
  std::size_t nodes = 0;
  k << k.status(captured) << cuStreamEndCapture(captured, &graph);
  if (graph) REQUIRE(cuGraphGetNodes(graph, nullptr, &nodes));
  k << (graph ? static_cast<long long>(nodes) : -1);
}

// In each mode: result, status after it, EndCapture's result, nodes.
void in_own_capture(kit& k, work call) {
  k.start();
  for (const auto mode : {global, local, relaxed}) {
    k.begin(CU_STREAM_PER_THREAD, mode);
    k << call(k);
    tell_states(k, CU_STREAM_PER_THREAD);
  }
}

void beside_a_capture(kit& k, CUstream captured, work call, bool same_thread) {
  k.start();
  const CUstream stream = captured ? captured : k.stream;
  for (const auto mode : {global, local, relaxed}) {
    k.begin(stream, mode);
    if (same_thread)
      k << call(k);
    else
      elsewhere(k, [&] { k << call(k); });
    tell_states(k, stream);
  }
}

CUresult begin_to(CUstream stream, CUgraph graph, CUstreamCaptureMode mode) {
  return cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0, mode);
}

long long nodes_of(CUgraph graph) {
  std::size_t n = 0;
  return cuGraphGetNodes(graph, nullptr, &n) == CUDA_SUCCESS ? static_cast<long long>(n) : -1;
}

} // namespace

const std::vector<fact> per_thread_facts = {
    {"ptds: own per-thread capture: HtoD", [](kit& k) { in_own_capture(k, to_device); }},
    {"ptds: own per-thread capture: DtoH", [](kit& k) { in_own_capture(k, to_host); }},
    {"ptds: own per-thread capture: DtoD", [](kit& k) { in_own_capture(k, on_device); }},
    {"ptds: own per-thread capture: cuMemcpy", [](kit& k) { in_own_capture(k, any); }},
    {"ptds: own per-thread capture: memset", [](kit& k) { in_own_capture(k, set); }},
    {"ptds: stream captures, same thread: HtoD", [](kit& k) { beside_a_capture(k, nullptr, to_device, true); }},
    {"ptds: stream captures, same thread: DtoH", [](kit& k) { beside_a_capture(k, nullptr, to_host, true); }},
    {"ptds: stream captures, same thread: DtoD", [](kit& k) { beside_a_capture(k, nullptr, on_device, true); }},
    {"ptds: stream captures, same thread: memset", [](kit& k) { beside_a_capture(k, nullptr, set, true); }},
    {"ptds: stream captures, other thread: HtoD", [](kit& k) { beside_a_capture(k, nullptr, to_device, false); }},
    {"ptds: stream captures, other thread: DtoH", [](kit& k) { beside_a_capture(k, nullptr, to_host, false); }},
    {"ptds: stream captures, other thread: memset", [](kit& k) { beside_a_capture(k, nullptr, set, false); }},
    {"ptds: per-thread stream captures, other thread: HtoD",
     [](kit& k) { beside_a_capture(k, CU_STREAM_PER_THREAD, to_device, false); }},
    {"ptds: per-thread stream captures, other thread: memset",
     [](kit& k) { beside_a_capture(k, CU_STREAM_PER_THREAD, set, false); }},
    {"ptds: blocking stream captures, same thread: HtoD",
     [](kit& k) {
       k.start();
       k.begin(k.blocking);
       k << to_device(k);
       tell_states(k, k.blocking);
     }},
    {"ptds: no capture: HtoD; memset", [](kit& k) { k.start(), k << to_device(k) << set(k); }},
    {"to graph: two threads, two graphs, thread-local",
     [](kit& k) {
       k.start();
       CUgraph one = k.make_graph(), two = k.make_graph();
       k << begin_to(k.stream, one, local) << k.launch(k.stream);
       elsewhere(k, [&] {
         k << begin_to(k.second, two, local) << k.launch(k.second);
         tell_states(k, k.second);
       });
       tell_states(k, k.stream);
       k << nodes_of(one) << nodes_of(two);
     }},
    {"to graph: two threads, two graphs, global; an allocation by the second",
     [](kit& k) {
       k.start();
       CUgraph one = k.make_graph(), two = k.make_graph();
       CUdeviceptr a = 0;
       k << begin_to(k.stream, one, global) << k.launch(k.stream);
       elsewhere(k, [&] {
         k << begin_to(k.second, two, global) << k.launch(k.second) << cuMemAlloc(&a, 64);
         tell_states(k, k.second);
       });
       tell_states(k, k.stream);
     }},
    {"to graph: two threads, one graph: begin; the first goes on",
     [](kit& k) {
       k.start();
       CUgraph graph = k.make_graph();
       k << begin_to(k.stream, graph, local) << k.launch(k.stream);
       elsewhere(k, [&] { k << begin_to(k.second, graph, local) << k.status(k.second); });
       k << k.launch(k.stream);
       tell_states(k, k.stream);
     }},
    {"to graph: two threads, one graph, one after the other",
     [](kit& k) {
       k.start();
       CUgraph graph = k.make_graph();
       k << begin_to(k.stream, graph, local) << k.launch(k.stream);
       tell_states(k, k.stream);
       elsewhere(k, [&] {
         k << begin_to(k.second, graph, local) << k.launch(k.second);
         tell_states(k, k.second);
       });
       k << nodes_of(graph);
     }},
    {"to graph: begun here, ended by another thread",
     [](kit& k) {
       k.start();
       CUgraph graph = k.make_graph();
       k << begin_to(k.stream, graph, local) << k.launch(k.stream);
       elsewhere(k, [&] { tell_states(k, k.stream); });
       tell_states(k, k.stream);
     }},
    {"handles: a kernel and its function are two; name and layout by each",
     [](kit& k) {
       k.start();
       CUkernel kernel = nullptr;
       CUlibrary library = nullptr;
       CUfunction function = nullptr;
       const char* name = nullptr;
       std::size_t offset = 0, size = 0;
       const char* text = ".version 8.0\n.target sm_80\n.address_size 64\n"
                          ".visible .entry two(.param .u64 a, .param .u32 b) { ret; }\n";
       REQUIRE(cuLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0));
       REQUIRE(cuLibraryGetKernel(&kernel, library, "two"));
       REQUIRE(cuKernelGetFunction(&function, kernel));
       k << (reinterpret_cast<void*>(kernel) == reinterpret_cast<void*>(function)) << cuKernelGetName(&name, kernel)
         << cuFuncGetName(&name, function) << cuFuncGetName(&name, reinterpret_cast<CUfunction>(kernel))
         << cuKernelGetName(&name, reinterpret_cast<CUkernel>(function))
         << cuKernelGetParamInfo(kernel, 1, &offset, &size) << cuFuncGetParamInfo(function, 1, &offset, &size)
         << cuFuncGetParamInfo(reinterpret_cast<CUfunction>(kernel), 1, &offset, &size)
         << cuKernelGetParamInfo(reinterpret_cast<CUkernel>(function), 1, &offset, &size);
     }},
    {"handles: launch, occupancy and attribute by a kernel handle",
     [](kit& k) {
       k.start();
       CUkernel kernel = nullptr;
       CUlibrary library = nullptr;
       CUfunction function = nullptr;
       const char* text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry none() { ret; }\n";
       REQUIRE(cuLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0));
       REQUIRE(cuLibraryGetKernel(&kernel, library, "none"));
       REQUIRE(cuKernelGetFunction(&function, kernel));
       const auto as_function = reinterpret_cast<CUfunction>(kernel);
       int value = 0;
       CUmodule module = nullptr;
       k << cuLaunchKernel(as_function, 1, 1, 1, 1, 1, 1, 0, k.stream, nullptr, nullptr)
         << cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, as_function)
         << cuFuncGetModule(&module, as_function) << cuFuncGetModule(&module, function)
         << cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, as_function, 32, 0)
         << cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, reinterpret_cast<CUkernel>(function),
                                 k.device)
         << cuStreamSynchronize(k.stream);
     }},
    {"handles: the node of a kernel launched by handle names which",
     [](kit& k) {
       k.start();
       CUkernel kernel = nullptr;
       CUlibrary library = nullptr;
       CUfunction function = nullptr;
       const char* text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry none() { ret; }\n";
       REQUIRE(cuLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0));
       REQUIRE(cuLibraryGetKernel(&kernel, library, "none"));
       REQUIRE(cuKernelGetFunction(&function, kernel));
       for (const auto handle : {reinterpret_cast<CUfunction>(kernel), function}) {
         CUgraph graph =
             k.captured([&] { REQUIRE(cuLaunchKernel(handle, 1, 1, 1, 1, 1, 1, 0, k.stream, nullptr, nullptr)); });
         CUgraphNode node = nullptr;
         std::size_t one = 1;
         REQUIRE(cuGraphGetNodes(graph, &node, &one));
         CUDA_KERNEL_NODE_PARAMS params{};
         k << cuGraphKernelNodeGetParams(node, &params) << (params.func == function) << (params.kern == kernel)
           << (params.func == nullptr) << (params.kern == nullptr);
       }
     }},
};

} // namespace facts
