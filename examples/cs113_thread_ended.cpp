// A worker gives up in the middle of its capture and ends. The capture stays open, nobody can end it, and the next
// allocation of another thread is refused because of it.
//
// EXPECT: CS113 cuStreamBeginCapture
// EXPECT: CS104 cuMemAlloc
// CAPTURES: 1
// REPLAYS: 0
// EVENTS: 8
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
    if (failed) return; // the mistake: leaves the capture open
  });
  worker.join();
  CUdeviceptr more = 0;
  TRY(cuMemAlloc(&more, example::bytes));
}
