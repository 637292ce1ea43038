// The program reaches its end with a capture still open: what was captured is lost.
//
// EXPECT: CS113 cuStreamBeginCapture
// CAPTURES: 1
// REPLAYS: 0
// EVENTS: 7
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED)); // the mistake: never ended
  CHECK(example::launch(device.fill, stream, data, example::count, 1u));
}
