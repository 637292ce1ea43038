// The naive host path, kept as the example of what makes a step uncapturable. It does, per call, what such code does:
// reads lengths back to choose a split, allocates its workspace, and converts index dtypes through fresh buffers.
// Its steps are separate functions so that the benchmark can put each alone into a capture: within one capture the
// first refused call invalidates it and hides the rest.
#pragma once

#include "launcher.h"

#include <vector>

namespace verify_mla {

// One call of the naive path. Owns the device buffers between allocate and release.
struct eager_call {
  const verify_mla_device& device;
  const verify_mla_params given;  // as the caller gave them; qo_indptr and kv_indices may be int32
  verify_mla_params params;       // the same, once converted
  std::vector<int32_t> kv_indptr; // read back, [batch + 1]
  std::vector<int64_t> qo_indptr; // pageable source of a conversion copy, [batch + 1]
  launch_plan plan;
  void* workspace = nullptr;
  void* qo_copy = nullptr; // int64 [batch + 1]
  void* kv_copy = nullptr; // int64 [kv_indices.elements]

  eager_call(const verify_mla_device& d, const verify_mla_params& p) : device(d), given(p), params(p) {}

  result read_back(); // device to host copy, then the host waits
  result choose();    // host arithmetic only
  result allocate();  // workspace and conversion buffers, cudaMalloc
  result convert();   // int32 -> int64
  result launch();    // the two kernels, with a grid that depends on the lengths read back
  result release();   // cudaFree
};

// The kernel that converts indices, for host_registration.h.
const void* widen_kernel();

} // namespace verify_mla
