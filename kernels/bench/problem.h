// Random verify problems in device memory, for the checks and the benchmark. Buffers are sized once; content can be
// rewritten in place, as an inference engine does between two replays.
#pragma once

#include "verify_mla.h"

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <vector>

namespace verify_mla {

enum class mask_kind { causal, full, chain, tree, star, self_only, nothing };

struct problem_spec {
  std::vector<int> prefix; // prefix tokens per request
  int draft = 4;           // draft tokens per request
  int heads = 8;
  mask_kind mask = mask_kind::causal; // causal, full: no custom mask
  bool contiguous = false;            // pool slots in order instead of a random permutation
  float scale = 0.1446792f;
  float cap = 0;
  float spread = 1.0f; // standard deviation of the queries; 0 gives a flat softmax
  uint64_t seed = 1;
};

// Sum of tokens over a batch.
int64_t total_tokens(const problem_spec& spec);

// Owns device memory. Not copyable. Failed CUDA calls end the program: this is test code, not the library.
class device_problem {
 public:
  // Room for `batch` requests of together `prefix_tokens` prefix tokens. pools: layers, each with its own KV.
  device_problem(int batch, int64_t prefix_tokens, int draft, int heads, int pools);
  ~device_problem();
  device_problem(const device_problem&) = delete;
  device_problem& operator=(const device_problem&) = delete;

  // Writes queries, slots, pointers, masks; poisons outputs, workspace and every unused pool row with NaN.
  // new_pools: also fresh KV. Stays on the default stream and waits for it.
  void fill(const problem_spec& spec, bool new_pools);
  void poison();

  verify_mla_params params(int pool) const; // without workspace and stream

  problem_spec spec;
  int batch, draft, heads, pools;
  int64_t slots; // per pool
  uint16_t* q = nullptr;
  uint16_t* kv = nullptr; // [pools, slots, 576]
  int32_t* kv_indptr = nullptr;
  int64_t* kv_indices = nullptr;
  int64_t* qo_indptr = nullptr;
  int64_t* out_cache_loc = nullptr;
  uint8_t* mask = nullptr;
  int64_t* mask_indptr = nullptr;
  uint16_t* out = nullptr;
  float* lse = nullptr;
  void* workspace = nullptr;
  int64_t workspace_bytes = 0;
  int64_t prefix_capacity, mask_capacity;

  void set_workspace(int64_t bytes);
};

// Ends the program with a message if a call failed.
void require(cudaError_t error, const char* what);

// Double-precision result of one row after the other, by its own kernel: out fp64 [tokens*heads, 512], lse fp64.
// Host vectors; the device is synchronised.
void oracle(const verify_mla_params& params, std::vector<double>& out, std::vector<double>& lse);

// How far problem.out and problem.lse are from what oracle() gave.
struct difference {
  double rel_l2 = 0; // worst request
  double max_abs = 0, max_ref = 0, lse = 0;
  bool bad = false; // NaN, or an infinity on one side only
};
difference compare(const device_problem& problem, const std::vector<double>& out, const std::vector<double>& lse);

// The kernels of this part on the host, for the simulated driver (host_registration.h has those of the library).
void use_host_problem_kernels();
void use_host_oracle();

} // namespace verify_mla
