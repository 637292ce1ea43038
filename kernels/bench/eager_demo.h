// `verify_bench --variant eager --mode graph`: tries to capture the naive path, whole and step by step.
#pragma once

#include "verify_mla.h"

namespace verify_mla {

// Prints what each capture said. Returns 0: failing is the point, and the program goes on to the end.
int run_eager_demo(const verify_mla_device& device);

} // namespace verify_mla
