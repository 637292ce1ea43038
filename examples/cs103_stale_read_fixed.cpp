// The twin of cs103_stale_read: the result is copied after the graph has run.
//
// EXPECT: none
// CAPTURES: 1
// REPLAYS: 1
// EVENTS: 9
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();
  unsigned first = 0;

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK(cuMemsetD32Async(data, 7, example::count, stream));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));

  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 1);
  CHECK(cuMemcpyDtoH(&first, data, sizeof(first)));
  std::printf("as expected: %s\n", first == 7 ? "yes" : "no");
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
