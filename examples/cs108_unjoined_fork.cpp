// Work forks to a second stream through an event and is never joined back. The capture ends with branches left
// over, and the driver returns no graph.
//
// EXPECT: CS108 cuStreamEndCapture
// EXPECT-NOT: CS109
// REPLAYS: 0
// EVENTS: 9
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUstream side = example::make_stream();
  CUevent fork = example::make_event();
  CUdeviceptr data = example::allocate();
  CUdeviceptr other = example::allocate();

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  TRY(cuEventRecord(fork, stream));
  TRY(cuStreamWaitEvent(side, fork, 0)); // side is captured from here on
  TRY(example::launch(device.fill, side, other, example::count, 1u));
  TRY(example::launch(device.fill, stream, data, example::count, 2u));
  CUgraph graph = nullptr;
  TRY(cuStreamEndCapture(stream, &graph)); // the mistake: side was not joined

  std::printf("captured: %s\n", graph ? "yes" : "no");
}
