// cudaMemcpyToSymbol in a capture: a copy on the legacy default stream for which the host waits.
//
// EXPECT: CS102 cuMemcpyHtoD
// EXPECT-NOT: CS101
// REPLAYS: 0
// EVENTS: 8
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
  cudaStream_t stream = example::make_stream(cudaStreamDefault);

  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  example::fill<<<1, example::count, 0, stream>>>(data, example::count, 1u);
  LAUNCHED();
  TRY(cudaMemcpyToSymbol(factor, &three, sizeof three)); // the mistake
  scale<<<1, example::count, 0, stream>>>(data, example::count);
  LAUNCHED();
  cudaGraph_t graph = nullptr;
  TRY(cudaStreamEndCapture(stream, &graph));

  std::printf("captured: %s\n", graph ? "yes" : "no");
}
