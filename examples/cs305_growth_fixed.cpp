// The twin of cs305_growth: each one is destroyed once it has run.
//
// EXPECT: none
// SHOW: suspected
// CAPTURES: 40
// REPLAYS: 40
// EVENTS: 280
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();
  for (int step = 0; step < 40; ++step) {
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(example::launch(device.add, stream, data, example::count, 1u));
    CUgraph graph = nullptr;
    CHECK(cuStreamEndCapture(stream, &graph));
    CUgraphExec exec = nullptr;
    CHECK(cuGraphInstantiate(&exec, graph, 0));
    CHECK(cuGraphLaunch(exec, stream));
    CHECK(cuGraphDestroy(graph));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuGraphExecDestroy(exec));
  }
  CHECK(cuStreamSynchronize(stream));
}
