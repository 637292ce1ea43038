// A freed buffer's address goes to the next allocation of that size. The graph still writes there: the new owner's
// data change at each replay, and no call ever fails.
//
// EXPECT: CS201 cuGraphLaunch
// CAPTURES: 1
// REPLAYS: 4
// EVENTS: 13
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(example::launch(device.add, stream, data, example::count, 1u));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 3);

  CHECK(cuMemFree(data)); // the mistake
  CUdeviceptr victim = example::allocate();
  std::printf("the address %s\n", victim == data ? "has a new owner" : "is free");
  CHECK(example::launch(device.fill, stream, victim, example::count, 100u));
  example::replay(exec, stream, 1); // victim holds 101 now
  unsigned value = 0;
  TRY(cuMemcpyDtoH(&value, victim, sizeof value));
  std::printf("100 became %u\n", value);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
