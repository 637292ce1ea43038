// The driver calls that the shim makes on its own account while a capture is open: each must leave the capture as it
// was. Prints one row per call and thread, in the form of tests/golden/harmless_calls_580.159.csv.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>

#include <cuda.h>

namespace {

void need(CUresult r, const char* what) {
  if (r != CUDA_SUCCESS) {
    std::fprintf(stderr, "%s: %d\n", what, static_cast<int>(r));
    std::exit(1);
  }
}
#define NEED(call) need((call), #call)

const char* const kernel_text = ".version 8.0\n.target sm_80\n.address_size 64\n"
                                ".visible .entry k(.param .u64 p){ ret; }\n";

struct bench {
  CUcontext context{};
  CUfunction function{};
  CUkernel kernel{};
  CUdeviceptr memory{};
  CUstream stream{};
  CUgraph graph{};
  CUgraphNode nodes[3]{};

  bench() {
    CUdevice device{};
    CUmodule module{};
    CUlibrary library{};
    NEED(cuInit(0));
    NEED(cuDeviceGet(&device, 0));
    NEED(cuDevicePrimaryCtxRetain(&context, device));
    NEED(cuCtxSetCurrent(context));
    NEED(cuModuleLoadData(&module, kernel_text));
    NEED(cuModuleGetFunction(&function, module, "k"));
    NEED(cuLibraryLoadData(&library, kernel_text, nullptr, nullptr, 0, nullptr, nullptr, 0));
    NEED(cuLibraryGetKernel(&kernel, library, "k"));
    NEED(cuMemAlloc(&memory, 4096));
    NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    NEED(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    NEED(launch());
    NEED(cuMemcpyDtoDAsync(memory, memory + 1024, 64, stream));
    NEED(cuMemsetD8Async(memory, 0, 64, stream));
    NEED(cuStreamEndCapture(stream, &graph));
    std::size_t n = 3;
    NEED(cuGraphGetNodes(graph, nodes, &n));
  }
  CUresult launch() {
    void* parameters[] = {&memory};
    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
  }
};

struct question {
  const char* name;
  std::function<CUresult(bench&)> ask;
};

const question questions[] = {
    {"cuGraphGetNodes",
     [](bench& b) {
       std::size_t n = 0;
       return cuGraphGetNodes(b.graph, nullptr, &n);
     }},
    {"cuGraphNodeGetType",
     [](bench& b) {
       CUgraphNodeType t;
       return cuGraphNodeGetType(b.nodes[0], &t);
     }},
    {"cuGraphKernelNodeGetParams",
     [](bench& b) {
       CUDA_KERNEL_NODE_PARAMS p;
       return cuGraphKernelNodeGetParams(b.nodes[0], &p);
     }},
    {"cuGraphMemcpyNodeGetParams",
     [](bench& b) {
       CUDA_MEMCPY3D p;
       return cuGraphMemcpyNodeGetParams(b.nodes[1], &p);
     }},
    {"cuGraphMemsetNodeGetParams",
     [](bench& b) {
       CUDA_MEMSET_NODE_PARAMS p;
       return cuGraphMemsetNodeGetParams(b.nodes[2], &p);
     }},
    {"cuFuncGetName",
     [](bench& b) {
       const char* n = nullptr;
       return cuFuncGetName(&n, b.function);
     }},
    {"cuKernelGetName",
     [](bench& b) {
       const char* n = nullptr;
       return cuKernelGetName(&n, b.kernel);
     }},
    {"cuKernelGetParamInfo",
     [](bench& b) {
       std::size_t o = 0, s = 0;
       return cuKernelGetParamInfo(b.kernel, 0, &o, &s);
     }},
    {"cuFuncGetParamInfo(past end)",
     [](bench& b) {
       std::size_t o = 0, s = 0;
       return cuFuncGetParamInfo(b.function, 7, &o, &s);
     }},
    {"cuCtxGetCurrent",
     [](bench&) {
       CUcontext c = nullptr;
       return cuCtxGetCurrent(&c);
     }},
    {"cuDriverGetVersion",
     [](bench&) {
       int v = 0;
       return cuDriverGetVersion(&v);
     }},
    {"cuDeviceGetName",
     [](bench&) {
       char name[64];
       return cuDeviceGetName(name, 64, 0);
     }},
    {"cuStreamGetCaptureInfo",
     [](bench& b) {
       CUstreamCaptureStatus s{};
       return cuStreamGetCaptureInfo(b.stream, &s, nullptr, nullptr, nullptr, nullptr, nullptr);
     }},
};

void row(bench& b, const question& q, bool other) {
  NEED(cuStreamBeginCapture(b.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  NEED(b.launch());
  CUresult answer{};
  if (other) {
    std::thread([&] {
      cuCtxSetCurrent(b.context);
      answer = q.ask(b);
    }).join();
  } else {
    answer = q.ask(b);
  }
  CUstreamCaptureStatus status{};
  cuStreamIsCapturing(b.stream, &status);
  CUgraph graph = nullptr;
  const CUresult end = cuStreamEndCapture(b.stream, &graph);
  std::size_t nodes = 0;
  if (graph != nullptr) {
    cuGraphGetNodes(graph, nullptr, &nodes);
    cuGraphDestroy(graph);
  }
  std::printf("%s,%s,%d,%d,%d,%zu\n", q.name, other ? "other" : "same", static_cast<int>(answer),
              static_cast<int>(status), static_cast<int>(end), nodes);
}

} // namespace

int main() {
  bench b;
  for (const question& q : questions) {
    row(b, q, false);
    row(b, q, true);
  }
}
