// A result is copied to the host inside the capture, but not on the captured stream: the set it should see has only
// been captured and has not run. The program prints what was there before. No call fails, because the captured stream
// is a non-blocking one.
//
// EXPECT: CS103 cuMemcpyDtoH
// EXPECT-NOT: CS102
// CAPTURES: 1
// REPLAYS: 1
// EVENTS: 10
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  unsigned first = 0;

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUdeviceptr data = example::allocate();
  CHECK(cuMemsetD32Async(data, 7, example::count, stream));
  CHECK(cuMemcpyDtoH(&first, data, sizeof(first))); // the mistake: runs now
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));

  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 1);
  std::printf("as expected: %s\n", first == 7 ? "yes" : "no");
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
