// Sleep and wake up: physical memory is taken away and given back under the same addresses, as memory savers do. The
// graph finds its memory where it was.
//
// EXPECT: none
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
  memory.map(); // in the same place, which nobody else could get
  example::replay(exec, stream, 1);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
  memory.unmap();
}
