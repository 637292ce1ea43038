// The copy is asynchronous and names the stream: it becomes a node. Its source is pinned, and lives as long as the
// graph.
//
// EXPECT: none
// REPLAYS: 3
// EVENTS: 10
#include "examples/runtime.h"

__constant__ unsigned factor;

__global__ void scale(unsigned* data, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] *= factor;
}

int main() {
  unsigned* data = example::warmed_up();
  const unsigned three = 3;
  scale<<<1, example::count>>>(data, example::count);
  CHECK(cudaMemcpyToSymbol(factor, &three, sizeof three));
  unsigned* source = nullptr;
  CHECK(cudaMallocHost(&source, sizeof *source));
  *source = three;
  cudaStream_t stream = example::make_stream(cudaStreamDefault);

  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  example::fill<<<1, example::count, 0, stream>>>(data, example::count, 1u);
  LAUNCHED();
  CHECK(cudaMemcpyToSymbolAsync(factor, source, sizeof *source, 0, cudaMemcpyHostToDevice, stream));
  scale<<<1, example::count, 0, stream>>>(data, example::count);
  LAUNCHED();
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = example::instantiate(graph);
  example::replay(exec, stream, 3);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
}
