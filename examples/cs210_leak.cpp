// Auto-free frees what the launch before allocated, but nothing frees what the last one did: each executable graph that
// is destroyed leaves an allocation behind.
//
// EXPECT: CS210 cuGraphExecDestroy
// CAPTURES: 3
// REPLAYS: 6
// EVENTS: 26
#include "examples/example.h"

int main() {
  example::device device;
  CUstream stream = example::make_stream();
  for (int step = 0; step < 3; ++step) {
    CUdeviceptr scratch = 0;
    CUgraph graph = nullptr;
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(cuMemAllocAsync(&scratch, example::bytes, stream));
    CHECK(example::launch(device.fill, stream, scratch, example::count, 1u));
    CHECK(cuStreamEndCapture(stream, &graph));
    CUgraphExec exec = nullptr;
    CHECK(cuGraphInstantiate(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    for (int i = 0; i < 2; ++i) CHECK(cuGraphLaunch(exec, stream));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuGraphExecDestroy(exec)); // the mistake: its memory stays allocated
    CHECK(cuGraphDestroy(graph));
  }
}
