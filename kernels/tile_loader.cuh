// Gathers tiles of pool rows into shared memory by the bulk copy engine, one copy per row (pages hold one token).
// One issuing warp per block was measured at
// 3300 GB/s, two at 4180, four and more at 4220.
#pragma once

#include "config.h"
#include "kernel_args.h"
#include "ptx.cuh"
#include "request_table.cuh"

namespace verify_mla {

// Walks the line of tiles for one purpose and remembers the request it is in. All fields are equal in all lanes.
struct tile_cursor {
  int request = -1;
  int begin = 0; // first tile of the request
  int end = 0;   // behind its last tile
  int prefix = 0;
  int total = 0;    // prefix + draft tokens
  int kv_start = 0; // first entry in kv_indices

  // The first tile at `place` of the line or behind it; there must be one. Never goes back.
  __device__ __forceinline__ int move_to(int place, const request_table& table) {
    if (place < end) return place;
    do ++request;
    while (place >= table.tile_end[request]);
    request = uniform(request);
    begin = uniform(table.tile_begin[request]);
    end = uniform(table.tile_end[request]);
    prefix = uniform(table.prefix[request]);
    total = prefix + uniform(table.draft[request]);
    kv_start = uniform(table.kv_start[request]);
    return max(place, begin);
  }
};

// How many lanes of a warp say that it is done with a stage. One suffices, after a __syncwarp(); racecheck does not
// follow that (tests/kernels/race_probe.cu), so there is a build for it in which every lane speaks for itself.
#ifdef VERIFY_MLA_FOR_RACECHECK
inline constexpr int EMPTY_ARRIVALS = 32;
#else
inline constexpr int EMPTY_ARRIVALS = 1;
#endif

template <class C>
struct tile_loader {
  static constexpr int ROWS = C::FETCH_ROWS;

  const kernel_args& args;
  const request_table& table;
  uint32_t smem; // shared address of the dynamic shared memory
  int warp;      // among the fetching warps
  int lane;
  int first, last; // the block's part of the line of tiles: [first, last)
  tile_cursor cursor;

  __device__ __forceinline__ uint32_t stage_address(int stage) const { return smem + stage * int(C::STAGE_BYTES); }
  // Completed by the bytes of a tile.
  __device__ __forceinline__ uint32_t full(int stage) const { return smem + int(C::BARRIER_OFFSET) + stage * 8; }
  // Completed when every math warp has added the values of a tile: its stage is free.
  __device__ __forceinline__ uint32_t empty(int stage) const { return full(C::STAGES + stage); }

  // Within a half, where it works on two tiles at once: completed when all its warps have left their scores of a tile,
  // and when its probabilities are there.
  __device__ __forceinline__ uint32_t scored(int half) const { return full(2 * C::STAGES + half * 2); }
  __device__ __forceinline__ uint32_t ready(int half) const { return full(2 * C::STAGES + half * 2 + 1); }

  // Followed by a block barrier.
  __device__ __forceinline__ void init(int thread) const {
    if (thread < C::STAGES) {
      ptx::barrier_init(full(thread), C::PRODUCERS);
      ptx::barrier_init(empty(thread), WARPS * EMPTY_ARRIVALS);
    }
    if (C::DEEP && thread < 2 * C::HALVES) ptx::barrier_init(scored(0) + thread * 8, C::HALF_WARPS * EMPTY_ARRIVALS);
    ptx::barrier_init_fence();
  }

  // Where the pool row of this lane's token stands: token lane % ROWS of the warp's share. Tokens past the end repeat
  // the last one: their probability is 0 and, unlike whatever lies behind, that row is known to be finite.
  __device__ __forceinline__ const int64_t* slot_pointer(int tile) const {
    const int begin = (tile - cursor.begin) * C::TOK;
    const int64_t* prefix = args.kv_indices + cursor.kv_start;
    if (begin + C::TOK <= cursor.prefix) return prefix + (begin + warp * ROWS + lane % ROWS);
    const int j = min(begin + warp * ROWS + lane % ROWS, cursor.total - 1);
    return j < cursor.prefix ? prefix + j : args.out_cache_loc + table.qo_start[cursor.request] + (j - cursor.prefix);
  }

  // slots: pool rows of the warp's tokens, the same in all lanes.
  __device__ __forceinline__ void issue(int stage, const int (&slots)[ROWS]) const {
    const uint32_t dst = stage_address(stage) + warp * ROWS * ROW_PITCH;
#ifdef VERIFY_MLA_PLAIN_COPY
    // For racecheck only, which cannot follow bulk copies: the same barriers around ordinary loads and stores.
    for (int r = 0; r < ROWS; ++r)
      for (int at = lane * 16; at < ROW_BYTES; at += 32 * 16) {
        const bf16_bits* row = args.kv + int64_t{slots[r]} * HEAD_DIM;
        ptx::store_shared_4(dst + r * ROW_PITCH + at, *reinterpret_cast<const int4*>(row + at / 2));
      }
    __syncwarp();
    if (lane == 0) ptx::barrier_arrive(full(stage));
    return;
#endif
    if (ptx::elect_one()) {
      ptx::barrier_expect(full(stage), ROWS * ROW_BYTES);
#pragma unroll
      for (int r = 0; r < ROWS; ++r)
        ptx::copy_bulk(dst + r * ROW_PITCH, args.kv + int64_t{slots[r]} * HEAD_DIM, ROW_BYTES, full(stage));
    }
  }
  // slot: lane r (modulo ROWS) holds the pool row of the warp's r-th token.
  __device__ __forceinline__ void issue_from_lanes(int stage, int slot) const {
    int slots[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) slots[r] = __shfl_sync(0xffffffffu, slot, r);
    issue(stage, slots);
  }

  // The whole life of a producer warp.
  __device__ __forceinline__ void produce() {
    bool waited = !args.old_prefix;
    int stage = 0;
    int parity = 1; // of the phase before the first: passes at once
    int tile = cursor.move_to(first, table);
    int next = tile < last ? static_cast<int>(*slot_pointer(tile)) : 0;
    while (tile < last) {
      const int slot = next;
      if (!waited && (tile - cursor.begin + 1) * C::TOK > cursor.prefix) { // rows of draft tokens
        ptx::wait_for_previous_kernel();
        waited = true;
      }
      if (++tile < last) tile = cursor.move_to(tile, table);
      if (tile < last) next = static_cast<int>(*slot_pointer(tile));
      ptx::barrier_wait(empty(stage), parity);
      issue_from_lanes(stage, slot);
      if (++stage == C::STAGES) {
        stage = 0;
        parity ^= 1;
      }
    }
  }
};

} // namespace verify_mla
