// cudaLaunchHostFunc becomes a node of the graph.
//
// EXPECT: none
// REPLAYS: 3
// EVENTS: 10
#include "examples/runtime.h"

void count_up(void* calls) { ++*static_cast<int*>(calls); }

int main() {
  unsigned* data = example::warmed_up();
  cudaStream_t stream = example::make_stream();
  int calls = 0;

  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  example::fill<<<1, example::count, 0, stream>>>(data, example::count, 1u);
  LAUNCHED();
  CHECK(cudaLaunchHostFunc(stream, count_up, &calls));
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = example::instantiate(graph);
  example::replay(exec, stream, 3);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));

  std::printf("called %d times\n", calls);
}
