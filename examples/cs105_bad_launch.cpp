// A launch whose grid is empty is wrong anywhere; inside a capture it also breaks the capture, and what fails later
// says nothing about it.
//
// EXPECT: CS105 cuLaunchKernel
// EXPECT-NOT: CS902
// CAPTURES: 1
// REPLAYS: 0
// EVENTS: 8
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();
  unsigned rows = 0, value = 1, count = example::count;

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(example::launch(device.fill, stream, data, example::count, 1u));
  void* values[] = {&data, &count, &value};
  TRY(cuLaunchKernel(device.add, rows, 1, 1, example::count, 1, 1, 0, stream, values, nullptr)); // the mistake: no rows
  TRY(example::launch(device.add, stream, data, example::count, 2u));
  CUgraph graph = nullptr;
  TRY(cuStreamEndCapture(stream, &graph));

  std::printf("captured: %s\n", graph ? "yes" : "no");
}
