// Math warps for many rows. As the plain ones (partial.cuh) they are mostly two halves of four that share nothing but
// the tiles, but a half works on two tiles at once:
//
//   scores of tile k  ->  half of the values of tile k - 1 times their probabilities  ->  softmax of tile k, and
//   between its instructions the other half  ->  scores of tile k + 1
//
// Two mbarriers per half say that the scores of tile k are there, and the probabilities of tile k - 1. A warp arrives
// at them as soon as its own are and waits only where it needs the others': one that is early goes on meanwhile. A warp
// is never more than a tile ahead, so what passes the barriers exists twice.
//
// With an odd number of granules (config.h) there are no halves but one team of eight warps.
//
// Each warp sums, for one granule of its half, what the four warps found for their quarter of the dimensions. The
// scores pass through shared memory as the fragments they are, so that every access is 16 bytes wide and free of
// conflicts. A warp's own go there too: there are no registers to keep them in.
#pragma once

#include "products.cuh"
#include "query.cuh"
#include "request_table.cuh"
#include "tile_loader.cuh"

namespace verify_mla {

// Sums of the softmax over this lane's tokens, of the two rows that it has part of.
using row_pair_sums = float[2];

// Scores of a granule, one 16-token tile of mma after the other: element e of lane l is token l / 4 + e / 2 * 8, row
// l % 4 * 2 + e % 2.
template <class C>
using granule_scores = float[C::QK_M][4];

template <class C, bool BF16>
struct deep_math_warp {
  static constexpr int FRAGMENT = 512; // bytes: four floats of 32 lanes
  static constexpr int HALF_SCORES = int(C::SCRATCH_BYTES);

  const kernel_args& args;
  const request_table& table;
  block_memory<C> memory;
  const tile_loader<C>& loader;
  int unit;                // partition, or with fixed splits request * splits + split
  int group, member, half; // this warp within its half
  int stage = 0;           // of the tile at hand
  int parity = 0;
  int turn = 1; // parity of the tile at hand, counted over all runs

  // Of the dimensions for the scores.
  __device__ __forceinline__ int slice() const { return C::HALVES == 1 ? member % K_SLICES : member; }
  // Granule `member` of its half is this warp's, if the half has so many.
  __device__ __forceinline__ bool owner() const { return member < C::NH; }
  __device__ __forceinline__ int granule() const { return owner() ? member : 0; }
  __device__ __forceinline__ void sync_half() const { ptx::sync_threads(HALF_BARRIER + half, C::HALF_THREADS); }
  __device__ __forceinline__ uint32_t exchange() const {
    return loader.smem + int(C::SCRATCH_OFFSET) + half * HALF_SCORES;
  }
  // Scores of granule g from slice `from`, tile piece m, where there is one team.
  __device__ __forceinline__ uint32_t box(int g, int from, int m, int buffer) const {
    return exchange() + buffer * int(C::EXCHANGE_BYTES) + ((g * K_SLICES + from) * C::QK_M + m) * FRAGMENT;
  }
  // Where this warp leaves its scores of granule g: for the warp that owns it, or for itself.
  __device__ __forceinline__ uint32_t outbox(int g, int buffer) const {
    if constexpr (C::HALVES == 1) return box(g, slice(), member / K_SLICES, buffer);
    const int from = (member - g - 1 + K_SLICES) % K_SLICES;
    return from == K_SLICES - 1
               ? own_box()
               : exchange() + buffer * int(C::EXCHANGE_BYTES) + (g * (K_SLICES - 1) + from) * C::QK_M * FRAGMENT;
  }
  __device__ __forceinline__ uint32_t inbox(int buffer) const {
    if constexpr (C::HALVES == 1) return box(granule(), 1, 0, buffer);
    return exchange() + buffer * int(C::EXCHANGE_BYTES) + granule() * (K_SLICES - 1) * C::QK_M * FRAGMENT;
  }
  // What the sum begins with.
  __device__ __forceinline__ uint32_t own_box(int buffer = 0) const {
    if constexpr (C::HALVES == 1) return box(granule(), 0, 0, buffer);
    return loader.smem + int(C::OWN_OFFSET) + (half * K_SLICES + member) * C::QK_M * FRAGMENT;
  }
  __device__ __forceinline__ uint32_t probabilities(int buffer) const {
    return loader.smem + int(C::P_OFFSET) + buffer * int(C::P_BYTES) + half * C::HALF_ROWS * C::P_PITCH * 2;
  }
  __device__ __forceinline__ float* factors(int buffer) const {
    return memory.factors() + buffer * C::ROWS + half * C::HALF_ROWS;
  }

