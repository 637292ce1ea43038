// cudaMalloc in a capture, for a temporary buffer. It is refused, and the capture is lost.
//
// EXPECT: CS105 cuMemAlloc
// EXPECT-NOT: CS104
// REPLAYS: 0
// EVENTS: 8
#include "examples/runtime.h"

int main() {
  unsigned* data = example::warmed_up();
  cudaStream_t stream = example::make_stream();

  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  example::fill<<<1, example::count, 0, stream>>>(data, example::count, 1u);
  LAUNCHED();
  unsigned* temporary = nullptr;
  TRY(cudaMalloc(&temporary, example::bytes)); // the mistake
  TRY(cudaMemcpyAsync(data, data, example::bytes, cudaMemcpyDeviceToDevice, stream));
  cudaGraph_t graph = nullptr;
  TRY(cudaStreamEndCapture(stream, &graph));

  std::printf("captured: %s\n", graph ? "yes" : "no");
}
