// The captured function copies a table from its own stack. The copy is a node: each replay reads that place anew,
// whatever is there by then. Whether the array still lives cannot be seen from outside, so the finding is a suspicion.
//
// EXPECT: CS208 cuGraphLaunch
// SHOW: suspected
// CAPTURES: 1
// REPLAYS: 2
// EVENTS: 10
#include "examples/example.h"

CUgraph capture(example::device& device, CUstream stream, CUdeviceptr data) {
  unsigned values[example::count] = {1, 2, 3}; // the mistake: gone when this function returns
  CUgraph graph = nullptr;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuMemcpyHtoDAsync(data, values, example::bytes, stream));
  CHECK(example::launch(device.add, stream, data, example::count, 1u));
  CHECK(cuStreamEndCapture(stream, &graph));
  return graph;
}

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();
  CUgraph graph = capture(device, stream, data);
  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 2);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
