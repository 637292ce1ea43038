// The twin of cs201_freed_copy_source: the graph is captured anew when the source moves.
//
// EXPECT: none
// CAPTURES: 2
// REPLAYS: 6
// EVENTS: 18
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();
  CUdeviceptr result = example::allocate();

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuMemcpyDtoDAsync(result, data, example::bytes, stream));
  CHECK(example::launch(device.add, stream, result, example::count, 1u));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 3);

  CUdeviceptr moved = example::allocate();
  CHECK(cuMemFree(data));
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuMemcpyDtoDAsync(result, moved, example::bytes, stream));
  CHECK(example::launch(device.add, stream, result, example::count, 1u));
  CHECK(cuStreamEndCapture(stream, &graph));
  exec = example::instantiate(graph);
  example::replay(exec, stream, 3);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
