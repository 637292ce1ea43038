// A launch on the legacy default stream while a blocking stream is captured. The legacy stream would have to wait
// for the captured one, which never runs: refused, and the capture is lost.
//
// EXPECT: CS102 cuLaunchKernel
// EXPECT-NOT: CS101
// REPLAYS: 0
// EVENTS: 8
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream(CU_STREAM_DEFAULT); // blocking: ordered with the legacy stream
  CUdeviceptr data = example::allocate();

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  TRY(example::launch(device.fill, stream, data, example::count, 1u));
  TRY(example::launch(device.add, nullptr, data, example::count, 2u)); // the mistake: the stream was forgotten
  CUgraph graph = nullptr;
  TRY(cuStreamEndCapture(stream, &graph));

  std::printf("captured: %s\n", graph ? "yes" : "no");
}
