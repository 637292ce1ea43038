// The module of a captured kernel is unloaded, and the graph is launched once more. The launch succeeds and runs
// whatever is at that place by then.
//
// EXPECT: CS215 cuGraphLaunch
// CAPTURES: 1
// REPLAYS: 2
// EVENTS: 12
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();
  CUmodule plugin = nullptr;
  CUfunction fill = nullptr;
  CHECK(cuModuleLoadData(&plugin, example_kernels));
  CHECK(cuModuleGetFunction(&fill, plugin, "fill"));

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(example::launch(fill, stream, data, example::count, 1u));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 1);

  CHECK(cuModuleUnload(plugin)); // the mistake
  example::replay(exec, stream, 1);
  TRY(cuGraphExecDestroy(exec));
}
