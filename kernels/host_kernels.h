// The two kernels on the CPU: same parameters, same grid, same partition and workspace layout, same roundings (bf16
// probabilities, fp32 sums), so that a simulated driver can run the captured launches and give right numbers.
// Every pointer in kernel_args is read as host memory. block_x is the block size of the launch; blocks do all its work.
#pragma once

#include "kernel_args.h"

namespace verify_mla {

// Kernel A: granules and tile_tokens as in the configuration it was instantiated with.
void verify_mla_host_partial(unsigned grid_x, unsigned block_x, const kernel_args& args, int granules, int tile_tokens);

// Kernel B: value_tiles is its template parameter, the other three its second to fourth argument.
void verify_mla_host_reduce(unsigned grid_x, unsigned block_x, const kernel_args& args, int tile_tokens, int granules,
                            int value_tiles);

} // namespace verify_mla
