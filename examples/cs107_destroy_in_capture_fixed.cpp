// The twin of cs107_destroy_in_capture: the old graph goes after the new capture has ended.
//
// EXPECT: none
// CAPTURES: 2
// REPLAYS: 4
// EVENTS: 15
#include "examples/example.h"

template <class work>
static CUgraphExec capture(CUstream stream, work launches) {
  CUgraph graph = nullptr;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  launches();
  CHECK(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = example::instantiate(graph);
  CHECK(cuGraphDestroy(graph));
  return exec;
}

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();

  CUgraphExec old = capture(stream, [&] { CHECK(example::launch(device.fill, stream, data, example::count, 1u)); });
  example::replay(old, stream, 1);

  CUgraphExec exec = capture(stream, [&] { CHECK(example::launch(device.add, stream, data, example::count, 2u)); });
  CHECK(cuGraphExecDestroy(old));
  example::replay(exec, stream, 3);
  CHECK(cuGraphExecDestroy(exec));
}
