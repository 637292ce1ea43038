// The twin of cs104_cross_thread: the capture is thread-local, so other threads may allocate meanwhile.
//
// EXPECT: none
// CAPTURES: 1
// REPLAYS: 3
// EVENTS: 11
#include <thread>

#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CHECK(example::launch(device.fill, stream, data, example::count, 1u));
  std::thread loader([&] {
    CHECK(cuCtxSetCurrent(device.context));
    CUdeviceptr batch = 0;
    CHECK(cuMemAlloc(&batch, example::bytes));
  });
  loader.join();
  CHECK(example::launch(device.add, stream, data, example::count, 2u));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));

  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 3);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
