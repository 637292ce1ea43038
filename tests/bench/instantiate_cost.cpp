// What an instantiation costs with whatever is preloaded, on whatever driver there is: a graph of NODES kernels with
// twelve addresses each, instantiated ROUNDS times. Nanoseconds of each as one JSON line: processor time of the thread,
// page faults included, so that a busy machine does not count.
//   instantiate_cost [NODES] [ROUNDS]
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include <cuda.h>

namespace {

constexpr int parameters = 12;

void need(CUresult r, int line) {
  if (r == CUDA_SUCCESS) return;
  std::printf("line %d: %d\n", line, static_cast<int>(r));
  std::exit(1);
}
#define NEED(call) need((call), __LINE__)

double processor_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

std::string kernel_text() {
  std::string text = ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry twelve(";
  for (int i = 0; i < parameters; ++i) text += std::string(i == 0 ? "" : ", ") + ".param .u64 p" + std::to_string(i);
  return text + ") { ret; }\n";
}

} // namespace

int main(int argc, char** argv) {
  const int nodes = argc > 1 ? std::atoi(argv[1]) : 5000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 20;
  CUdevice device{};
  CUcontext context{};
  CUmodule module{};
  CUfunction twelve{};
  NEED(cuInit(0));
  NEED(cuDeviceGet(&device, 0));
  NEED(cuDevicePrimaryCtxRetain(&context, device));
  NEED(cuCtxSetCurrent(context));
  NEED(cuModuleLoadData(&module, kernel_text().c_str()));
  NEED(cuModuleGetFunction(&twelve, module, "twelve"));
  std::vector<CUdeviceptr> memory(2000);
  for (CUdeviceptr& m : memory) NEED(cuMemAlloc(&m, 65536));
  CUgraph graph{};
  NEED(cuGraphCreate(&graph, 0));
  CUgraphNode last{};
  for (int n = 0; n < nodes; ++n) {
    CUdeviceptr values[parameters];
    void* at[parameters];
    for (int i = 0; i < parameters; ++i) {
      values[i] = memory[static_cast<std::size_t>(n * parameters + i) % memory.size()] + 64;
      at[i] = &values[i];
    }
    CUDA_KERNEL_NODE_PARAMS p{};
    p.func = twelve;
    p.gridDimX = p.gridDimY = p.gridDimZ = p.blockDimX = p.blockDimY = p.blockDimZ = 1;
    p.kernelParams = at;
    CUgraphNode node{};
    NEED(cuGraphAddKernelNode(&node, graph, n == 0 ? nullptr : &last, n == 0 ? 0 : 1, &p));
    last = node;
  }
  std::printf("{\"nodes\": %d, \"pointers\": %d, \"ns\": [", nodes, nodes * parameters);
  for (int r = -1; r < rounds; ++r) { // the first one warms up
    CUgraphExec exec{};
    const double from = processor_ns();
    NEED(cuGraphInstantiate(&exec, graph, 0));
    const double took = processor_ns() - from;
    if (r >= 0) std::printf("%s%.0f", r == 0 ? "" : ", ", took);
    NEED(cuGraphExecDestroy(exec));
  }
  std::printf("]}\n");
}
