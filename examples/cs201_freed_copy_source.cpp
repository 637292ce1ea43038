// The source of a captured copy is freed before the graph is launched again: the copy brings whatever lies there
// now.
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
  CHECK(cuMemcpyDtoDAsync(result, data, example::bytes, stream));
  CHECK(example::launch(device.add, stream, result, example::count, 1u));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 3);

  CHECK(cuMemFree(data)); // the mistake: the copy still reads it
  example::replay(exec, stream, 1);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
