// A kernel in clusters, launched so that it may overlap the one before it (programmatic dependent launch), is captured.
// In between the program asks whether the stream is idle.
//
// EXPECT: CS101 cuStreamQuery
// EXPECT-NOT: CS102
// REPLAYS: 0
// EVENTS: 8
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
  TRY(cudaStreamQuery(stream)); // the mistake
  TRY(launch_overlapping(data, stream));
  cudaGraph_t graph = nullptr;
  TRY(cudaStreamEndCapture(stream, &graph));

  std::printf("captured: %s\n", graph ? "yes" : "no");
}
