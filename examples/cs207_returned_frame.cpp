// A captured copy takes its source from a local variable of the function that captured it. The function has returned
// when the graph is launched: the copy reads a frame that is gone.
//
// EXPECT: CS207 cuGraphLaunch
// CAPTURES: 1
// REPLAYS: 1
// EVENTS: 10
#include "examples/example.h"

namespace {

[[gnu::noinline]] CUgraphExec capture(CUstream stream, CUdeviceptr data) {
  unsigned values[example::count] = {7u}; // the mistake: gone when this function returns
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
  CUgraphExec exec = capture(stream, data);
  example::replay(exec, stream, 1);
  CHECK(cuGraphExecDestroy(exec));
}
