// A captured copy takes its source from a vector that is gone when the graph is launched again: every launch reads the
// source anew, and brings whatever lies there now.
//
// EXPECT: CS207 cuGraphLaunch
// CAPTURES: 1
// REPLAYS: 2
// EVENTS: 12
#include <memory>
#include <vector>

#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();
  auto values = std::make_unique<std::vector<unsigned>>(example::count, 7u);

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuMemcpyHtoDAsync(data, values->data(), example::bytes, stream));
  CHECK(example::launch(device.add, stream, data, example::count, 1u));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 1);

  values.reset(); // the mistake: the copy is not over, it happens at every launch
  example::replay(exec, stream, 1);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
