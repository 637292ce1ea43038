// The twin of cs201_freed_memset_target: the buffer is freed after the graph is gone.
//
// EXPECT: none
// CAPTURES: 1
// REPLAYS: 3
// EVENTS: 12
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
  example::replay(exec, stream, 3);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
  CHECK(cuMemFree(data));
}
