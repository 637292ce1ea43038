// A captured host function frees its own data, as one does with a callback that runs once. In a graph it runs at every
// launch, and from the second one on it follows a pointer to freed memory.
//
// EXPECT: CS207 cuGraphLaunch
// CAPTURES: 1
// REPLAYS: 2
// EVENTS: 12
#include "examples/example.h"

namespace {

bool freed = false;

struct closure {
  int value;
};

void CUDA_CB callback(void* data) {
  if (freed) return; // the program would have crashed here, or not
  freed = true;
  delete static_cast<closure*>(data); // the mistake
}

} // namespace

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(example::launch(device.add, stream, data, example::count, 1u));
  CHECK(cuLaunchHostFunc(stream, callback, new closure{7}));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 1);
  example::replay(exec, stream, 1);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
