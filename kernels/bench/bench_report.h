// One measurement and its two printed forms.
#pragma once

#include "ceilings.h"
#include "verify_mla.h"

#include <cstdint>
#include <string>
#include <vector>

namespace verify_mla {

struct measurement {
  std::string variant, mode, slots, context; // context: prefix tokens per request, or "ragged"
  int batch, rows, draft, heads, pools;
  double us; // a whole step (both kernels), median
  double workspace_bytes;
  double gigabytes_per_second = 0; // 1160 bytes per KV token, read once
  double teraflops = 0;            // 2176 per row and KV token
  double floor_us = 0;             // the larger of bytes over the copy rate and operations over the mma.sync rate
  double memory_share = 0;         // bytes over copy rate, over time
  double mma_share = 0;
  double steps_per_second = 0; // 61 layers of this attention and nothing else

  // tokens: KV tokens of the whole batch, drafts included
  void complete(int64_t tokens, const std::vector<ceiling>& ceilings);
};

void print_header();
void print_row(const measurement& m);
bool write_json(const std::string& path, const verify_mla_device& device, const std::vector<ceiling>& ceilings,
                const std::vector<measurement>& results);

} // namespace verify_mla
