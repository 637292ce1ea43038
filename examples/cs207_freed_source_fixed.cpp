// The source of the captured copy lives as long as the graph that reads it.
//
// EXPECT: none
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

  example::replay(exec, stream, 1);
  CHECK(cuGraphExecDestroy(exec));
  values.reset(); // nobody reads it any more
  CHECK(cuGraphDestroy(graph));
}
