// The graph allocates its scratch memory when it runs, and nobody frees it: the second launch is refused.
//
// EXPECT: CS210 cuGraphLaunch
// CAPTURES: 1
// REPLAYS: 1
// EVENTS: 9
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
  example::replay(exec, stream, 2); // the mistake: the first launch's memory is still allocated
  CHECK(cuMemFree(scratch));
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
