// What every runtime-API example needs and none is about. A program that wants stream 0 to be its thread's own is
// compiled with -default-stream per-thread; CMakeLists.txt says which.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

namespace example {

inline cudaError_t report(cudaError_t result, const char* call, int line) {
  if (result != cudaSuccess) std::printf("line %d: %s -> %s\n", line, call, cudaGetErrorName(result));
  return result;
}

// TRY: prints an error and goes on. CHECK: for set-up that the example cannot do without.
#define TRY(call) example::report((call), #call, __LINE__)
#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    if (TRY(call) != cudaSuccess) std::exit(1);                                                                        \
  } while (false)
// After a <<<>>> launch.
#define LAUNCHED() TRY(cudaGetLastError())

inline constexpr unsigned count = 256; // elements of a buffer, and threads of a launch
inline constexpr std::size_t bytes = count * sizeof(unsigned);

// One element a thread, as in kernels.cu.
static __global__ void add(unsigned* data, unsigned n, unsigned value) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] += value;
}
static __global__ void fill(unsigned* data, unsigned n, unsigned value) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = value;
}

inline unsigned* allocate(std::size_t size = bytes) {
  void* address = nullptr;
  CHECK(cudaMalloc(&address, size));
  return static_cast<unsigned*>(address);
}

// Both kernels once, so that nothing is left for a first use in a capture.
inline unsigned* warmed_up() {
  unsigned* data = allocate();
  fill<<<1, count>>>(data, count, 0u);
  add<<<1, count>>>(data, count, 1u);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  return data;
}

inline cudaStream_t make_stream(unsigned flags = cudaStreamNonBlocking) {
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, flags));
  return stream;
}

inline cudaEvent_t make_event() {
  cudaEvent_t event = nullptr;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

inline cudaGraphExec_t instantiate(cudaGraph_t graph) {
  cudaGraphExec_t exec = nullptr;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  return exec;
}

// Inlined, so that each call of it is a place of its own in the program.
[[gnu::always_inline]] inline void replay(cudaGraphExec_t exec, cudaStream_t stream, int times) {
  for (int i = 0; i < times; ++i) TRY(cudaGraphLaunch(exec, stream));
  TRY(cudaStreamSynchronize(stream));
}

} // namespace example
