// The twin of cs215_unloaded_library: the library goes after its graph.
//
// EXPECT: none
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

  example::replay(exec, stream, 1);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
  CHECK(cuLibraryUnload(plugin));
}
