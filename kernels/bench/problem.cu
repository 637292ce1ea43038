#include "problem.h"

#include "config.h"

#include "capturesan_host.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>

namespace verify_mla {

void require(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(5);
}

int64_t total_tokens(const problem_spec& spec) {
  int64_t n = 0;
  for (int p : spec.prefix) n += p + spec.draft;
  return n;
}

namespace {

__host__ __device__ uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

__host__ __device__ uint16_t normal_bf16(uint64_t index, float deviation, uint64_t seed) {
  const uint64_t h = mix(seed * 0x100000001b3ull + index);
  const float u = (static_cast<float>(h >> 40) + 0.5f) / 16777216.0f;
  const float v = static_cast<float>(h & 0xffffff) / 16777216.0f;
  const float x = deviation * sqrtf(-2.0f * logf(u)) * cosf(6.2831853f * v);
  uint32_t bits = 0;
  memcpy(&bits, &x, 4);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

__global__ void fill_normal(uint16_t* out, int64_t n, float deviation, uint64_t seed) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += int64_t{gridDim.x} * blockDim.x) {
    out[i] = normal_bf16(static_cast<uint64_t>(i), deviation, seed);
  }
}

// Rows that no request uses become NaN.
__global__ void poison_rows(uint16_t* kv, const uint8_t* used, int64_t slots) {
  const int64_t slot = blockIdx.x;
  if (slot < slots && !used[slot])
    for (int i = threadIdx.x; i < HEAD_DIM; i += blockDim.x) kv[slot * HEAD_DIM + i] = 0x7fff;
}

template <class T>
T* allocate(int64_t n) {
  void* p = nullptr;
  require(cudaMalloc(&p, static_cast<size_t>(std::max<int64_t>(n, 1)) * sizeof(T)), "cudaMalloc");
  return static_cast<T*>(p);
}

template <class T>
void upload(T* to, const std::vector<T>& from) {
  require(cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
}

bool sees(mask_kind kind, const std::vector<int>& parent, int t, int d) {
  switch (kind) {
  case mask_kind::full:
    return true;
  case mask_kind::causal:
  case mask_kind::chain:
    return d <= t;
  case mask_kind::star:
    return d == t || d == 0;
  case mask_kind::self_only:
    return d == t;
  case mask_kind::nothing:
    return false;
  case mask_kind::tree:
    break;
  }
  for (int a = t; a >= 0; a = parent[static_cast<size_t>(a)])
    if (a == d) return true;
  return false;
}

} // namespace

void use_host_problem_kernels() {
  capturesan::run_on_host(fill_normal,
                          [](const capturesan::place& at, uint16_t* out, int64_t n, float deviation, uint64_t seed) {
                            if (at.x() > 0) return; // one call does it all
                            for (int64_t i = 0; i < n; ++i)
                              out[i] = normal_bf16(static_cast<uint64_t>(i), deviation, seed);
                          });
  capturesan::run_on_host(poison_rows,
                          [](const capturesan::place& at, uint16_t* kv, const uint8_t* used, int64_t slots) {
                            if (at.thread_index.x > 0 || at.block_index.x >= slots || used[at.block_index.x]) return;
                            std::fill_n(kv + int64_t{at.block_index.x} * HEAD_DIM, HEAD_DIM, uint16_t{0x7fff});
                          });
}

device_problem::device_problem(int batch_, int64_t prefix_tokens, int draft_, int heads_, int pools_)
    : batch(batch_), draft(draft_), heads(heads_), pools(pools_), prefix_capacity(prefix_tokens) {
  const int64_t tokens = int64_t{batch} * draft;
  slots = prefix_tokens + tokens + 64;
  mask_capacity = (prefix_tokens + tokens) * draft + 64;
  q = allocate<uint16_t>(tokens * heads * HEAD_DIM);
  kv = allocate<uint16_t>(slots * HEAD_DIM * pools);
  kv_indptr = allocate<int32_t>(batch + 1);
  kv_indices = allocate<int64_t>(prefix_tokens + 64);
  qo_indptr = allocate<int64_t>(batch + 1);
  out_cache_loc = allocate<int64_t>(tokens);
  mask = allocate<uint8_t>(mask_capacity);
  mask_indptr = allocate<int64_t>(batch + 1);
  out = allocate<uint16_t>(tokens * heads * VALUE_DIM);
  lse = allocate<float>(tokens * heads);
}

device_problem::~device_problem() {
  for (void* p :
       {static_cast<void*>(q), static_cast<void*>(kv), static_cast<void*>(kv_indptr), static_cast<void*>(kv_indices),
        static_cast<void*>(qo_indptr), static_cast<void*>(out_cache_loc), static_cast<void*>(mask),
        static_cast<void*>(mask_indptr), static_cast<void*>(out), static_cast<void*>(lse), workspace})
    cudaFree(p);
}

void device_problem::set_workspace(int64_t bytes) {
  cudaFree(workspace);
  workspace = allocate<uint8_t>(bytes);
  workspace_bytes = bytes;
}

void device_problem::poison() {
  require(cudaMemset(out, 0xff, static_cast<size_t>(batch) * draft * heads * VALUE_DIM * 2), "poison");
  require(cudaMemset(lse, 0xff, static_cast<size_t>(batch) * draft * heads * 4), "poison");
  if (workspace) require(cudaMemset(workspace, 0xff, static_cast<size_t>(workspace_bytes)), "poison");
}

void device_problem::fill(const problem_spec& s, bool new_pools) {
  spec = s;
  std::mt19937_64 random(s.seed);
  const int64_t tokens = int64_t{batch} * draft;
  // Index and mask tails keep values from nowhere: slots that exist but are poisoned, masks that say visible.
  std::vector<int32_t> kv_ptr(static_cast<size_t>(batch) + 1, 0);
  std::vector<int64_t> qo_ptr(static_cast<size_t>(batch) + 1, 0), mask_ptr(static_cast<size_t>(batch) + 1, 0);
  std::vector<int64_t> order(static_cast<size_t>(slots));
  std::iota(order.begin(), order.end(), 0);
  if (!s.contiguous) std::shuffle(order.begin(), order.end(), random);
  size_t next = 0;
  std::vector<int64_t> indices(static_cast<size_t>(prefix_capacity) + 64), locations(static_cast<size_t>(tokens));
  const bool custom = s.mask != mask_kind::causal && s.mask != mask_kind::full;
  std::vector<uint8_t> bytes(custom ? static_cast<size_t>(mask_capacity) : 0, 1);
  int64_t mask_at = custom ? 7 : 0; // an odd offset: nothing may assume aligned mask rows
  mask_ptr[0] = mask_at;
  std::vector<int> parent(static_cast<size_t>(draft), -1);
  for (int b = 0; b < batch; ++b) {
    const auto i = static_cast<size_t>(b);
    const int prefix = s.prefix[i];
    for (int j = 0; j < prefix; ++j) indices[static_cast<size_t>(kv_ptr[i] + j)] = order[next++];
    for (int t = 0; t < draft; ++t) locations[i * static_cast<size_t>(draft) + static_cast<size_t>(t)] = order[next++];
    kv_ptr[i + 1] = kv_ptr[i] + prefix;
    qo_ptr[i + 1] = qo_ptr[i] + draft;
    if (custom)
      for (int t = 0; t < draft; ++t) {
        if (t > 0) parent[static_cast<size_t>(t)] = static_cast<int>(random() % static_cast<unsigned>(t));
        uint8_t* row = bytes.data() + mask_at + int64_t{t} * (prefix + draft);
        for (int j = 0; j < prefix; ++j) row[j] = static_cast<uint8_t>(j * 37 + t); // must not be looked at
        for (int d = 0; d < draft; ++d) row[prefix + d] = sees(s.mask, parent, t, d) ? 1 : 0;
      }
    mask_at += int64_t{draft} * (prefix + draft);
    mask_ptr[i + 1] = mask_at;
  }
  std::vector<uint8_t> used(static_cast<size_t>(slots), 0);
  for (size_t i = 0; i < next; ++i) used[static_cast<size_t>(order[i])] = 1;
  for (size_t i = static_cast<size_t>(kv_ptr.back()); i < indices.size(); ++i)
    indices[i] = order[std::min(next, order.size() - 1)];
  upload(kv_indptr, kv_ptr);
  upload(qo_indptr, qo_ptr);
  upload(mask_indptr, mask_ptr);
  upload(kv_indices, indices);
  upload(out_cache_loc, locations);
  if (custom) upload(mask, bytes);
  fill_normal<<<256, 256>>>(q, tokens * heads * HEAD_DIM, s.spread, s.seed * 2 + 1);
  if (new_pools) {
    uint8_t* device_used = allocate<uint8_t>(slots);
    upload(device_used, used);
    fill_normal<<<4096, 256>>>(kv, slots * HEAD_DIM * pools, 0.5f, s.seed * 2);
    for (int pool = 0; pool < pools; ++pool)
      poison_rows<<<static_cast<unsigned>(slots), 128>>>(kv + int64_t{pool} * slots * HEAD_DIM, device_used, slots);
    require(cudaDeviceSynchronize(), "fill");
    cudaFree(device_used);
  }
  require(cudaGetLastError(), "fill");
  require(cudaDeviceSynchronize(), "fill");
  poison();
}

verify_mla_params device_problem::params(int pool) const {
  verify_mla_params p = {};
  p.struct_bytes = sizeof p;
  p.batch = batch;
  p.draft_tokens = draft;
  p.heads = heads;
  p.causal = spec.mask == mask_kind::causal ? 1 : 0;
  p.scale = spec.scale;
  p.cap = spec.cap;
  const int64_t tokens = int64_t{batch} * draft;
  p.q = {q, tokens * heads * HEAD_DIM, VERIFY_MLA_BF16, 0};
  p.kv = {kv + int64_t{pool} * slots * HEAD_DIM, slots * HEAD_DIM, VERIFY_MLA_BF16, 0};
  p.kv_indptr = {kv_indptr, batch + 1, VERIFY_MLA_I32, 0};
  p.kv_indices = {kv_indices, prefix_capacity + 64, VERIFY_MLA_I64, 0};
  p.qo_indptr = {qo_indptr, batch + 1, VERIFY_MLA_I64, 0};
  p.out_cache_loc = {out_cache_loc, tokens, VERIFY_MLA_I64, 0};
  if (spec.mask != mask_kind::causal && spec.mask != mask_kind::full) {
    p.custom_mask = {mask, mask_capacity, VERIFY_MLA_U8, 0};
    p.mask_indptr = {mask_indptr, batch + 1, VERIFY_MLA_I64, 0};
  }
  p.out = {out, tokens * heads * VALUE_DIM, VERIFY_MLA_BF16, 0};
  p.lse = {lse, tokens * heads, VERIFY_MLA_F32, 0};
  p.workspace = {workspace, workspace_bytes, VERIFY_MLA_U8, 0};
  return p;
}

} // namespace verify_mla
