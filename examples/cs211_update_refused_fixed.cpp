// The twin of cs211_update_refused: where the update is refused, the new graph is instantiated.
//
// EXPECT: none
// CAPTURES: 2
// REPLAYS: 2
// EVENTS: 14
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
  if (TRY(cuGraphExecUpdate(exec, two, &info)) != CUDA_SUCCESS) {
    CHECK(cuGraphExecDestroy(exec));
    exec = example::instantiate(two);
  }
  example::replay(exec, stream, 1);
  CHECK(cuGraphExecDestroy(exec));
}
