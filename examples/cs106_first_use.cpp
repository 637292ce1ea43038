// A variant of a kernel that the warm-up did not use is loaded inside the capture. Drivers from 12.3 on allow it; older
// ones refuse, and it costs its time in the capture.
//
// EXPECT: CS106 cuModuleLoadData
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

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuModuleLoadData(&variant, example_kernels)); // the mistake: not warmed up
  CHECK(cuModuleGetFunction(&fill, variant, "fill"));
  CHECK(example::launch(fill, stream, data, example::count, 1u));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));

  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 1);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
