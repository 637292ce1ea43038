// A captured memset clears a buffer that is freed after instantiation: each replay clears memory of whoever comes
// next.
//
// EXPECT: CS201 cuGraphLaunch
// CAPTURES: 1
// REPLAYS: 1
// EVENTS: 11
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();
  CUdeviceptr result = example::allocate();

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuMemsetD32Async(data, 0, example::count, stream));
  CHECK(example::launch(device.add, stream, result, example::count, 1u));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = example::instantiate(graph);

  CHECK(cuMemFree(data)); // the mistake
  example::replay(exec, stream, 1);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
