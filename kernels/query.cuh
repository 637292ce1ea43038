// Query rows of a group as mma fragments: loaded once per request, then they stay in registers.
#pragma once

#include "config.h"
#include "kernel_args.h"
#include "ptx.cuh"

namespace verify_mla {

// A row granule of one slice: [step][register], the B operand (row = n, dimension = k).
template <class C>
using query_fragments = uint32_t[C::NH][K_STEPS][2];

// q: bf16 [rows, 576], first row of the half. Each warp turns them, slice by slice, through a private piece of the
// scratch area; rows past `rows` are zero.
template <class C>
__device__ __forceinline__ void load_query(query_fragments<C>& fragments, const bf16_bits* q, int rows,
                                           int slice, char* stage, int lane) {
  constexpr int CHUNKS = 8 * K_STEPS * 2; // 16-byte pieces of eight rows
  constexpr int LOADS = (CHUNKS + 31) / 32;
  const uint32_t stage_address = ptx::smem_address(stage);
  uint4 loaded[C::NH][LOADS]; // all in flight at once; the fragments they become are not live yet
#pragma unroll
  for (int n = 0; n < C::NH; ++n)
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
      const int chunk = i * 32 + lane;
      const int row = n * 8 + chunk / (K_STEPS * 2);
      loaded[n][i] = make_uint4(0, 0, 0, 0);
      if (chunk < CHUNKS && row < rows)
        loaded[n][i] = *reinterpret_cast<const uint4*>(q + int64_t{row} * HEAD_DIM + slice * K_STEPS * 16 +
                                                       chunk % (K_STEPS * 2) * 8);
    }
#pragma unroll
  for (int n = 0; n < C::NH; ++n) {
    __syncwarp();
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
      const int chunk = i * 32 + lane;
      if (chunk < CHUNKS)
        *reinterpret_cast<uint4*>(stage + chunk / (K_STEPS * 2) * Q_STAGE_PITCH + chunk % (K_STEPS * 2) * 16) =
            loaded[n][i];
    }
    __syncwarp();
    const uint32_t address = stage_address + lane % 8 * Q_STAGE_PITCH + lane / 8 * 16;
#pragma unroll
    for (int step = 0; step + 1 < K_STEPS; step += 2) {
      uint32_t r[4];
      ptx::ldmatrix_x4(r, address + step * 32);
      fragments[n][step][0] = r[0];
      fragments[n][step][1] = r[1];
      fragments[n][step + 1][0] = r[2];
      fragments[n][step + 1][1] = r[3];
    }
    const uint32_t last = stage_address + lane % 8 * Q_STAGE_PITCH + (K_STEPS - 1) * 32 + lane / 8 % 2 * 16;
    ptx::ldmatrix_x2(fragments[n][K_STEPS - 1][0], fragments[n][K_STEPS - 1][1], last);
  }
}

// Which draft tokens each row of the half sees, one word per row, by the four warps of the half.
// mask: uint8 [draft, prefix + draft] of this request, or null. first_row: of the half, within the request.
template <class C>
__device__ __forceinline__ void load_row_masks(uint64_t* words, const uint8_t* mask, int prefix, int draft,
                                               int first_row, int half, int warp, const kernel_args& args, int lane) {
  words += half * C::HALF_ROWS;
  for (int t = first_row / args.heads + warp; t * args.heads < first_row + C::HALF_ROWS; t += WARPS / 2) {
    uint64_t word = ~uint64_t{0};
    if (t >= draft) {
      word = 0; // rows that do not exist
    } else if (mask != nullptr) {
      const uint8_t* from = mask + int64_t{t} * (prefix + draft) + prefix;
      const bool low = lane < draft && (from[lane] & 1);
      const bool high = lane + 32 < draft && (from[lane + 32] & 1);
      word = uint64_t{__ballot_sync(0xffffffffu, low)} | uint64_t{__ballot_sync(0xffffffffu, high)} << 32;
    } else if (args.causal) {
      word >>= MAX_DRAFT - 1 - t;
    }
    const int last = min((t + 1) * args.heads - first_row, C::HALF_ROWS);
    for (int row = max(t * args.heads - first_row, 0) + lane; row < last; row += 32) words[row] = word;
  }
}

} // namespace verify_mla
