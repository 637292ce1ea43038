// Gathers one tile of pool rows into shared memory by the bulk copy engine, one copy per row (pages hold one token).
// Every warp brings its own TOK / 8 rows: one issuing warp per block was measured at 3300 GB/s, two at 4180, four and
// more at 4220, and a dedicated ninth warp would cap all warps at 168 registers.
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
  int total = 0; // prefix + draft tokens

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
    return true;
  }
};

template <class C> struct tile_loader {
  const kernel_args& args;
  const request_table& table;
  uint32_t smem; // shared address of the dynamic shared memory
  tile_cursor cursor;

  __device__ __forceinline__ uint32_t stage_address(int stage) const { return smem + stage * int(C::STAGE_BYTES); }
  __device__ __forceinline__ uint32_t barrier(int stage) const { return smem + int(C::BARRIER_OFFSET) + stage * 8; }

  // Followed by a block barrier.
  __device__ __forceinline__ void init(int thread) const {
    if (thread < C::STAGES) ptx::barrier_init(barrier(thread), WARPS);
    ptx::barrier_init_fence();
  }

  // Where the pool row of this lane's token stands, lane r modulo the warp's rows. Tokens past the end repeat the last
  // one: their probability is 0 and, unlike whatever lies behind, that row is known to be finite.
  __device__ __forceinline__ const int64_t* slot_pointer(int tile, int warp, int lane) {
    cursor.move_to(tile, table);
    const int j = min((tile - cursor.begin) * C::TOK + warp * C::ROWS_PER_WARP + lane % C::ROWS_PER_WARP,
                      cursor.total - 1);
    return j < cursor.prefix ? args.kv_indices + table.kv_start[cursor.request] + j
                             : args.out_cache_loc + table.qo_start[cursor.request] + (j - cursor.prefix);
  }

  // Slots of a later tile travel through shared memory: a load into a register would share a scoreboard with the
  // operands of the tensor cores and stall them for its whole latency.
  __device__ __forceinline__ uint32_t ring_address(int tile, int warp, int lane) const {
    return smem + int(C::RING_OFFSET) + ((tile & 1) * C::TOK + warp * C::ROWS_PER_WARP + lane % C::ROWS_PER_WARP) * 4;
  }
  __device__ __forceinline__ void prefetch_slots(int tile, int warp, int lane) {
    const int64_t* from = slot_pointer(tile, warp, lane);
    if (lane < C::ROWS_PER_WARP) ptx::copy_4(ring_address(tile, warp, lane), from); // the low half: slots < 2^31
    ptx::copy_commit();
  }
  __device__ __forceinline__ int prefetched_slot(int tile, int warp, int lane) const {
    ptx::copy_wait_all();
    __syncwarp();
    return ptx::load_shared(ring_address(tile, warp, lane));
  }

  // slot: lane r (modulo the warp's rows) holds the pool row of the warp's r-th token.
  __device__ __forceinline__ void issue(int stage, int slot, int warp) const {
    constexpr int RPW = C::ROWS_PER_WARP;
    const uint32_t dst = stage_address(stage) + warp * RPW * ROW_PITCH;
    int slots[RPW];
#pragma unroll
    for (int r = 0; r < RPW; ++r) slots[r] = __shfl_sync(0xffffffffu, slot, r);
    if (ptx::elect_one()) {
      ptx::barrier_expect(barrier(stage), RPW * ROW_BYTES);
#pragma unroll
      for (int r = 0; r < RPW; ++r)
        ptx::copy_bulk(dst + r * ROW_PITCH, args.kv + int64_t{slots[r]} * HEAD_DIM, ROW_BYTES, barrier(stage));
    }
  }
};

} // namespace verify_mla
