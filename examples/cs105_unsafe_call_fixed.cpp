// The twin of cs105_unsafe_call: one call before the capture allocates the scratch memory.
//
// EXPECT: none
// CAPTURES: 1
// REPLAYS: 3
// EVENTS: 11
#include "examples/example.h"

static CUdeviceptr scratch() {
  static CUdeviceptr memory = 0;
  if (memory == 0) CHECK(cuMemAlloc(&memory, example::bytes));
  return memory;
}

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();
  scratch(); // warm-up

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(example::launch(device.fill, stream, data, example::count, 1u));
  CHECK(example::launch(device.fill, stream, scratch(), example::count, 2u));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));

  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 3);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
