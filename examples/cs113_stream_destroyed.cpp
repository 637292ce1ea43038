// Clean-up after an error destroys the stream and forgets that it is being captured.
//
// EXPECT: CS113 cuStreamDestroy
// CAPTURES: 1
// REPLAYS: 0
// EVENTS: 8
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(example::launch(device.fill, stream, data, example::count, 1u));
  CHECK(cuStreamDestroy(stream)); // the mistake
  CHECK(cuMemFree(data));
}
