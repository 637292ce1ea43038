// The twin of cs207_freed_registered: the memory stays as long as its graph.
//
// EXPECT: none
// CAPTURES: 1
// REPLAYS: 2
// EVENTS: 12
#include <cstring>

#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();
  void* staging = std::aligned_alloc(4096, 4096);
  std::memset(staging, 0, 4096);
  CHECK(cuMemHostRegister(staging, 4096, 0));

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuMemcpyHtoDAsync(data, staging, example::bytes, stream));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 1);

  example::replay(exec, stream, 1);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
  CHECK(cuMemHostUnregister(staging));
  std::free(staging);
}
