// The twin of cs106_first_use: all that will be captured is loaded before.
//
// EXPECT: none
// CAPTURES: 1
// REPLAYS: 1
// EVENTS: 10
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();
  CUmodule variant = nullptr;
  CUfunction fill = nullptr;
  CHECK(cuModuleLoadData(&variant, example_kernels));
  CHECK(cuModuleGetFunction(&fill, variant, "fill"));

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(example::launch(fill, stream, data, example::count, 1u));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));

  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 1);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
