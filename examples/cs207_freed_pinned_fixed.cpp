// Page-locked staging memory stays until the graph that reads it is gone.
//
// EXPECT: none
// CAPTURES: 1
// REPLAYS: 2
// EVENTS: 12
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();
  void* staging = nullptr;
  CHECK(cuMemAllocHost(&staging, example::bytes));

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuMemcpyHtoDAsync(data, staging, example::bytes, stream));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 1);

  void* other = nullptr;
  CHECK(cuMemAllocHost(&other, 2 * example::bytes));
  example::replay(exec, stream, 1);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuMemFreeHost(staging));
  CHECK(cuGraphDestroy(graph));
  CHECK(cuMemFreeHost(other));
}
