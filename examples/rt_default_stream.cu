// A launch without a stream, as <<<grid, block>>> is. That is the legacy default stream, which waits for every blocking
// stream; one of them is being captured, so there is nothing it could wait for.
//
// EXPECT: CS102 cuLaunchKernel
// EXPECT-NOT: CS101
// REPLAYS: 0
// EVENTS: 8
#include "examples/runtime.h"

int main() {
  unsigned* data = example::warmed_up();
  cudaStream_t stream = example::make_stream(cudaStreamDefault);

  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  example::fill<<<1, example::count, 0, stream>>>(data, example::count, 1u);
  LAUNCHED();
  example::add<<<1, example::count>>>(data, example::count, 2u); // the mistake
  LAUNCHED();
  cudaGraph_t graph = nullptr;
  TRY(cudaStreamEndCapture(stream, &graph));

  std::printf("captured: %s\n", graph ? "yes" : "no");
}
