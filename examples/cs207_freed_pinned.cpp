// Page-locked staging memory goes back to the driver although a captured copy still reads it. The simulated driver
// faults at the replay; the measured real one (580.159.04) crashes in it.
//
// REAL-SIGNAL: 11
// EXPECT: CS207 cuGraphLaunch
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
  CHECK(cuMemFreeHost(staging));                     // the mistake
  CHECK(cuMemAllocHost(&other, 2 * example::bytes)); // may get the same place
  example::replay(exec, stream, 1);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
  CHECK(cuMemFreeHost(other));
}
