// What the two kernels receive, by value, as their only parameter. Plain data: the host implementation of the kernels
// (host_kernels.h) reads the same struct.
#pragma once

#include "partition.h"

#include <cstdint>

namespace verify_mla {

using bf16_bits = uint16_t; // a bfloat16 by its bits: no CUDA header needed on the host

struct kernel_args {
  const bf16_bits* q;           // bf16 [sum T, heads, 576]
  const bf16_bits* kv;          // bf16 [slots, 576]
  const int32_t* kv_indptr;     // int32 [batch + 1]
  const int64_t* kv_indices;    // int64 [kv_indptr[batch]]
  const int64_t* qo_indptr;     // int64 [batch + 1]
  const int64_t* out_cache_loc; // int64 [sum T]
  const uint8_t* mask;          // uint8, request b: [T, prefix + T] from mask_indptr[b]; null: see causal
  const int64_t* mask_indptr;   // int64 [batch + 1]
  bf16_bits* out;               // bf16 [sum T, heads, 512]
  float* lse;                   // fp32 [sum T, heads], natural log; may be null
  void* partial;                // fp32 or bf16 [slots, groups, 32 value tiles, NT, 32 lanes, 4], see layout.h
  float* partial_ml;            // fp32 [slots, groups, ROWS, 2]: base-2 reference maximum, sum
  float scale;                  // multiplies q.k
  float cap;                    // soft cap, 0: none
  int32_t batch;                // requests
  int32_t heads;                // query heads on this rank
  int32_t groups;               // row groups of a request
  int32_t row_granules;         // granules of a request that may have rows, over all groups
  granule_deal dealt;           // to the halves of the groups
  int32_t partitions;           // balanced: partitions of the line of tiles
  int32_t min_tiles;            // balanced: tiles a partition should have at least
  int32_t few_partitions;       // balanced: so many may have less
  int32_t border;               // balanced: places on the line of tiles between two requests
  int32_t reduce_chunks;        // kernel B: pieces of columns that a block does one after the other
  int32_t splits;               // 0: balanced, else runs per request
  int32_t causal;               // without a mask: 1 = draft token t sees drafts 0..t, 0 = all drafts
  int32_t partial_bf16;         // 1: partials are bf16, 0: fp32
  int32_t old_prefix;           // 1: lengths, slots and prefix rows may be read before the previous kernel has ended
};

} // namespace verify_mla
