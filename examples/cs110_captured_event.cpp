// An event recorded inside a capture marks a place in the graph, not a moment in time. Asking whether it has
// happened is refused and the capture is lost.
//
// EXPECT: CS110 cuEventQuery
// EXPECT-NOT: CS101
// REPLAYS: 0
// EVENTS: 9
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUevent done = example::make_event();
  CUdeviceptr data = example::allocate();

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  TRY(example::launch(device.fill, stream, data, example::count, 1u));
  TRY(cuEventRecord(done, stream));
  TRY(cuEventQuery(done)); // the mistake: a watchdog looks at an event it knows
  TRY(example::launch(device.add, stream, data, example::count, 2u));
  CUgraph graph = nullptr;
  TRY(cuStreamEndCapture(stream, &graph));

  std::printf("captured: %s\n", graph ? "yes" : "no");
}
