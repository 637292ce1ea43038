// The first stream waits for the second before the capture ends.
//
// EXPECT: none
// REPLAYS: 3
// EVENTS: 12
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
  CHECK(cudaStreamWaitEvent(stream, join));
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = example::instantiate(graph);
  example::replay(exec, stream, 3);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
}
