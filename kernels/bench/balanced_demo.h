// `verify_bench --demo`: a step captured once and replayed while lengths, slots and masks change.
#pragma once

#include "bench_options.h"

namespace verify_mla {

// Prints how far each replay is from the oracle. Returns 0, or 1 if one is too far.
int run_balanced_demo(const verify_mla_device& device, const variant_option& variant);

} // namespace verify_mla
