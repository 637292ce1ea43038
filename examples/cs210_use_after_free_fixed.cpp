// The twin of cs210_use_after_free: the free comes last.
//
// EXPECT: none
// CAPTURES: 1
// REPLAYS: 3
// EVENTS: 10
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr scratch = 0;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuMemAllocAsync(&scratch, example::bytes, stream));
  CHECK(example::launch(device.fill, stream, scratch, example::count, 1u));
  CHECK(example::launch(device.add, stream, scratch, example::count, 2u));
  CHECK(cuMemFreeAsync(scratch, stream));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 3);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
