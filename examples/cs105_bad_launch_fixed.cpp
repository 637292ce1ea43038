// The twin of cs105_bad_launch: where there are no rows, nothing is launched.
//
// EXPECT: none
// CAPTURES: 1
// REPLAYS: 1
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
  if (rows > 0) TRY(cuLaunchKernel(device.add, rows, 1, 1, example::count, 1, 1, 0, stream, values, nullptr));
  CHECK(example::launch(device.add, stream, data, example::count, 2u));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));

  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 1);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
