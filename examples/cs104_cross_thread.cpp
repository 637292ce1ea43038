// A helper thread allocates while another thread captures in global mode. The allocation fails, and so does the
// capture of a thread that did nothing wrong.
//
// EXPECT: CS104 cuMemAlloc
// EXPECT-NOT: CS105
// REPLAYS: 0
// EVENTS: 8
#include <thread>

#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL)); // the mistake: global watches every thread
  TRY(example::launch(device.fill, stream, data, example::count, 1u));
  std::thread loader([&] {
    CHECK(cuCtxSetCurrent(device.context));
    CUdeviceptr batch = 0;
    TRY(cuMemAlloc(&batch, example::bytes));
  });
  loader.join();
  TRY(example::launch(device.add, stream, data, example::count, 2u));
  CUgraph graph = nullptr;
  TRY(cuStreamEndCapture(stream, &graph));

  std::printf("captured: %s\n", graph ? "yes" : "no");
}
