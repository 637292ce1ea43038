// Scratch memory is allocated on first use, and the first use is inside a capture. An allocation may have to wait
// for the device, so it is refused and the capture is lost.
//
// EXPECT: CS105 cuMemAlloc
// EXPECT-NOT: CS104
// REPLAYS: 0
// EVENTS: 8
#include "examples/example.h"

static CUdeviceptr scratch() {
  static CUdeviceptr memory = 0;
  if (memory == 0) TRY(cuMemAlloc(&memory, example::bytes));
  return memory;
}

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  TRY(example::launch(device.fill, stream, data, example::count, 1u));
  CUdeviceptr memory = scratch(); // the mistake: nobody warmed it up
  TRY(example::launch(device.fill, stream, memory, example::count, 2u));
  CUgraph graph = nullptr;
  TRY(cuStreamEndCapture(stream, &graph));

  std::printf("captured: %s\n", graph ? "yes" : "no");
}
