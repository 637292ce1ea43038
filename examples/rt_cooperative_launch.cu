// A cooperative launch on a second stream of the capture, which the first never waits for.
//
// EXPECT: CS108 cuStreamEndCapture
// EXPECT-NOT: CS109
// REPLAYS: 0
// EVENTS: 10
#include <cooperative_groups.h>

#include "examples/runtime.h"

__global__ void phases(unsigned* data, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] += 1;
  cooperative_groups::this_grid().sync();
  if (i < n) data[i] += data[n - 1 - i];
}

int main() {
  unsigned* data = example::warmed_up();
  unsigned n = example::count;
  void* values[] = {&data, &n};
  CHECK(cudaLaunchCooperativeKernel(phases, dim3(2), dim3(128), values, 0, nullptr));
  CHECK(cudaDeviceSynchronize());
  cudaStream_t stream = example::make_stream(), side = example::make_stream();
  cudaEvent_t fork = example::make_event(), join = example::make_event();

  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaEventRecord(fork, stream));
  CHECK(cudaStreamWaitEvent(side, fork));
  CHECK(cudaLaunchCooperativeKernel(phases, dim3(2), dim3(128), values, 0, side));
  CHECK(cudaEventRecord(join, side));
  // The mistake: cudaStreamWaitEvent(stream, join) is missing.
  cudaGraph_t graph = nullptr;
  TRY(cudaStreamEndCapture(stream, &graph));

  std::printf("captured: %s\n", graph ? "yes" : "no");
}
