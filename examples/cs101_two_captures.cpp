// One thread captures two streams at once, and waits for the whole context in between: one call breaks both captures.
//
// EXPECT: CS101 cuCtxSynchronize
// EXPECT-NOT: CS902
// CAPTURES: 2
// REPLAYS: 0
// EVENTS: 10
#include "examples/example.h"

int main() {
  example::device device;
  CUstream first = example::make_stream();
  CUstream second = example::make_stream();
  CUdeviceptr data = example::allocate();

  CHECK(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK(cuStreamBeginCapture(second, CU_STREAM_CAPTURE_MODE_RELAXED));
  TRY(example::launch(device.fill, first, data, example::count, 1u));
  TRY(example::launch(device.fill, second, data, example::count, 2u));
  TRY(cuCtxSynchronize()); // the mistake
  CUgraph graphs[2] = {};
  TRY(cuStreamEndCapture(first, &graphs[0]));
  TRY(cuStreamEndCapture(second, &graphs[1]));
  std::printf("captured: %s, %s\n", graphs[0] ? "yes" : "no", graphs[1] ? "yes" : "no");
}
