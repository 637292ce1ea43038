// The twin of cs109_wait_for_outside: the stream waits before the capture begins, and before each replay if need
// be.
//
// EXPECT: none
// CAPTURES: 1
// REPLAYS: 3
// EVENTS: 11
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUstream uploads = example::make_stream();
  CUevent uploaded = example::make_event();
  CUdeviceptr data = example::allocate();
  CHECK(example::launch(device.fill, uploads, data, example::count, 1u));
  CHECK(cuEventRecord(uploaded, uploads));

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(example::launch(device.add, stream, data, example::count, 2u));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));

  CUgraphExec exec = example::instantiate(graph);
  CHECK(cuStreamWaitEvent(stream, uploaded, 0)); // ordinary work of the stream, ahead of the graph
  example::replay(exec, stream, 3);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
