// The twin of cs110_captured_event: the event that is asked about is recorded after a replay, outside any capture.
//
// EXPECT: none
// CAPTURES: 1
// REPLAYS: 4
// EVENTS: 12
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUevent done = example::make_event();
  CUdeviceptr data = example::allocate();

  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(example::launch(device.fill, stream, data, example::count, 1u));
  CHECK(example::launch(device.add, stream, data, example::count, 2u));
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(stream, &graph));

  CUgraphExec exec = example::instantiate(graph);
  CHECK(cuGraphLaunch(exec, stream));
  CHECK(cuEventRecord(done, stream));
  const CUresult state = cuEventQuery(done); // done, or not yet
  if (state != CUDA_SUCCESS && state != CUDA_ERROR_NOT_READY) TRY(state);
  example::replay(exec, stream, 3);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}
