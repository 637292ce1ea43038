// A launcher names no stream: what it does goes to the default stream and nothing is captured. The graph is empty, and
// its replays do nothing. No call fails, because the captured stream is a non-blocking one.
//
// EXPECT: CS103 cuLaunchKernel
// CAPTURES: 1
// REPLAYS: 3
// EVENTS: 10
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();

  CHECK(example::launch(device.fill, nullptr, data, example::count, 1u));
  CHECK(cuStreamSynchronize(nullptr));

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(example::launch(device.add, nullptr, data, example::count, 2u)); // the mistake: not on `stream`
  CHECK(example::launch(device.add, nullptr, data, example::count, 3u));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));

  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 3);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
