// cudaStreamAddCallback, the older way to have a host function called, cannot be captured.
//
// EXPECT: CS105 cuStreamAddCallback
// EXPECT-NOT: CS101
// REPLAYS: 0
// EVENTS: 8
#include "examples/runtime.h"

void count_up(cudaStream_t, cudaError_t, void* calls) { ++*static_cast<int*>(calls); }

int main() {
  unsigned* data = example::warmed_up();
  cudaStream_t stream = example::make_stream();
  int calls = 0;

  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  example::fill<<<1, example::count, 0, stream>>>(data, example::count, 1u);
  LAUNCHED();
  TRY(cudaStreamAddCallback(stream, count_up, &calls, 0)); // the mistake
  cudaGraph_t graph = nullptr;
  TRY(cudaStreamEndCapture(stream, &graph));

  std::printf("captured: %s\n", graph ? "yes" : "no");
}
