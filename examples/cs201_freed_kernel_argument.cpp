// The input of a captured kernel is freed, the graph is launched again. No call fails: the kernel reads and writes
// memory that belongs to nobody, or to somebody else.
//
// EXPECT: CS201 cuGraphLaunch
// CAPTURES: 1
// REPLAYS: 4
// EVENTS: 12
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();
  CUdeviceptr result = example::allocate();

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(example::launch(device.copy, stream, result, data, example::count));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 3);

  CHECK(cuMemFree(data)); // the mistake: the graph still names it
  example::replay(exec, stream, 1);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
