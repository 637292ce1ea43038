// A captured kernel uses scratch memory behind its captured free. The graph reads and writes what the allocator may
// have given to somebody else by then.
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
  CHECK(cuMemFreeAsync(scratch, stream));
  CHECK(example::launch(device.add, stream, scratch, example::count, 2u)); // the mistake
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 1);
  TRY(cuGraphExecDestroy(exec));
}
