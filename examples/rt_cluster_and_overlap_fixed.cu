// Nobody asks during the capture.
//
// EXPECT: none
// REPLAYS: 3
// EVENTS: 10
#include "examples/runtime.h"

__global__ void after_previous(unsigned* data, unsigned n) {
  cudaGridDependencySynchronize(); // what the kernel before has written is there
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] += 1;
}

// A launch in clusters of two blocks that may begin while the one before it still runs.
cudaError_t launch_overlapping(unsigned* data, cudaStream_t stream) {
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {2, 1, 1};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(4);
  config.blockDim = dim3(64);
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = 2;
  return cudaLaunchKernelEx(&config, after_previous, data, example::count);
}

int main() {
  unsigned* data = example::warmed_up();
  cudaStream_t stream = example::make_stream();
  CHECK(launch_overlapping(data, stream));
  CHECK(cudaStreamSynchronize(stream));

  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  example::fill<<<1, example::count, 0, stream>>>(data, example::count, 1u);
  LAUNCHED();
  CHECK(launch_overlapping(data, stream));
  CHECK(launch_overlapping(data, stream));
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = example::instantiate(graph);
  example::replay(exec, stream, 3);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
}
