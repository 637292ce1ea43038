#include "ceilings.h"

#include "config.h"
#include "problem.h"
#include "ptx.cuh"

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

namespace verify_mla {
namespace {

__global__ void mma_rate(float* sink, int rounds) {
  float acc[8][4] = {};
  uint32_t a[4];
  for (uint32_t& x : a) x = 0x3f803f80u + threadIdx.x;
  for (int i = 0; i < rounds; ++i)
#pragma unroll
    for (int n = 0; n < 8; ++n) ptx::mma(acc[n], a, a[0] ^ n, a[1]);
  float s = 0;
  for (auto& tile : acc)
    for (float x : tile) s += x;
  sink[blockIdx.x * blockDim.x + threadIdx.x] = s;
}

// ISSUERS warps of the block fetch tiles of 32 rows by bulk copies; everyone waits, nobody computes.
template <int ISSUERS, int STAGES>
__global__ void __launch_bounds__(THREADS, 1) gather_bulk(const uint16_t* kv, const int* slots, int tiles) {
  extern __shared__ __align__(128) char smem[];
  __shared__ uint64_t full[STAGES];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const uint32_t barriers = ptx::smem_address(full), base = ptx::smem_address(smem);
  constexpr int ROWS = 32 / ISSUERS;
  if (threadIdx.x < STAGES) ptx::barrier_init(barriers + threadIdx.x * 8, ISSUERS);
  __syncthreads();
  const auto issue = [&](int t) {
    if (warp >= ISSUERS || t >= tiles) return;
    const int slot = slots[(int64_t{t} * gridDim.x + blockIdx.x) * 32 + warp * ROWS + lane % ROWS];
    const uint32_t barrier = barriers + t % STAGES * 8;
    if (lane == 0) ptx::barrier_expect(barrier, ROWS * ROW_BYTES);
    __syncwarp();
    if (lane < ROWS)
      ptx::copy_bulk(base + (t % STAGES * 32 + warp * ROWS + lane) * ROW_PITCH, kv + int64_t{slot} * HEAD_DIM,
                     ROW_BYTES, barrier);
  };
  for (int t = 0; t < STAGES; ++t) issue(t);
  for (int t = 0; t < tiles; ++t) {
    ptx::barrier_wait(barriers + t % STAGES * 8, t / STAGES & 1);
    __syncthreads();
    issue(t + STAGES);
  }
}

double median_ms(const std::function<void()>& work) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  std::vector<float> times;
  for (int i = 0; i < 9; ++i) {
    cudaEventRecord(begin);
    work();
    cudaEventRecord(end);
    require(cudaEventSynchronize(end), "ceiling");
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    if (i >= 2) times.push_back(ms);
  }
  require(cudaGetLastError(), "ceiling");
  std::sort(times.begin(), times.end());
  return static_cast<double>(times[times.size() / 2]);
}

struct gather_data {
  static constexpr int64_t SLOTS = 1 << 21; // 2.4 GB
  uint16_t* kv = nullptr;
  int *random = nullptr, *straight = nullptr, *small = nullptr;
};

void upload(int*& to, const std::vector<int>& from) {
  require(cudaMalloc(&to, from.size() * 4), "cudaMalloc");
  require(cudaMemcpy(to, from.data(), from.size() * 4, cudaMemcpyHostToDevice), "cudaMemcpy");
}

template <class Kernel>
void time_gather(std::vector<ceiling>& out, const std::string& name, Kernel kernel, int stages, const gather_data& d) {
  const size_t smem = static_cast<size_t>(stages) * 32 * ROW_PITCH;
  require(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(smem)),
          "attribute");
  int sms = 0;
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
  const int tiles = static_cast<int>(gather_data::SLOTS / 32 / sms);
  const double gigabytes = 1e-9 * tiles * 32 * sms * ROW_BYTES;
  for (const auto& [label, slots] : {std::pair{"random", d.random}, {"contiguous", d.straight}, {"L2", d.small}}) {
    const double ms = median_ms([&] { kernel<<<static_cast<unsigned>(sms), THREADS, smem>>>(d.kv, slots, tiles); });
    out.push_back({"gather " + name + ", " + label, gigabytes / ms * 1e3, "GB/s"});
  }
}

void measure_gathers(std::vector<ceiling>& out) {
  gather_data d;
  require(cudaMalloc(&d.kv, gather_data::SLOTS * ROW_BYTES), "cudaMalloc");
  require(cudaMemset(d.kv, 1, gather_data::SLOTS * ROW_BYTES), "cudaMemset");
  std::vector<int> slots(static_cast<size_t>(gather_data::SLOTS));
  std::iota(slots.begin(), slots.end(), 0);
  upload(d.straight, slots);
  std::shuffle(slots.begin(), slots.end(), std::mt19937(3));
  upload(d.random, slots);
  for (size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<int>(i % 16384); // 19 MB
  upload(d.small, slots);
  time_gather(out, "bulk, 1 issuing warp, 5 stages", gather_bulk<1, 5>, 5, d);
  time_gather(out, "bulk, 2 issuing warps, 5 stages", gather_bulk<2, 5>, 5, d);
  time_gather(out, "bulk, 4 issuing warps, 5 stages", gather_bulk<4, 5>, 5, d);
  time_gather(out, "bulk, 8 issuing warps, 5 stages", gather_bulk<8, 5>, 5, d);
  time_gather(out, "bulk, 8 issuing warps, 3 stages", gather_bulk<8, 3>, 3, d);
  cudaFree(d.kv);
  for (int* p : {d.random, d.straight, d.small}) cudaFree(p);
}

} // namespace

std::vector<ceiling> measure_ceilings(bool gathers) {
  std::vector<ceiling> out;
  void *from = nullptr, *to = nullptr;
  const size_t bytes = size_t{2} << 30;
  require(cudaMalloc(&from, bytes), "cudaMalloc");
  require(cudaMalloc(&to, bytes), "cudaMalloc");
  require(cudaMemset(from, 1, bytes), "cudaMemset");
  const double copy = median_ms([&] { cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice); });
  out.push_back({"copy, read + write", 2e-6 * static_cast<double>(bytes) / copy, "GB/s"});
  int sms = 0;
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
  const int rounds = 20000;
  const double mma = median_ms([&] { mma_rate<<<static_cast<unsigned>(sms), 512>>>(static_cast<float*>(to), rounds); });
  out.push_back({"mma.sync m16n8k16 bf16", 1e-9 * sms * 16 * rounds * 8 * 4096 / mma, "TFLOP/s"});
  cudaFree(from);
  cudaFree(to);
  if (gathers) measure_gathers(out);
  return out;
}

} // namespace verify_mla
