// Gathers tiles of pool rows into shared memory by the bulk copy engine, one copy per row (pages hold one token).
// Who issues the copies is a matter of registers, see PRODUCERS in config.h. One issuing warp per block was measured at
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
  int end = 0;   // first tile behind it
  int prefix = 0;
  int total = 0;    // prefix + draft tokens
  int kv_start = 0; // first entry in kv_indices

  // True if `tile` lies in another request than the last one asked for.
  __device__ __forceinline__ bool move_to(int tile, const request_table& table) {
    if (tile < end) return false;
    do ++request;
    while (tile >= table.tile_begin[request + 1]);
    request = uniform(request);
    begin = uniform(table.tile_begin[request]);
    end = uniform(table.tile_begin[request + 1]);
    prefix = uniform(table.prefix[request]);
    total = prefix + uniform(table.draft[request]);
    kv_start = uniform(table.kv_start[request]);
    return true;
  }
};

template <class C>
struct tile_loader {
  static constexpr int ROWS = C::FETCH_ROWS;

  const kernel_args& args;
  const request_table& table;
  uint32_t smem; // shared address of the dynamic shared memory
  int warp;      // among the fetching warps
  int lane;
  int first, tiles; // of the block, on the line of tiles
  tile_cursor cursor;
  int next = C::STAGES; // without producers: the next tile of the block to fetch

  __device__ __forceinline__ uint32_t stage_address(int stage) const { return smem + stage * int(C::STAGE_BYTES); }
  // Completed by the bytes of a tile.
  __device__ __forceinline__ uint32_t full(int stage) const { return smem + int(C::BARRIER_OFFSET) + stage * 8; }
  // Completed when every math warp has added the values of a tile: its stage and its probabilities are free.
  __device__ __forceinline__ uint32_t empty(int stage) const { return full(C::STAGES + stage); }
  // Completed when all probabilities of a tile are written. Two, for even and odd tiles of the block.
  __device__ __forceinline__ uint32_t ready(int tile) const { return full(2 * C::STAGES + (tile & 1)); }
  __device__ __forceinline__ void wait_empty(int tile) const {
    ptx::barrier_wait(empty(tile % C::STAGES), tile / C::STAGES & 1);
  }

  // Followed by a block barrier.
  __device__ __forceinline__ void init(int thread) const {
    if (thread < C::STAGES) {
      ptx::barrier_init(full(thread), C::FETCHERS);
      ptx::barrier_init(empty(thread), WARPS);
    }
    if (thread < 2) ptx::barrier_init(ready(thread), WARPS);
    ptx::barrier_init_fence();
  }

  // Where the pool row of this lane's token stands: token lane % ROWS of the warp's share. Tokens past the end repeat
  // the last one: their probability is 0 and, unlike whatever lies behind, that row is known to be finite.
  __device__ __forceinline__ const int64_t* slot_pointer(int tile) {
    cursor.move_to(tile, table);
    const int begin = (tile - cursor.begin) * C::TOK;
    const int64_t* prefix = args.kv_indices + cursor.kv_start;
    if (begin + C::TOK <= cursor.prefix) return prefix + (begin + warp * ROWS + lane % ROWS);
    const int j = min(begin + warp * ROWS + lane % ROWS, cursor.total - 1);
    return j < cursor.prefix ? prefix + j : args.out_cache_loc + table.qo_start[cursor.request] + (j - cursor.prefix);
  }

  // slots: pool rows of the warp's tokens, the same in all lanes.
  __device__ __forceinline__ void issue(int stage, const int (&slots)[ROWS]) const {
    const uint32_t dst = stage_address(stage) + warp * ROWS * ROW_PITCH;
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
    int next = static_cast<int>(*slot_pointer(first));
    int stage = 0;
    int parity = 1; // of the phase before the first: passes at once
    for (int t = 0; t < tiles; ++t) {
      const int slot = next;
      if (t + 1 < tiles) next = static_cast<int>(*slot_pointer(first + t + 1));
      ptx::barrier_wait(empty(stage), parity);
      issue_from_lanes(stage, slot);
      if (++stage == C::STAGES) {
        stage = 0;
        parity ^= 1;
      }
    }
  }

  // Without producers. Slots of a later tile travel through shared memory: a load into a register would share a
  // scoreboard with the operands of the tensor cores and stall them for its whole latency.
  __device__ __forceinline__ uint32_t ring_address(int tile) const {
    return smem + int(C::RING_OFFSET) + ((tile & 1) * C::TOK + warp * ROWS) * 4;
  }
  __device__ __forceinline__ void prefetch_slots(int tile) {
    const int64_t* from = slot_pointer(tile);
    if (lane < ROWS) ptx::copy_4(ring_address(tile) + lane * 4, from); // the low half: slots < 2^31
    ptx::copy_commit();
  }
  // The first STAGES tiles, and the slots of the one behind them.
  __device__ __forceinline__ void fill() {
    int slots[C::STAGES];
#pragma unroll
    for (int s = 0; s < C::STAGES; ++s) slots[s] = s < tiles ? static_cast<int>(*slot_pointer(first + s)) : 0;
#pragma unroll
    for (int s = 0; s < C::STAGES; ++s)
      if (s < tiles) issue_from_lanes(s, slots[s]);
    if (C::STAGES < tiles) prefetch_slots(first + C::STAGES);
  }
  // Fetches the next tile, if tile `next - STAGES` is one of those before `done`, once all warps are done with it.
  __device__ __forceinline__ void refill(int done) {
    if (next >= tiles || next - C::STAGES >= done) return;
    ptx::copy_wait_all();
    __syncwarp();
    static_assert(ROWS == 4, "without producers a warp fetches four rows");
    const int4 v = ptx::load_shared_4(ring_address(first + next));
    const int slots[4] = {v.x, v.y, v.z, v.w};
    wait_empty(next - C::STAGES);
    issue(next % C::STAGES, slots);
    if (++next < tiles) prefetch_slots(first + next);
  }
};

} // namespace verify_mla
