// The captured function copies a table from a scratch array that the program uses for other things too. The copy is a
// node: each replay reads that place anew, whatever is there by then. Whether the array still holds what was meant
// cannot be seen from outside, so the finding is a suspicion.
//
// EXPECT: CS208 cuGraphLaunch
// SHOW: suspected
// CAPTURES: 1
// REPLAYS: 2
// EVENTS: 10
#include "examples/example.h"

#include <vector>

CUgraph capture(example::device& device, CUstream stream, CUdeviceptr data, std::vector<unsigned>& scratch) {
  scratch.assign(example::count, 1);
  CUgraph graph = nullptr;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuMemcpyHtoDAsync(data, scratch.data(), example::bytes, stream));
  CHECK(example::launch(device.add, stream, data, example::count, 1u));
  CHECK(cuStreamEndCapture(stream, &graph));
  return graph;
}

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();
  std::vector<unsigned> scratch;
  CUgraph graph = capture(device, stream, data, scratch);
  CUgraphExec exec = example::instantiate(graph);
  scratch.assign(example::count, 7); // the mistake: the replays read this
  example::replay(exec, stream, 2);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
