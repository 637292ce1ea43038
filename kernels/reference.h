// The reference in double precision on the CPU, straight from the formula in verify_mla.h. Every pointer in `params` is
// read as host memory here.
#pragma once

#include "verify_mla.h"

#include <vector>

namespace verify_mla {

// out: fp64 [tokens, heads, 512]; lse: fp64 [tokens, heads], natural logarithm, -inf for a row that sees nothing.
// Follows kv_indptr and qo_indptr as they are; expects what verify_mla_check accepts.
void reference(const verify_mla_params& params, std::vector<double>& out, std::vector<double>& lse);

} // namespace verify_mla
