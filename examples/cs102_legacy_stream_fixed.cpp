// The twin of cs102_legacy_stream: all work goes to the captured stream.
//
// EXPECT: none
// CAPTURES: 1
// REPLAYS: 3
// EVENTS: 10
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream(CU_STREAM_DEFAULT);
  CUdeviceptr data = example::allocate();

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(example::launch(device.fill, stream, data, example::count, 1u));
  CHECK(example::launch(device.add, stream, data, example::count, 2u));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));

  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 3);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
