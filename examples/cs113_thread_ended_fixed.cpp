// The twin of cs113_thread_ended: the capture is ended on the way out, and its graph thrown away.
//
// EXPECT: none
// CAPTURES: 1
// REPLAYS: 0
// EVENTS: 9
#include <thread>

#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();

  std::thread worker([&] {
    CHECK(cuCtxSetCurrent(device.context));
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(example::launch(device.fill, stream, data, example::count, 1u));
    const bool failed = true;
    CUgraph graph = nullptr;
    CHECK(cuStreamEndCapture(stream, &graph));
    CHECK(cuGraphDestroy(graph));
    if (failed) return;
  });
  worker.join();
  CUdeviceptr more = 0;
  CHECK(cuMemAlloc(&more, example::bytes));
}