  // What all lanes of this warp have done so far is done, says one of them.
  __device__ __forceinline__ void arrive(uint32_t barrier) const {
    __syncwarp();
    if (EMPTY_ARRIVALS == 32 || ptx::elect_one()) ptx::barrier_arrive(barrier);
  }
  __device__ __forceinline__ void advance() {
    if (++stage == C::STAGES) {
      stage = 0;
      parity ^= 1;
    }
  }

  // This warp's part of the scores of a tile.
  __device__ __forceinline__ void score(const query_fragments<C>& query, int buffer, unsigned lane, bool all_granules) {
    constexpr int AHEAD = C::HALVES == 1 ? 4 : C::NH == 3 ? 3 : 2;
    constexpr int STEPS = C::WARP_QK_M * K_STEPS;
    const int piece = C::HALVES == 1 ? member / K_SLICES : 0; // of the tile: 16 tokens
    const uint32_t keys =
        loader.stage_address(stage) + slice() * K_STEPS * 32 + (piece * 16 + lane % 16) * ROW_PITCH + lane / 16 * 16;
    uint32_t a[AHEAD + 1][4];
    const auto load = [&](int i) {
      if (i < STEPS) ptx::ldmatrix_x4(a[i % (AHEAD + 1)], keys + i / K_STEPS * 16 * ROW_PITCH + i % K_STEPS * 32);
    };
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) load(i);
    float acc[C::NH][4] = {};
#pragma unroll
    for (int i = 0; i < STEPS; ++i) {
      const int m = i / K_STEPS;
      const int step = i % K_STEPS;
      load(i + AHEAD);
      ptx::schedule_fence(args.batch == 0);
#pragma unroll
      for (int n = 0; n < C::NH; ++n) {
        if (C::LAST_MAY_LACK && n + 1 == C::NH)
          ptx::mma_if(all_granules, acc[n], a[i % (AHEAD + 1)], query[n][step][0], query[n][step][1]);
        else
          ptx::mma(acc[n], a[i % (AHEAD + 1)], query[n][step][0], query[n][step][1]);
      }
      if (step + 1 < K_STEPS) continue;
#pragma unroll
      for (int n = 0; n < C::NH; ++n) {
        ptx::store_shared_4(outbox(n, buffer) + lane * 16 + m * FRAGMENT, acc[n]);
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[n][e] = 0;
      }
    }
  }

  // The scores of this warp's granule: the sum of what all four warps found, always in the same order.
  __device__ __forceinline__ void collect(granule_scores<C>& s, int buffer, unsigned lane) const {
#pragma unroll
    for (int m = 0; m < C::QK_M; ++m) ptx::load_shared_4(s[m], own_box(buffer) + lane * 16 + m * FRAGMENT);
#pragma unroll
    for (int j = 0; j < K_SLICES - 1; ++j)
#pragma unroll
      for (int m = 0; m < C::QK_M; ++m) {
        float v[4];
        ptx::load_shared_4(v, inbox(buffer) + lane * 16 + (j * C::QK_M + m) * FRAGMENT);
#pragma unroll
        for (int e = 0; e < 4; ++e) s[m][e] += v[e];
      }
  }

  // Soft cap and masks. Returns what the scores must still be multiplied with.
  __device__ __forceinline__ float restrict_scores(granule_scores<C>& s, int token, const tile_cursor& at,
                                                   unsigned lane) const {
    if (__builtin_expect(args.cap > 0, 0))
#pragma unroll
      for (int m = 0; m < C::QK_M; ++m)
#pragma unroll
        for (int e = 0; e < 4; ++e) s[m][e] = soft_cap(s[m][e] * args.scale, args.cap);
    if (__builtin_expect(token + C::TOK > at.prefix, 0)) {
      const tile_span span{token, at.prefix, at.total};
      const uint64_t* words = memory.row_mask() + half * C::HALF_ROWS + granule() * 8 + lane % 4 * 2;
#pragma unroll
      for (int m = 0; m < C::QK_M; ++m)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          if (!visible(token + m * 16 + e / 2 * 8 + lane / 4, span, words[e % 2])) s[m][e] = -INFINITY;
    }
    return args.cap > 0 ? LOG2_E : args.scale * LOG2_E;
  }

  // By granule of this half: the number of the last tile at which one of its rows had to be rescaled.
  __device__ __forceinline__ int* grew(int buffer) const {
    return memory.grew() + buffer * WARPS + half * C::HALF_WARPS;
  }
  // Reference maxima (base 2) of this lane's two rows. A warp that owns no granule has some of its own.
  __device__ __forceinline__ float2* references(unsigned lane) const {
    return reinterpret_cast<float2*>(memory.references() + (half * C::HALF_WARPS + member) * 8) + lane % 4;
  }

