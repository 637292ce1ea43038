// An old graph is dropped while its successor is being captured, as a cache with a garbage collector does. The
// destruction is refused and takes the new capture with it.
//
// EXPECT: CS107 cuGraphExecDestroy
// EXPECT-NOT: CS105
// REPLAYS: 1
// EVENTS: 10
#include "examples/example.h"

static CUgraphExec capture_fill(example::device& device, CUstream stream, CUdeviceptr data) {
  CUgraph graph = nullptr;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(example::launch(device.fill, stream, data, example::count, 1u));
  CHECK(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = example::instantiate(graph);
  CHECK(cuGraphDestroy(graph));
  return exec;
}

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();
  CUgraphExec old = capture_fill(device, stream, data);
  example::replay(old, stream, 1);

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  TRY(example::launch(device.add, stream, data, example::count, 2u));
  TRY(cuGraphExecDestroy(old)); // the mistake: it could have waited
  CUgraph graph = nullptr;
  TRY(cuStreamEndCapture(stream, &graph));

  std::printf("captured: %s\n", graph ? "yes" : "no");
}
