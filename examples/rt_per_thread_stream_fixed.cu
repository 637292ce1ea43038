// Compiled with -default-stream per-thread. The wait comes after the capture.
//
// EXPECT: none
// REPLAYS: 3
// EVENTS: 10
#include "examples/runtime.h"

int main() {
  unsigned* data = example::warmed_up();
  cudaStream_t stream = nullptr;

  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  example::fill<<<1, example::count>>>(data, example::count, 1u);
  LAUNCHED();
  example::add<<<1, example::count>>>(data, example::count, 2u);
  LAUNCHED();
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = example::instantiate(graph);
  example::replay(exec, stream, 3);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
}
