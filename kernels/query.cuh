// Query rows of a group as mma fragments: loaded once per request, then they stay in registers.
#pragma once

#include "config.h"
#include "kernel_args.h"
#include "ptx.cuh"

namespace verify_mla {

// A row granule of one slice: [step][register], the B operand (row = n, dimension = k).
template <class C>
using query_fragments = uint32_t[C::NH][K_STEPS][2];

// Eight rows of a slice as they lie in shared memory, to fragments.
template <class C>
__device__ __forceinline__ void read_granule(uint32_t (&granule)[K_STEPS][2], uint32_t stage, int lane) {
  const uint32_t address = stage + lane % 8 * Q_STAGE_PITCH + lane / 8 * 16;
#pragma unroll
  for (int step = 0; step + 1 < K_STEPS; step += 2) {
    uint32_t r[4];
    ptx::ldmatrix_x4(r, address + step * 32);
    granule[step][0] = r[0];
    granule[step][1] = r[1];
    granule[step + 1][0] = r[2];
    granule[step + 1][1] = r[3];
  }
  const uint32_t last = stage + lane % 8 * Q_STAGE_PITCH + (K_STEPS - 1) * 32 + lane / 8 % 2 * 16;
  ptx::ldmatrix_x2(granule[K_STEPS - 1][0], granule[K_STEPS - 1][1], last);
}

// Query rows on their way from global memory: all in flight at once; the fragments they become are not live yet.
template <class C>
struct query_loads {
  static constexpr int CHUNKS = 8 * K_STEPS * 2; // 16-byte pieces of eight rows
  static constexpr int LOADS = (CHUNKS + 31) / 32;
  uint4 loaded[C::NH][LOADS];

  // q: bf16 [rows, 576], first row of the half; rows past `rows` are zero.
  __device__ __forceinline__ void begin(const bf16_bits* q, int rows, int slice, int lane) {
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
      const int chunk = i * 32 + lane;
      const int row = chunk / (K_STEPS * 2);
      const bf16_bits* from = q + row * HEAD_DIM + slice * K_STEPS * 16 + chunk % (K_STEPS * 2) * 8;
#pragma unroll
      for (int n = 0; n < C::NH; ++n) {
        loaded[n][i] = make_uint4(0, 0, 0, 0);
        if (chunk < CHUNKS && n * 8 + row < rows)
          loaded[n][i] = *reinterpret_cast<const uint4*>(from + n * 8 * HEAD_DIM);
      }
    }
  }

  // Each warp turns its slice, eight rows at a time, through a private piece of the scratch area.
  __device__ __forceinline__ void finish(query_fragments<C>& fragments, uint32_t stage, int lane) const {
#pragma unroll
    for (int n = 0; n < C::NH; ++n) {
      __syncwarp();
#pragma unroll
      for (int i = 0; i < LOADS; ++i) {
        const int chunk = i * 32 + lane;
        const uint4& v = loaded[n][i];
        if (chunk < CHUNKS)
          ptx::store_shared_4(
              stage + chunk / (K_STEPS * 2) * Q_STAGE_PITCH + chunk % (K_STEPS * 2) * 16,
              make_int4(static_cast<int>(v.x), static_cast<int>(v.y), static_cast<int>(v.z), static_cast<int>(v.w)));
      }
      __syncwarp();
      read_granule<C>(fragments[n], stage, lane);
    }
  }
};

// Which draft tokens each row of the half sees, one word per row, by the warps of the half.
// mask: uint8 [draft, prefix + draft] of this request, or null. first_row: of the half, within the request.
template <class C>
__device__ __forceinline__ void load_row_masks(uint64_t* words, const uint8_t* mask, int prefix, int draft,
                                               int first_row, int half, int warp, const kernel_args& args, int lane) {
  words += half * C::HALF_ROWS;
  for (int t = first_row / args.heads + warp; t * args.heads < first_row + C::HALF_ROWS; t += C::HALF_WARPS) {
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
