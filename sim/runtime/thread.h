// What each thread has of its own: its device, its last error, launches being described.
#pragma once

#include "sim/runtime/cuda_runtime.h"

namespace capturesan::runtime {

struct launch_shape {
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

// Trivially destructible, so that thread-local objects of the program may still call the runtime when the thread ends.
struct thread_state {
  cudaError_t last_error = cudaSuccess;
  int device = 0;                // cudaSetDevice
  bool per_thread = false;       // of the current call
  unsigned long long resets = 0; // cudaDeviceReset calls that this thread has taken notice of
  CUcontext primary = nullptr;   // bound by this thread
  unsigned depth = 0;
  launch_shape shapes[8]; // of <<<>>>, pushed by the caller and popped by the stub; nested only by odd programs
};
thread_state& this_thread();

// Whether an error stays with the process, as the documentation says of those that corrupt a context.
bool is_sticky(cudaError_t error);

// Remembers an error for cudaGetLastError.
cudaError_t noted(cudaError_t error);

// What a runtime function answers for a driver call: the numbers are equal but for a few.
inline cudaError_t from_driver(CUresult result) { return static_cast<cudaError_t>(result); }

// What runtime.def calls `need`.
enum class need { none, driver, context };
cudaError_t prepare(need what);

// The primary context of the device, current on this thread.
cudaError_t bind(int device);
// The same without making it current.
cudaError_t primary_context(int device, CUcontext* context);
// It is void: after cudaDeviceReset.
void forget_primary(int device);

} // namespace capturesan::runtime
