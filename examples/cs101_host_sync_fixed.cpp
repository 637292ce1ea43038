// The twin of cs101_host_sync: the stream orders the two kernels by itself; the host waits once, after the
// replays.
//
// EXPECT: none
// CAPTURES: 1
// REPLAYS: 3
// EVENTS: 10
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(example::launch(device.fill, stream, data, example::count, 1u));
  CHECK(example::launch(device.add, stream, data, example::count, 2u));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));

  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 3); // waits at its end
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
