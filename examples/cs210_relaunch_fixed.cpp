// The twin of cs210_relaunch: what one launch allocates is freed before the next.
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
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = example::instantiate(graph);
  for (int i = 0; i < 2; ++i) {
    example::replay(exec, stream, 1);
    CHECK(cuMemFreeAsync(scratch, stream));
  }
  CHECK(cuStreamSynchronize(stream));
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
