// What every example needs and none is about: checks, a device with the kernels loaded, launch and replay.
// Driver API only; the kernels are in kernels.cu.
#pragma once

#include <cstdio>
#include <cstdlib>

#include <cuda.h>

extern "C" const unsigned char example_kernels[]; // kernels.cu as a fatbin

namespace example {

inline CUresult report(CUresult result, const char* call, int line) {
  const char* name = nullptr;
  if (result != CUDA_SUCCESS && cuGetErrorName(result, &name) == CUDA_SUCCESS) {
    std::printf("line %d: %s -> %s\n", line, call, name);
  }
  return result;
}

// TRY: prints an error and goes on. CHECK: for set-up that the example cannot do without.
#define TRY(call) example::report((call), #call, __LINE__)
#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    if (TRY(call) != CUDA_SUCCESS) std::exit(1);                                                                       \
  } while (false)

inline constexpr unsigned count = 256; // elements of a buffer, and threads of a launch
inline constexpr std::size_t bytes = count * sizeof(unsigned);

// Device 0 with its primary context current on this thread and the kernels loaded: nothing is left for a first use.
struct device {
  CUcontext context = nullptr;
  CUfunction add = nullptr, fill = nullptr, copy = nullptr;

  device() {
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&ordinal_, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, ordinal_));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module_, example_kernels));
    CHECK(cuModuleGetFunction(&add, module_, "add"));
    CHECK(cuModuleGetFunction(&fill, module_, "fill"));
    CHECK(cuModuleGetFunction(&copy, module_, "copy"));
  }
  device(const device&) = delete;
  device& operator=(const device&) = delete;
  ~device() { cuDevicePrimaryCtxRelease(ordinal_); }

 private:
  CUdevice ordinal_ = 0;
  CUmodule module_ = nullptr;
};

inline CUdeviceptr allocate(std::size_t size = bytes) {
  CUdeviceptr address = 0;
  CHECK(cuMemAlloc(&address, size));
  return address;
}

inline CUstream make_stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
  CUstream stream = nullptr;
  CHECK(cuStreamCreate(&stream, flags));
  return stream;
}

inline CUevent make_event() {
  CUevent event = nullptr;
  CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  return event;
}

// One block. The arguments must have exactly the types of the kernel's parameters.
template <class... arguments>
CUresult launch(CUfunction kernel, CUstream stream, arguments... values) {
  void* pointers[] = {&values...};
  return cuLaunchKernel(kernel, 1, 1, 1, count, 1, 1, 0, stream, pointers, nullptr);
}

inline CUgraphExec instantiate(CUgraph graph) {
  CUgraphExec exec = nullptr;
  CHECK(cuGraphInstantiate(&exec, graph, 0));
  return exec;
}

// Inlined, so that each call of it is a place of its own in the program.
[[gnu::always_inline]] inline void replay(CUgraphExec exec, CUstream stream, int times) {
  for (int i = 0; i < times; ++i) TRY(cuGraphLaunch(exec, stream));
  TRY(cuStreamSynchronize(stream));
}

} // namespace example
