// The twin of cs111_dropped_copy: an ordinary asynchronous copy becomes a node of the graph.
//
// EXPECT: none
// CAPTURES: 1
// REPLAYS: 3
// EVENTS: 11
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr source = example::allocate();
  CUdeviceptr target = example::allocate();

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(example::launch(device.fill, stream, source, example::count, 1u));
  CHECK(cuMemcpyDtoDAsync(target, source, example::bytes, stream));
  CHECK(example::launch(device.add, stream, target, example::count, 2u));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));

  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 3);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
