// A launcher keeps the stream of its first call and goes on using it: nothing it does is captured, the graph is empty,
// and its replays do nothing. No call fails.
//
// EXPECT: CS103 cuLaunchKernel
// CAPTURES: 1
// REPLAYS: 3
// EVENTS: 10
#include "examples/example.h"

int main() {
  example::device device;
  CUstream warm_up = example::make_stream();
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();

  CUstream kept = warm_up; // the mistake: kept from the warm-up
  CHECK(example::launch(device.fill, kept, data, example::count, 1u));
  CHECK(cuStreamSynchronize(warm_up));

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(example::launch(device.add, kept, data, example::count, 2u));
  CHECK(example::launch(device.add, kept, data, example::count, 3u));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));

  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 3);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
