// The twin of cs108_unjoined_fork: a second event joins the side stream before the capture ends.
//
// EXPECT: none
// CAPTURES: 1
// REPLAYS: 3
// EVENTS: 15
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUstream side = example::make_stream();
  CUevent fork = example::make_event();
  CUevent join = example::make_event();
  CUdeviceptr data = example::allocate();
  CUdeviceptr other = example::allocate();

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuEventRecord(fork, stream));
  CHECK(cuStreamWaitEvent(side, fork, 0));
  CHECK(example::launch(device.fill, side, other, example::count, 1u));
  CHECK(example::launch(device.fill, stream, data, example::count, 2u));
  CHECK(cuEventRecord(join, side));
  CHECK(cuStreamWaitEvent(stream, join, 0));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));

  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 3);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
