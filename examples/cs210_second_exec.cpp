// A graph with memory nodes can be instantiated once at a time; the second attempt is refused.
//
// EXPECT: CS210 cuGraphInstantiateWithFlags
// EXPECT-NOT: CS211
// CAPTURES: 1
// REPLAYS: 1
// EVENTS: 9
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr scratch = 0;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuMemAllocAsync(&scratch, example::bytes, stream));
  CHECK(example::launch(device.fill, stream, scratch, example::count, 1u));
  CHECK(cuMemFreeAsync(scratch, stream));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = example::instantiate(graph);
  CUgraphExec second = nullptr;
  TRY(cuGraphInstantiate(&second, graph, 0)); // the mistake
  example::replay(exec, stream, 1);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
