// Memory that was registered for a captured copy is unregistered and freed, and the graph is launched once more. The
// simulated driver faults at the replay; so did a real one (580.159) where the memory was unregistered only.
//
// EXPECT: CS207 cuGraphLaunch
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

  CHECK(cuMemHostUnregister(staging));
  std::free(staging); // the mistake
  example::replay(exec, stream, 1);
  TRY(cuGraphExecDestroy(exec));
}
