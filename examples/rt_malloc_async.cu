// Memory of cudaMallocAsync goes back to its pool while a graph still reads it.
//
// EXPECT: CS201 cuGraphLaunch
// CAPTURES: 1
// REPLAYS: 4
// EVENTS: 12
#include "examples/runtime.h"

int main() {
  unsigned* data = example::warmed_up();
  cudaStream_t stream = example::make_stream();
  unsigned* input = nullptr;
  CHECK(cudaMallocAsync(&input, example::bytes, stream));
  CHECK(cudaMemsetAsync(input, 0, example::bytes, stream));
  CHECK(cudaStreamSynchronize(stream));

  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaMemcpyAsync(data, input, example::bytes, cudaMemcpyDeviceToDevice, stream));
  example::add<<<1, example::count, 0, stream>>>(data, example::count, 1u);
  LAUNCHED();
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = example::instantiate(graph);
  example::replay(exec, stream, 3);

  CHECK(cudaFreeAsync(input, stream)); // the mistake
  CHECK(cudaStreamSynchronize(stream));
  example::replay(exec, stream, 1);
}
