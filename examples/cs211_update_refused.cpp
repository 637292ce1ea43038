// An executable graph cannot take over a graph with another node. The program does not look, and replays the old one.
//
// Suspected only: at level lite nobody can tell whether the program ran the changed work by itself in between.
//
// EXPECT: CS211 cuGraphExecUpdate
// SHOW: suspected
// CAPTURES: 2
// REPLAYS: 2
// EVENTS: 12
#include "examples/example.h"

CUgraph capture(example::device& device, CUstream stream, CUdeviceptr data, int launches) {
  CUgraph graph = nullptr;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  for (int i = 0; i < launches; ++i) CHECK(example::launch(device.add, stream, data, example::count, 1u));
  CHECK(cuStreamEndCapture(stream, &graph));
  return graph;
}

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();
  CUgraph one = capture(device, stream, data, 1);
  CUgraph two = capture(device, stream, data, 2);
  CUgraphExec exec = example::instantiate(one);
  example::replay(exec, stream, 1);
  CUgraphExecUpdateResultInfo info{};
  TRY(cuGraphExecUpdate(exec, two, &info)); // the mistake: refused, and ignored
  example::replay(exec, stream, 1);
  CHECK(cuGraphExecDestroy(exec));
}
