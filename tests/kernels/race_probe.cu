// What compute-sanitizer's racecheck makes of kernel A's ways to order shared memory, each alone. All but the two
// `wrong` ones are ordered by the PTX memory model. One warp:
//   bulk        cp.async.bulk, complete_tx on an mbarrier, every thread waits, then ldmatrix
//   plain       the same bytes by ordinary stores, arrive and wait on the same mbarrier, then ldmatrix
//   bulk-wrong  the bulk copy, and ldmatrix without the wait
// Two warps and one stage that is filled four times; the producer waits at a second mbarrier until the stage is free:
//   ring-all    every lane of the consumer arrives there
//   ring-lane   the consumer calls __syncwarp(), then its lane 0 arrives for all, as kernel A does
//   ring-wrong  the producer does not wait
// usage: race_probe MODE
#include "ptx.cuh"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>

using namespace verify_mla;

namespace {

enum mode { BULK, PLAIN, BULK_WRONG, RING_ALL, RING_LANE, RING_WRONG };
const char* const NAMES[] = {"bulk", "plain", "bulk-wrong", "ring-all", "ring-lane", "ring-wrong"};
constexpr int BYTES = 512;

template <mode MODE>
__global__ void one_warp(const uint32_t* from, uint32_t* to) {
  __shared__ __align__(128) uint32_t tile[BYTES / 4];
  __shared__ uint64_t barrier;
  const int lane = threadIdx.x;
  const uint32_t full = ptx::smem_address(&barrier), stage = ptx::smem_address(tile);
  if (lane == 0) ptx::barrier_init(full, 1);
  ptx::barrier_init_fence();
  __syncthreads();
  if (MODE == PLAIN) {
    ptx::store_shared_4(stage + lane * 16, *reinterpret_cast<const int4*>(from + lane * 4));
    __syncwarp();
    if (lane == 0) ptx::barrier_arrive(full);
  } else if (lane == 0) {
    ptx::barrier_expect(full, BYTES);
    ptx::copy_bulk(stage, from, BYTES, full);
  }
  if (MODE != BULK_WRONG) ptx::barrier_wait(full, 0);
  uint32_t r[4];
  ptx::ldmatrix_x4(r, stage + lane * 16);
  if (MODE == BULK_WRONG) ptx::barrier_wait(full, 0); // the block must not end under the copy
  for (int i = 0; i < 4; ++i) to[lane * 4 + i] = r[i];
}

template <mode MODE>
__global__ void two_warps(const uint32_t* from, uint32_t* to) {
  __shared__ __align__(128) uint32_t tile[BYTES / 4];
  __shared__ uint64_t barriers[2];
  const int lane = threadIdx.x % 32;
  const uint32_t full = ptx::smem_address(barriers), empty = full + 8, stage = ptx::smem_address(tile);
  if (threadIdx.x == 0) {
    ptx::barrier_init(full, 1);
    ptx::barrier_init(empty, MODE == RING_ALL ? 32 : 1);
  }
  ptx::barrier_init_fence();
  __syncthreads();
  constexpr int ROUNDS = 4;
  if (threadIdx.x >= 32) {
    for (int i = 0; i < ROUNDS; ++i) {
      if (MODE != RING_WRONG && i > 0) ptx::barrier_wait(empty, (i - 1) & 1);
      if (lane == 0) {
        ptx::barrier_expect(full, BYTES);
        ptx::copy_bulk(stage, from, BYTES, full);
      }
      __syncwarp();
      if (MODE == RING_WRONG) ptx::barrier_wait(full, i & 1); // one phase after the other, or the barrier breaks
    }
    return;
  }
  uint32_t sum = 0;
  for (int i = 0; i < ROUNDS; ++i) {
    if (MODE != RING_WRONG || i == 0) ptx::barrier_wait(full, i & 1);
    uint32_t r[4];
    ptx::ldmatrix_x4(r, stage + lane * 16);
    sum += r[0] + r[1] + r[2] + r[3];
    __syncwarp();
    if (MODE == RING_ALL || (MODE == RING_LANE && lane == 0)) ptx::barrier_arrive(empty);
  }
  to[lane] = sum;
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  uint32_t *from = nullptr, *to = nullptr;
  if (cudaMalloc(&from, BYTES) != cudaSuccess || cudaMalloc(&to, BYTES) != cudaSuccess) return 77;
  cudaMemset(from, 1, BYTES);
  if (std::strcmp(argv[1], NAMES[BULK]) == 0) one_warp<BULK><<<1, 32>>>(from, to);
  if (std::strcmp(argv[1], NAMES[PLAIN]) == 0) one_warp<PLAIN><<<1, 32>>>(from, to);
  if (std::strcmp(argv[1], NAMES[BULK_WRONG]) == 0) one_warp<BULK_WRONG><<<1, 32>>>(from, to);
  if (std::strcmp(argv[1], NAMES[RING_ALL]) == 0) two_warps<RING_ALL><<<1, 64>>>(from, to);
  if (std::strcmp(argv[1], NAMES[RING_LANE]) == 0) two_warps<RING_LANE><<<1, 64>>>(from, to);
  if (std::strcmp(argv[1], NAMES[RING_WRONG]) == 0) two_warps<RING_WRONG><<<1, 64>>>(from, to);
  const cudaError_t error = cudaDeviceSynchronize();
  std::printf("race_probe %s: %s\n", argv[1], cudaGetErrorName(error));
  return error == cudaSuccess ? 0 : 1;
}
