// A batched copy on the captured stream is refused, but the capture goes on and ends well: without the copy. Who
// ignores the result gets a graph that silently lacks a step.
//
// EXPECT: CS111 cuMemcpyBatchAsync
// EXPECT-NOT: CS105
// CAPTURES: 1
// REPLAYS: 3
// EVENTS: 11
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr source = example::allocate();
  CUdeviceptr target = example::allocate();

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(example::launch(device.fill, stream, source, example::count, 1u));
  CUdeviceptr targets[] = {target}, sources[] = {source};
  std::size_t sizes[] = {example::bytes}, first[] = {0};
  CUmemcpyAttributes how[] = {{}};
  how[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  TRY(cuMemcpyBatchAsync(targets, sources, sizes, 1, how, first, 1,
                         stream)); // the mistake: not capturable, and ignored
  CHECK(example::launch(device.add, stream, target, example::count, 2u));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));

  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 3);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
