// Physical memory is taken away from under a captured kernel, and the addresses are given up: what is mapped there next
// is somebody else's.
//
// EXPECT: CS201 cuGraphLaunch
// SHOW: suspected
// CAPTURES: 1
// REPLAYS: 2
// EVENTS: 16
#include "examples/example.h"
#include "examples/mapped.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  example::mapped memory;

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(example::launch(device.add, stream, memory.address, example::count, 1u));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 1);

  memory.unmap();
  memory.give_up_addresses(); // the mistake: the graph still has them
  example::mapped other(memory.address);
  example::replay(exec, stream, 1);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
  other.unmap();
}
