// The twin of cs103_escaped_launch: the stream is asked for at each launch.
//
// EXPECT: none
// CAPTURES: 1
// REPLAYS: 3
// EVENTS: 10
#include "examples/example.h"

int main() {
  example::device device;
  CUstream warm_up = example::make_stream();
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();

  CUstream current = warm_up;
  CHECK(example::launch(device.fill, current, data, example::count, 1u));
  CHECK(cuStreamSynchronize(warm_up));

  current = stream;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(example::launch(device.add, current, data, example::count, 2u));
  CHECK(example::launch(device.add, current, data, example::count, 3u));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));

  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 3);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
