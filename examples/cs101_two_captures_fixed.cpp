// The twin of cs101_two_captures: the context is waited for before the captures begin.
//
// EXPECT: none
// CAPTURES: 2
// REPLAYS: 2
// EVENTS: 14
#include "examples/example.h"

int main() {
  example::device device;
  CUstream first = example::make_stream();
  CUstream second = example::make_stream();
  CUdeviceptr data = example::allocate();

  CHECK(cuCtxSynchronize());
  CHECK(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK(cuStreamBeginCapture(second, CU_STREAM_CAPTURE_MODE_RELAXED));
  TRY(example::launch(device.fill, first, data, example::count, 1u));
  TRY(example::launch(device.fill, second, data, example::count, 2u));
  CUgraph graphs[2] = {};
  CHECK(cuStreamEndCapture(first, &graphs[0]));
  CHECK(cuStreamEndCapture(second, &graphs[1]));
  example::replay(example::instantiate(graphs[0]), first, 1);
  example::replay(example::instantiate(graphs[1]), second, 1);
}
