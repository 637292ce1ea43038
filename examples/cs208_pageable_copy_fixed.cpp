// The twin of cs208_pageable_copy: the table is in page-locked memory that outlives the graph.
//
// EXPECT: none
// SHOW: suspected
// CAPTURES: 1
// REPLAYS: 2
// EVENTS: 11
#include "examples/example.h"

CUgraph capture(example::device& device, CUstream stream, CUdeviceptr data, const unsigned* values) {
  CUgraph graph = nullptr;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuMemcpyHtoDAsync(data, values, example::bytes, stream));
  CHECK(example::launch(device.add, stream, data, example::count, 1u));
  CHECK(cuStreamEndCapture(stream, &graph));
  return graph;
}

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();
  unsigned* values = nullptr;
  CHECK(cuMemHostAlloc(reinterpret_cast<void**>(&values), example::bytes, 0));
  for (unsigned i = 0; i < example::count; ++i) values[i] = i;
  CUgraph graph = capture(device, stream, data, values);
  CUgraphExec exec = example::instantiate(graph);
  example::replay(exec, stream, 2);
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
  CHECK(cuMemFreeHost(values));
}
