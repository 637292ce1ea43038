// Doing the work: copies, sets, host functions and host kernels are really executed, at once and in order of
// submission, as on a device without latency.
#pragma once

#include "sim/objects.h"

#include <functional>
#include <string_view>

namespace capturesan::sim {

// Work of a stream that does not capture.
CUresult execute_now(const operation& work, CUstream stream);

// Work of a graph launch. A fault is left in the context, where the next wait meets it.
void replay(const operation& work, CUcontext context);

// A wait or query of the context's work: CUDA_SUCCESS, or the fault that its work met, which from then on every call
// answers.
CUresult settle(CUcontext context);

void note_recorded(CUevent event);

// A host function that stands in for a kernel (capturesan.h).
using host_kernel = void (*)(const void* launch, void* user);
void register_host_kernel(std::string name, host_kernel function, void* user);
bool has_host_kernel(std::string_view name);
std::uint64_t host_kernel_generation();

// Whether the values of a launch hold a pointer whose access would fault: a parameter that points to device memory with
// nothing live in its slab; in strict mode any eight bytes that point to device memory not allocated.
bool meets_dead_memory(const kernel_call& call);
// The same for a range; host memory never does.
bool is_dead(CUdeviceptr address, std::size_t bytes);
// Changes whenever an answer of the two may have changed.
std::uint64_t memory_generation();

// A copy as work; remembers which of its ends are pinned host memory.
copy_call make_copy(const CUDA_MEMCPY3D& shape, CUcontext context);

// Copies and sets, on memory that was checked.
void run_copy(const CUDA_MEMCPY3D& shape);
void run_fill(const CUDA_MEMSET_NODE_PARAMS& shape);
struct copy_range {
  CUdeviceptr start = 0;
  std::size_t bytes = 0; // from the first to the last byte touched
};
copy_range source_of(const CUDA_MEMCPY3D& shape);
copy_range target_of(const CUDA_MEMCPY3D& shape);
copy_range target_of(const CUDA_MEMSET_NODE_PARAMS& shape);

} // namespace capturesan::sim
