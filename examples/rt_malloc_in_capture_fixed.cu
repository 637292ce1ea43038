// cudaMallocAsync and cudaFreeAsync become nodes: the graph has the temporary buffer for as long as a replay needs it.
//
// EXPECT: none
// REPLAYS: 3
// EVENTS: 10
#include "examples/runtime.h"

int main() {
  unsigned* data = example::warmed_up();
  cudaStream_t stream = example::make_stream();

  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  unsigned* temporary = nullptr;
  CHECK(cudaMallocAsync(&temporary, example::bytes, stream));
  example::fill<<<1, example::count, 0, stream>>>(temporary, example::count, 1u);
  LAUNCHED();
  CHECK(cudaMemcpyAsync(data, temporary, example::bytes, cudaMemcpyDeviceToDevice, stream));
  CHECK(cudaFreeAsync(temporary, stream));
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = example::instantiate(graph);
  example::replay(exec, stream, 3);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
}
