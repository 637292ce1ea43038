// thrust::cuda::par promises that an algorithm is done when it returns: after the kernels it waits for the stream. The
// same call becomes nodes of a graph under par_nosync, which does not wait.
//
// EXPECT: CS101 cuStreamSynchronize
// EXPECT-NOT: CS105
// REPLAYS: 0
// EVENTS: 8
#include "examples/runtime.h"

#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/transform.h>

struct twice {
  __host__ __device__ unsigned operator()(unsigned value) const { return 2 * value; }
};

int main() {
  unsigned* data = example::warmed_up();
  cudaStream_t stream = example::make_stream();
  const auto first = thrust::device_pointer_cast(data);
  const auto policy = thrust::cuda::par.on(stream);
  thrust::transform(policy, first, first + example::count, first, twice{});

  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  try {
    thrust::transform(policy, first, first + example::count, first, twice{}); // the mistake
  } catch (const std::exception& error) {
    std::printf("thrust::transform: %s\n", error.what());
  }
  cudaGetLastError();
  cudaGraph_t graph = nullptr;
  TRY(cudaStreamEndCapture(stream, &graph));

  std::printf("captured: %s\n", graph ? "yes" : "no");
}
