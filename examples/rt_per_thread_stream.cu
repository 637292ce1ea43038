// Compiled with -default-stream per-thread: stream 0 is the calling thread's own and can be captured. Waiting for "the
// default stream" then waits for the stream that is being captured.
//
// EXPECT: CS101 cuStreamSynchronize
// EXPECT-NOT: CS102
// REPLAYS: 0
// EVENTS: 8
#include "examples/runtime.h"

int main() {
  unsigned* data = example::warmed_up();
  cudaStream_t stream = nullptr;

  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  example::fill<<<1, example::count>>>(data, example::count, 1u);
  LAUNCHED();
  TRY(cudaStreamSynchronize(stream)); // the mistake
  example::add<<<1, example::count>>>(data, example::count, 2u);
  LAUNCHED();
  cudaGraph_t graph = nullptr;
  TRY(cudaStreamEndCapture(stream, &graph));

  std::printf("captured: %s\n", graph ? "yes" : "no");
}
