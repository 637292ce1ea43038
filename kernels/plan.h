// Launch arithmetic and checks: plain host C++, no CUDA, tested without a GPU.
#pragma once

#include "kernel_args.h"
#include "verify_mla.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace verify_mla {

// Status and, if it is not VERIFY_MLA_OK, one sentence.
struct result {
  int status = VERIFY_MLA_OK;
  std::string message;
  explicit operator bool() const { return status == VERIFY_MLA_OK; }
};

// Everything about a launch that does not depend on device data.
struct launch_plan {
  bool wide = false; // 32-token tiles (227 KB blocks) instead of 16-token tiles (99 KB)
  bool partial_bf16 = false;
  bool pdl = true;
  int granules = 0;     // 8-row granules of a group
  int row_granules = 0; // granules of a request that may have rows, over all groups
  int tile_tokens = 0;
  int groups = 0;     // row groups of a request
  int partitions = 0; // balanced
  int splits = 0;     // fixed; 0: balanced
  int min_tiles = 0;
  int few_partitions = 0; // balanced: so many may have less than min_tiles
  int slots = 0;          // partial results the workspace holds
  int partial_blocks = 0; // grid of kernel A
  int reduce_tiles = 0;   // value tiles per block of kernel B: 1, 2, 4 or 8
  int reduce_chunks = 0;  // pieces of so many tiles that such a block does one after the other
  int reduce_blocks = 0;  // grid of kernel B
  int border = 0;         // balanced: places between two requests on the line of tiles
  size_t reduce_smem = 0; // bytes
  int64_t ml_offset = 0;  // bytes into the workspace
  int64_t workspace_bytes = 0;
};

// Sizes and options only; buffers are not looked at. splits_override > 0: that many runs per request (eager).
result make_plan(const verify_mla_device& device, const verify_mla_params& params, launch_plan& plan,
                 int splits_override = 0);

// Buffers: presence, dtype, capacity, alignment, workspace.
result check_buffers(const verify_mla_params& params, const launch_plan& plan);

// What the kernels get. `workspace` may differ from params.workspace (eager).
kernel_args make_args(const verify_mla_params& params, const launch_plan& plan, void* workspace);

} // namespace verify_mla
