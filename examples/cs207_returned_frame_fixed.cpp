// The source of the captured copy is a local variable of a function that is still running when the graph is launched.
//
// EXPECT: none
// CAPTURES: 1
// REPLAYS: 1
// EVENTS: 10
#include "examples/example.h"

namespace {

[[gnu::noinline]] CUgraphExec capture(CUstream stream, CUdeviceptr data, const unsigned* values) {
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuMemcpyHtoDAsync(data, values, example::bytes, stream));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
  return example::instantiate(graph);
}

} // namespace

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();
  unsigned values[example::count] = {7u};
  CUgraphExec exec = capture(stream, data, values);
  example::replay(exec, stream, 1);
  CHECK(cuGraphExecDestroy(exec));
}