  // Moves the reference maxima of rows that are too far above them. Rare: nearly all tiles go past it.
  __device__ __forceinline__ void follow(float2& reference, float (&top)[2], float c, row_pair_sums& sums, int buffer,
                                         int k, unsigned lane) const {
    float f[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int offset = 4; offset < 32; offset *= 2)
        top[r] = fmaxf(top[r], __shfl_xor_sync(0xffffffffu, top[r], offset));
      float& old = r == 0 ? reference.x : reference.y;
      const float moved = top[r] * c > old + MAXIMUM_SLACK ? top[r] * c : old;
      f[r] = ptx::exp2_fast(old - moved);
      old = moved;
      sums[r] *= f[r];
    }
    if (!owner()) return;
    __syncwarp(); // all lanes have read the old ones
    if (lane < 4) {
      *references(lane) = reference;
      *reinterpret_cast<float2*>(factors(buffer) + member * 8 + lane * 2) = make_float2(f[0], f[1]);
    }
    if (k > 0 && lane == 0) grew(buffer)[member] = k; // nothing has been accumulated before tile 0
  }

  // The reference maxima for the scores of tile k, moved if need be.
  __device__ __forceinline__ float2 keep_up(const granule_scores<C>& s, float c, row_pair_sums& sums, int buffer, int k,
                                            unsigned lane) const {
    float2 reference = *references(lane);
    float top[2] = {s[0][0], s[0][1]};
#pragma unroll
    for (int m = 0; m < C::QK_M; ++m)
#pragma unroll
      for (int e = 0; e < 4; ++e) top[e % 2] = fmaxf(top[e % 2], s[m][e]);
    const bool above = fmaxf(fmaf(top[0], c, -reference.x), fmaf(top[1], c, -reference.y)) > MAXIMUM_SLACK;
    if (__builtin_expect(__any_sync(0xffffffffu, above), 0)) follow(reference, top, c, sums, buffer, k, lane);
    return reference;
  }

  // Scores to probabilities, in shared memory.
  __device__ __forceinline__ void publish(const granule_scores<C>& s, float c, const float2& reference,
                                          row_pair_sums& sums, int buffer, unsigned lane) const {
    uint32_t packed[4];
#pragma unroll
    for (int m = 0; m < C::QK_M; ++m)
#pragma unroll
      for (int e = 0; e < 4; e += 2) {
        const float p0 = ptx::exp2_fast(fmaf(s[m][e], c, -reference.x));
        const float p1 = ptx::exp2_fast(fmaf(s[m][e + 1], c, -reference.y));
        sums[0] += p0;
        sums[1] += p1;
        packed[m * 2 + e / 2] = ptx::pack_bf16(p0, p1);
      }
    if (owner())
      ptx::stmatrix_x4_trans(probabilities(buffer) + (member * 8 + lane % 8) * C::P_PITCH * 2 + lane / 8 * 16, packed);
  }

  // The rescaling that tile k asks for, before its probabilities are used.
  __device__ __forceinline__ void rescale_after(accumulators<C>& acc, int k, unsigned lane) const {
    const int4 flags = *reinterpret_cast<const int4*>(grew(k & 1));
    bool of[5] = {flags.x == k, flags.y == k, flags.z == k, flags.w == k, false};
    if constexpr (C::NH > 4) of[4] = grew(k & 1)[4] == k;
    if (__builtin_expect(!(of[0] || of[1] || of[2] || of[3] || of[4]), 1)) return;
#pragma unroll
    for (int n = 0; n < C::NH; ++n) {
      if (!of[n]) continue;
      const float2 f = *reinterpret_cast<const float2*>(factors(k & 1) + n * 8 + lane % 4 * 2);
#pragma unroll
      for (int m = 0; m < C::M_TILES; ++m) {
        acc[m][n][0] *= f.x;
        acc[m][n][1] *= f.y;
        acc[m][n][2] *= f.x;
        acc[m][n][3] *= f.y;
      }
    }
  }

  // Has this warp a granule to turn into probabilities?
  __device__ __forceinline__ bool softens(bool all_granules) const {
    if constexpr (C::NH == C::HALF_WARPS) return true;
    return member < C::NH - (C::LAST_MAY_LACK && !all_granules ? 1 : 0);
  }

  __device__ __forceinline__ void first_tile(const query_fragments<C>& query, int token, const tile_cursor& at,
                                             row_pair_sums& sums, bool all_granules) {
    const unsigned l = ptx::lane_now();
    turn ^= 1;
    ptx::barrier_wait(loader.full(stage), parity);
    score(query, 0, l, all_granules);
    arrive(loader.scored(half));
    ptx::barrier_wait(loader.scored(half), turn);
    if (softens(all_granules)) {
      granule_scores<C> s;
      collect(s, 0, l);
      const float c = restrict_scores(s, token, at, l);
      publish(s, c, keep_up(s, c, sums, 0, 0, l), sums, 0, l);
    }
    arrive(loader.ready(half));
  }

  // Tile k, k > 0, of a run, and the values of the tile before it.
  __device__ __forceinline__ void next_tile(const query_fragments<C>& query, accumulators<C>& acc, int token,
                                            const tile_cursor& at, row_pair_sums& sums, int k, bool all_granules) {
    const int before = stage;
    advance();
    turn ^= 1;
    const unsigned l = ptx::lane_now();
    ptx::barrier_wait(loader.full(stage), parity);
    score(query, k & 1, l, all_granules);
    value_product<C> product;
    product.begin(loader.stage_address(before), member, l);
    arrive(loader.scored(half));
    ptx::barrier_wait(loader.ready(half), turn ^ 1);
    const uint32_t p = probabilities((k & 1) ^ 1);
    product.template load_pairs<0>(p, l);
    rescale_after(acc, k - 1, l);
    product.template add<0>(acc, all_granules);
    ptx::barrier_wait(loader.scored(half), turn);
    if (softens(all_granules)) {
      granule_scores<C> s;
      collect(s, k & 1, l);
      const float c = restrict_scores(s, token, at, l);
      const float2 reference = keep_up(s, c, sums, k & 1, k, l);
      product.template load_pairs<1>(p, l); // before the exponentials, which then fall between the mma
      publish(s, c, reference, sums, k & 1, l);
    } else {
      product.template load_pairs<1>(p, l);
    }
    product.template add<1>(acc, all_granules);
    arrive(loader.ready(half));
    arrive(loader.empty(before));
  }

  // The values of tile k, the last of a run.
  __device__ __forceinline__ void last_values(accumulators<C>& acc, int k, bool all_granules) {
    const unsigned l = ptx::lane_now();
    value_product<C> product;
    product.begin(loader.stage_address(stage), member, l);
    ptx::barrier_wait(loader.ready(half), turn);
    rescale_after(acc, k, l);
    product.add_all(acc, probabilities(k & 1), l, all_granules);
    arrive(loader.empty(stage));
    advance();
  }

  // Lets n tiles pass: this half has no row in their request.
  __device__ __forceinline__ void pass(int n) {
    for (int k = 0; k < n; ++k) {
      ptx::barrier_wait(loader.full(stage), parity);
      arrive(loader.empty(stage));
      advance();
    }
  }

  __device__ __forceinline__ void flush_rows(float* ml, row_pair_sums& sums) const {
    if (!owner()) return;
#pragma unroll
    for (int offset = 4; offset < 32; offset *= 2)
#pragma unroll
      for (int r = 0; r < 2; ++r) sums[r] += __shfl_xor_sync(0xffffffffu, sums[r], offset);
    const unsigned l = ptx::lane_now();
    const float2 reference = *references(l);
    if (l < 4)
      reinterpret_cast<float4*>(ml)[half * C::HALF_ROWS / 2 + member * 4 + l] =
          make_float4(reference.x, sums[0], reference.y, sums[1]);
  }

  // A run of tiles of one request: n of them from `tile` on. again: not the first run of the block.
  __device__ __forceinline__ void run(const tile_cursor& at, int tile, int n, bool again) {
    const row_run rows = half_rows<C>(args, group, half);
    if (!has_rows(rows, table.draft[at.request] * args.heads)) return pass(n);
    query_fragments<C> query;
    // Nobody reads masks or probabilities of the run before.
    if (again) sync_half();
    const int l = static_cast<int>(ptx::lane_now());
    if (l < 2) grew(l)[member] = -1;
    if (l < 4) *references(l) = make_float2(NO_MAXIMUM, NO_MAXIMUM);
    load_half<C>(query, memory, args, table, at, rows, half, member, l);
    sync_half();
    const bool all_granules = rows.count == C::HALF_ROWS;
    accumulators<C> acc = {};
    int token = (tile - at.begin) * C::TOK;
    row_pair_sums sums = {0, 0};
    first_tile(query, token, at, sums, all_granules);
    for (int k = 1; k < n; ++k) {
      token += C::TOK;
      next_tile(query, acc, token, at, sums, k, all_granules);
    }
    last_values(acc, n - 1, all_granules);
    const int slot = args.splits > 0 ? unit : partial_slot(unit, at.request);
    const int64_t place = int64_t{slot} * args.groups + group;
    flush_values<C, BF16>(acc, args, place, member, half, ptx::lane_now());
    flush_rows(args.partial_ml + place * C::ROWS * 2, sums);
  }
};

} // namespace verify_mla
