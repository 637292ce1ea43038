// Under par_nosync the algorithm only puts work on the stream. A reduction by CUB needs no wait either: it is told
// beforehand which memory to work in, and leaves the result on the device.
//
// EXPECT: none
// REPLAYS: 3
// EVENTS: 10
#include "examples/runtime.h"

#include <cub/device/device_reduce.cuh>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/transform.h>

struct twice {
  __host__ __device__ unsigned operator()(unsigned value) const { return 2 * value; }
};

int main() {
  unsigned* data = example::warmed_up();
  unsigned* sum = example::allocate(sizeof *sum);
  cudaStream_t stream = example::make_stream();
  const auto first = thrust::device_pointer_cast(data);
  const auto policy = thrust::cuda::par_nosync.on(stream);
  std::size_t bytes = 0;
  CHECK(cub::DeviceReduce::Sum(nullptr, bytes, data, sum, example::count, stream));
  unsigned* temporary = example::allocate(bytes);
  thrust::transform(policy, first, first + example::count, first, twice{});
  CHECK(cub::DeviceReduce::Sum(temporary, bytes, data, sum, example::count, stream));
  CHECK(cudaStreamSynchronize(stream));

  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  thrust::transform(policy, first, first + example::count, first, twice{});
  CHECK(cub::DeviceReduce::Sum(temporary, bytes, data, sum, example::count, stream));
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = example::instantiate(graph);
  example::replay(exec, stream, 3);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
}
