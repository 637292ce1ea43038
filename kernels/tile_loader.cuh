// Gathers one tile of pool rows into shared memory. Every warp brings its own TOK / 8 rows, so no warp is a producer:
// a ninth warp would cap all of them at 168 registers, and one issuing warp alone was measured short of the memory rate.
#pragma once

#include "config.h"
#include "kernel_args.h"
#include "ptx.cuh"

namespace verify_mla {

enum class loader_kind { async_16, bulk };

template <class C, loader_kind KIND> struct tile_loader {
  uint32_t stages;         // shared address of stage 0
  const bf16_bits* kv;     // bf16 [slots, 576]
  uint32_t barriers;       // shared address of STAGES mbarriers (bulk only)

  __device__ __forceinline__ uint32_t stage_address(int stage) const { return stages + stage * int(C::STAGE_BYTES); }

  __device__ __forceinline__ void init(int thread) const {
    if constexpr (KIND == loader_kind::bulk) {
      if (thread < C::STAGES) ptx::barrier_init(barriers + thread * 8, WARPS);
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
  }

  // slot: lane r (modulo the warp's rows) holds the pool row of the warp's r-th token.
  __device__ __forceinline__ void issue(int stage, int slot, int warp, int lane) const {
    constexpr int RPW = C::ROWS_PER_WARP;
    const uint32_t dst = stage_address(stage) + warp * RPW * ROW_PITCH;
    if constexpr (KIND == loader_kind::bulk) {
      const uint32_t barrier = barriers + stage * 8;
      if (lane == 0) ptx::barrier_expect(barrier, RPW * ROW_BYTES);
      __syncwarp();
      if (lane < RPW) ptx::copy_bulk(dst + lane * ROW_PITCH, kv + int64_t{slot} * HEAD_DIM, ROW_BYTES, barrier);
    } else {
#pragma unroll
      for (int r = 0; r < RPW; ++r) {
        const bf16_bits* row = kv + int64_t{__shfl_sync(0xffffffffu, slot, r)} * HEAD_DIM + lane * 8;
        ptx::copy_16(dst + r * ROW_PITCH + lane * 16, row);
        ptx::copy_16(dst + r * ROW_PITCH + 512 + lane * 16, row + 256);
      }
      // The last 128 bytes of every row, eight lanes each.
      const int r = lane / 8 % RPW;
      const bf16_bits* row = kv + int64_t{__shfl_sync(0xffffffffu, slot, r)} * HEAD_DIM + 512 + lane % 8 * 8;
      if (lane < RPW * 8) ptx::copy_16(dst + r * ROW_PITCH + 1024 + lane % 8 * 16, row);
    }
  }

  // One group per tile, also where there is no tile left, so that counting groups counts tiles.
  __device__ __forceinline__ void commit() const {
    if constexpr (KIND == loader_kind::async_16) ptx::copy_commit();
  }

  // Before a block barrier: this thread's copies are in, but for the last PENDING tiles.
  template <int PENDING> __device__ __forceinline__ void before_barrier() const {
    if constexpr (KIND == loader_kind::async_16) ptx::copy_wait<PENDING>();
  }

  // Before reading tile number `tile` of the block.
  __device__ __forceinline__ void before_use(int tile) const {
    if constexpr (KIND == loader_kind::bulk) ptx::barrier_wait(barriers + tile % C::STAGES * 8, tile / C::STAGES & 1);
  }
};

} // namespace verify_mla
