// The program limits the size of its own files and then makes many calls: part of the trace cannot be written. Nothing
// is wrong with its capture, but no rule may claim to have seen everything.
//
// EXPECT: CS901
// CAPTURES: 1
// REPLAYS: 3
// EVENTS: 20
#include <sys/resource.h>

#include "examples/example.h"

int main() {
  const rlimit limit{64 * 1024, RLIM_INFINITY};
  setrlimit(RLIMIT_FSIZE, &limit); // the mistake: room for a few hundred records

  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(example::launch(device.add, stream, data, example::count, 1u));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 3);
  for (int i = 0; i < 5000; ++i) CHECK(cuStreamSynchronize(stream));
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
  CHECK(cuMemFree(data));
}
