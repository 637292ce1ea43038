// A kernel of a library is captured by its own handle, the library is unloaded, and the graph is launched once more.
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
  CUlibrary plugin = nullptr;
  CUkernel fill = nullptr;
  CHECK(cuLibraryLoadData(&plugin, example_kernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CHECK(cuLibraryGetKernel(&fill, plugin, "fill"));

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(example::launch(reinterpret_cast<CUfunction>(fill), stream, data, example::count, 1u));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 1);

  CHECK(cuLibraryUnload(plugin)); // the mistake
  example::replay(exec, stream, 1);
  TRY(cuGraphExecDestroy(exec));
}
