// A graph that is built node by node, not captured: the buffer of its kernel is freed, and the graph is launched again.
//
// EXPECT: CS201 cuGraphLaunch
// CAPTURES: 0
// REPLAYS: 4
// EVENTS: 10
#include "examples/runtime.h"

int main() {
  unsigned* data = example::warmed_up();
  unsigned* result = example::allocate();
  cudaStream_t stream = example::make_stream();
  cudaGraph_t graph = nullptr;
  CHECK(cudaGraphCreate(&graph, 0));

  cudaGraphNode_t set = nullptr, kernel = nullptr, copy = nullptr;
  cudaMemsetParams zeros = {};
  zeros.dst = data;
  zeros.elementSize = sizeof(unsigned);
  zeros.width = example::count;
  zeros.height = 1;
  CHECK(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &zeros));
  unsigned n = example::count, value = 5;
  void* values[] = {&data, &n, &value};
  cudaKernelNodeParams launch = {};
  launch.func = reinterpret_cast<void*>(example::add);
  launch.gridDim = dim3(1);
  launch.blockDim = dim3(example::count);
  launch.kernelParams = values;
  CHECK(cudaGraphAddKernelNode(&kernel, graph, &set, 1, &launch));
  CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, &kernel, 1, result, data, example::bytes, cudaMemcpyDeviceToDevice));
  cudaGraphExec_t exec = example::instantiate(graph);
  example::replay(exec, stream, 3);

  CHECK(cudaFree(data)); // the mistake
  example::replay(exec, stream, 1);
}
