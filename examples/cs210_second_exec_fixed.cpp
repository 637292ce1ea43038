// The twin of cs210_second_exec: the first one is destroyed before.
//
// EXPECT: none
// CAPTURES: 1
// REPLAYS: 2
// EVENTS: 11
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr scratch = 0;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuMemAllocAsync(&scratch, example::bytes, stream));
  CHECK(example::launch(device.fill, stream, scratch, example::count, 1u));
  CHECK(cuMemFreeAsync(scratch, stream));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 1);
  CHECK(cuGraphExecDestroy(exec));
  exec = example::instantiate(graph);
  example::replay(exec, stream, 1);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
