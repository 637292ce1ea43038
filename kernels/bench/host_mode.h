// Programs of this folder without a GPU.
#pragma once

#include "host_registration.h"
#include "problem.h"

namespace verify_mla {

// True if there is no GPU but the simulated driver, and from now on all kernels but those of the ceilings run on the
// host.
inline bool run_on_host() {
  if (use_host_kernels() == 0) return false;
  use_host_problem_kernels();
  use_host_oracle();
  return true;
}

} // namespace verify_mla
