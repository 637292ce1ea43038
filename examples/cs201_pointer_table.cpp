// A captured kernel finds its inputs in a table that the graph copies to the device itself. One of them is freed. The
// node names the table only, so that this follows from what was copied there; a kernel could have written over it, and
// the finding is a suspicion.
//
// EXPECT: CS201 cuGraphLaunch
// SHOW: suspected
// CAPTURES: 1
// REPLAYS: 3
// EVENTS: 14
#include "examples/example.h"

extern "C" const unsigned char example_kernels[];

int main() {
  example::device device;
  CUmodule module = nullptr;
  CUfunction add_two = nullptr;
  CHECK(cuModuleLoadData(&module, example_kernels));
  CHECK(cuModuleGetFunction(&add_two, module, "add_two"));
  CUstream stream = example::make_stream();
  CUdeviceptr one = example::allocate();
  CUdeviceptr two = example::allocate();
  CUdeviceptr result = example::allocate();
  CUdeviceptr table = example::allocate(2 * sizeof(CUdeviceptr));
  void* staging = nullptr;
  CHECK(cuMemHostAlloc(&staging, 2 * sizeof(CUdeviceptr), 0));
  static_cast<CUdeviceptr*>(staging)[0] = one;
  static_cast<CUdeviceptr*>(staging)[1] = two;

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuMemcpyHtoDAsync(table, staging, 2 * sizeof(CUdeviceptr), stream));
  CHECK(example::launch(add_two, stream, result, table, example::count));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 2);

  CHECK(cuMemFree(two)); // the mistake: the table still names it
  example::replay(exec, stream, 1);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
