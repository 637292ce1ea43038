// A captured stream waits for an event that was recorded outside the capture. A graph cannot depend on work that
// it does not contain: refused, and the capture is lost.
//
// EXPECT: CS109 cuStreamWaitEvent
// EXPECT-NOT: CS108
// REPLAYS: 0
// EVENTS: 9
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUstream uploads = example::make_stream();
  CUevent uploaded = example::make_event();
  CUdeviceptr data = example::allocate();
  CHECK(example::launch(device.fill, uploads, data, example::count, 1u));
  CHECK(cuEventRecord(uploaded, uploads));

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  TRY(cuStreamWaitEvent(stream, uploaded, 0)); // the mistake: uploads is not part of this capture
  TRY(example::launch(device.add, stream, data, example::count, 2u));
  CUgraph graph = nullptr;
  TRY(cuStreamEndCapture(stream, &graph));

  std::printf("captured: %s\n", graph ? "yes" : "no");
  TRY(cuStreamSynchronize(uploads));
}
