// The twin of cs201_reused_address: the graph is told about the new buffer before the old one goes.
//
// EXPECT: none
// CAPTURES: 2
// REPLAYS: 6
// EVENTS: 17
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(example::launch(device.add, stream, data, example::count, 1u));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 3);

  CUdeviceptr moved = example::allocate();
  CUgraph update = nullptr;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(example::launch(device.add, stream, moved, example::count, 1u));
  CHECK(cuStreamEndCapture(stream, &update));
  CUgraphExecUpdateResultInfo info = {};
  CHECK(cuGraphExecUpdate(exec, update, &info)); // same shape, other pointer
  CHECK(cuGraphDestroy(update));
  CHECK(cuMemFree(data));
  example::replay(exec, stream, 3);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
