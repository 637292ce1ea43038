// A wait for the stream that is being captured. Nothing has run yet, so there is nothing to wait for: the driver
// refuses the call and the whole capture is lost, which the program hears only at the next call.
//
// EXPECT: CS101 cuStreamSynchronize
// EXPECT-NOT: CS104
// REPLAYS: 0
// EVENTS: 8
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  TRY(example::launch(device.fill, stream, data, example::count, 1u));
  TRY(cuStreamSynchronize(stream)); // the mistake: "is the first kernel done?"
  TRY(example::launch(device.add, stream, data, example::count, 2u));
  CUgraph graph = nullptr;
  TRY(cuStreamEndCapture(stream, &graph));

  std::printf("captured: %s\n", graph ? "yes" : "no");
}
