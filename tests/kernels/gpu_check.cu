// Correctness on a real GPU: every variant against the double-precision oracle, captures replayed with other content,
// and bitwise repeatability. Exit code 0: all passed; 1: a failure; 77: no usable GPU (ctest shows it as skipped).
//   gpu_check [--quick]      --quick: small sizes only, for compute-sanitizer
#include "bench/host_mode.h"
#include "bench/problem.h"
#include "config.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>

using namespace verify_mla;

namespace {

int failures = 0;
int checks = 0;
verify_mla_device device;

void report(const std::string& name, const difference& d) {
  ++checks;
  const bool ok = !d.bad && d.rel_l2 <= 5e-3 && d.max_abs <= 1e-2 * std::max(d.max_ref, 1e-30) + 1e-30 && d.lse <= 1e-3;
  if (!ok) ++failures;
  std::printf("%-5s %-78s rel-l2 %.2e  max %.2e of %.2e  lse %.1e%s\n", ok ? "ok" : "FAIL", name.c_str(), d.rel_l2,
              d.max_abs, d.max_ref, d.lse, d.bad ? "  NaN or infinity" : "");
}

void expect(const std::string& name, bool ok) {
  ++checks;
  if (!ok) ++failures;
  std::printf("%-5s %s\n", ok ? "ok" : "FAIL", name.c_str());
}

struct way {
  const char* name;
  int variant;
  uint32_t flags;
  int granules, min_tiles;
};

const way WAYS[] = {
    {"balanced", VERIFY_MLA_BALANCED, 0, 0, 0},
    {"balanced, prefix fetched early", VERIFY_MLA_BALANCED, VERIFY_MLA_OLD_PREFIX, 0, 0},
    {"balanced fp32 partials, finest", VERIFY_MLA_BALANCED, VERIFY_MLA_PARTIAL_F32, 0, 1},
    {"balanced narrow tiles", VERIFY_MLA_BALANCED, VERIFY_MLA_NARROW, 0, 0},
    {"one partition", VERIFY_MLA_BALANCED, VERIFY_MLA_NO_PDL, 0, 1 << 28},
    {"fixed split 16", VERIFY_MLA_FIXED_SPLIT_16, 0, 0, 0},
    {"fixed split 64", VERIFY_MLA_FIXED_SPLIT_64, 0, 0, 0},
    {"groups of 64 rows", VERIFY_MLA_BALANCED, 0, 8, 0},
    {"groups of 48 rows", VERIFY_MLA_BALANCED, 0, 6, 0},
    {"groups of 40 rows", VERIFY_MLA_BALANCED, 0, 5, 0},
};

verify_mla_params prepared(device_problem& problem, const way& w) {
  verify_mla_params p = problem.params(0);
  p.variant = w.variant;
  p.flags = w.flags;
  p.row_granules = w.granules;
  p.min_tiles = w.min_tiles;
  int64_t bytes = 0;
  char error[256];
  if (verify_mla_workspace_bytes(&device, &p, &bytes, error, sizeof error) != VERIFY_MLA_OK) {
    std::printf("FAIL  workspace: %s\n", error);
    ++failures;
  }
  problem.set_workspace(bytes);
  problem.poison();
  p.workspace = {problem.workspace, bytes, VERIFY_MLA_U8, 0};
  return p;
}

void run(const verify_mla_params& p) {
  char error[256];
  if (verify_mla_launch(&device, &p, error, sizeof error) != VERIFY_MLA_OK) {
    std::printf("FAIL  launch: %s\n", error);
    ++failures;
  }
}

int64_t sum(const std::vector<int>& v) {
  int64_t n = 0;
  for (int x : v) n += x;
  return n;
}

const char* MASK_NAMES[] = {"causal", "full", "chain", "tree", "star", "self", "nothing"};

void check_case(const problem_spec& spec, bool all_ways) {
  const int batch = static_cast<int>(spec.prefix.size());
  device_problem problem(batch, sum(spec.prefix), spec.draft, spec.heads, 1);
  problem.fill(spec, true);
  std::vector<double> out, lse;
  oracle(problem.params(0), out, lse);
  std::string name = "B=" + std::to_string(batch) + " L=" + std::to_string(spec.prefix[0]) +
                     (batch > 1 ? ".." + std::to_string(spec.prefix.back()) : "") + " T=" + std::to_string(spec.draft) +
                     " H=" + std::to_string(spec.heads) + " " + MASK_NAMES[static_cast<int>(spec.mask)] +
                     (spec.cap > 0 ? " cap" : "") +
                     (spec.spread != 1.0f ? " spread " + std::to_string(spec.spread) : "");
  for (const way& w : WAYS) {
    const verify_mla_params p = prepared(problem, w);
    run(p);
    require(cudaDeviceSynchronize(), "run");
    report(name + ": " + w.name, compare(problem, out, lse));
    if (!all_ways && &w == &WAYS[2]) break;
  }
}

// For compute-sanitizer, which slows a kernel down by orders of magnitude: two tiles and a border between requests.
void check_smallest() { check_case({{70, 33}, 8, 8, mask_kind::tree}, true); }

void check_cases(bool quick) {
  std::mt19937 random(7);
  const mask_kind masks[] = {mask_kind::causal, mask_kind::full,    mask_kind::chain,    mask_kind::tree,
                             mask_kind::star,   mask_kind::nothing, mask_kind::self_only};
  for (size_t i = 0; i < 7; ++i) { // every mask, row count of every granule
    const int draft[] = {1, 4, 8, 9, 16, 7, 36};
    problem_spec s{{static_cast<int>(i == 5 ? 0 : 130 * i + 1), 33}, draft[i], 8, masks[i]};
    s.cap = i % 2 ? 30.0f : 0.0f;
    s.seed = i + 1;
    check_case(s, true);
  }
  check_case({{0, 1, 2, 31, 32, 33, 63, 64, 65, 127}, 9, 8, mask_kind::tree}, true);
  check_case({{300}, 4, 16, mask_kind::nothing}, true);
  if (quick) return;
  const int lengths[] = {0, 1, 2, 31, 32, 33, 63, 64, 65, 127, 1000, 1024, 4095, 4097, 16384};
  const int drafts[] = {1, 2, 4, 7, 8, 9, 16, 33, 36, 64};
  const int heads[] = {8, 16, 32, 64, 128};
  for (int i = 0; i < 40; ++i) {
    problem_spec s{{lengths[i % 15]}, drafts[random() % 10], heads[random() % 5], masks[random() % 5]};
    s.cap = random() % 4 ? 0.0f : 30.0f;
    s.seed = 100 + static_cast<uint64_t>(i);
    check_case(s, i % 5 == 0);
  }
  const std::vector<int> ragged = {0, 1, 33, 1000, 4097, 16384, 65536, 200000};
  check_case({ragged, 4, 8, mask_kind::tree}, true);
  check_case({ragged, 9, 8, mask_kind::causal}, true);
  check_case({{200000}, 8, 8, mask_kind::chain}, true);
  std::vector<int> one_long(64, 5);
  one_long[17] = 40000;
  check_case({one_long, 4, 8, mask_kind::tree}, true);
  check_case({std::vector<int>(64, 1), 4, 8, mask_kind::causal}, true); // padding requests only
  problem_spec sharp{{4097, 1000}, 9, 8, mask_kind::tree};
  sharp.spread = 40.0f; // softmax is one-hot
  check_case(sharp, true);
  sharp.spread = 0.0f; // flat
  check_case(sharp, true);
}

void check_padding() {
  // Slots 0 for every padding request, shared by all of them, as engines do.
  problem_spec s{{500, 1, 1, 1}, 4, 8, mask_kind::tree};
  device_problem problem(4, 503, 4, 8, 1);
  problem.fill(s, true);
  std::vector<int64_t> zeros(12, 0);
  require(cudaMemcpy(problem.out_cache_loc + 4, zeros.data(), 96, cudaMemcpyHostToDevice), "padding");
  require(cudaMemcpy(problem.kv_indices + 500, zeros.data(), 24, cudaMemcpyHostToDevice), "padding");
  require(cudaMemset(problem.kv, 0, HEAD_DIM * 2), "padding");
  // Slot 0 may have belonged to request 0: the oracle reads the same memory, so both see zeros there.
  std::vector<double> out, lse;
  oracle(problem.params(0), out, lse);
  run(prepared(problem, WAYS[0]));
  require(cudaDeviceSynchronize(), "run");
  report("padding requests in slot 0", compare(problem, out, lse));
}

void check_replay(const way& w, bool quick) {
  const int batch = 8, draft = 9, heads = 8;
  const int64_t room = quick ? 4000 : 300000;
  device_problem problem(batch, room, draft, heads, 1);
  problem_spec s{std::vector<int>(8, 1), draft, heads, mask_kind::tree};
  problem.fill(s, true);
  verify_mla_params p = prepared(problem, w);
  cudaStream_t stream;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  p.stream = stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
  run(p);
  require(cudaStreamEndCapture(stream, &graph), "end capture");
  require(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
  const int top = quick ? 900 : 100000;
  const std::vector<std::vector<int>> steps = {{1, 1, 1, 1, 1, 1, 1, 1},
                                               {top, 0, 33, 1, 1, 1, 1, 1},
                                               {top, 500, 700, 64, 0, 31, 900, 1},
                                               {3, 2, 1, 1, 1, 1, 1, 1}};
  uint64_t seed = 50;
  for (const std::vector<int>& prefix : steps) { // growing and shrinking, rows moved, stale tails left behind
    s.prefix = prefix;
    s.seed = ++seed;
    problem.fill(s, true);
    std::vector<double> out, lse;
    oracle(problem.params(0), out, lse);
    require(cudaGraphLaunch(exec, stream), "replay");
    require(cudaStreamSynchronize(stream), "replay");
    report("replay L=" + std::to_string(prefix[0]) + "," + std::to_string(prefix[1]) + ",..: " + w.name,
           compare(problem, out, lse));
  }
  s.prefix = steps[2];
  problem.fill(s, true);
  const size_t n = static_cast<size_t>(batch) * draft * heads * VALUE_DIM;
  std::vector<uint16_t> first(n), again(n);
  int different = 0;
  for (int i = 0; i < (quick ? 5 : 1000); ++i) {
    problem.poison();
    require(cudaDeviceSynchronize(), "poison");
    require(cudaGraphLaunch(exec, stream), "replay");
    require(cudaStreamSynchronize(stream), "replay");
    require(cudaMemcpy(again.data(), problem.out, n * 2, cudaMemcpyDeviceToHost), "read");
    if (i == 0) first = again;
    different += std::memcmp(first.data(), again.data(), n * 2) != 0;
  }
  expect(std::string(quick ? "5" : "1000") + " replays on equal inputs are bitwise equal: " + w.name, different == 0);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

// A request as a batch of one gives the bits that it gave among others. The index pointers hold absolute positions.
void check_invariance(const way& w, bool quick) {
  problem_spec s{{quick ? 900 : 70000, 33, 4097}, 9, 8, mask_kind::tree};
  device_problem problem(3, sum(s.prefix), s.draft, s.heads, 1);
  problem.fill(s, true);
  const size_t n = static_cast<size_t>(s.draft) * s.heads * VALUE_DIM;
  std::vector<uint16_t> together(3 * n), alone(3 * n);
  const verify_mla_params all = prepared(problem, w);
  run(all);
  require(cudaMemcpy(together.data(), problem.out, together.size() * 2, cudaMemcpyDeviceToHost), "read");
  bool same = true;
  for (int b = 0; b < 3; ++b) {
    problem.poison();
    verify_mla_params p = all;
    p.batch = 1;
    p.kv_indptr.data = problem.kv_indptr + b;
    p.qo_indptr.data = problem.qo_indptr + b;
    p.mask_indptr.data = problem.mask_indptr + b;
    run(p);
    require(cudaMemcpy(alone.data(), problem.out, alone.size() * 2, cudaMemcpyDeviceToHost), "read");
    same &= std::memcmp(alone.data() + b * n, together.data() + b * n, n * 2) == 0;
  }
  expect(std::string("a request alone gives the bits that it gave in a batch: ") + w.name, same);
}

void check_eager() {
  problem_spec s{{700, 33}, 9, 8, mask_kind::causal};
  device_problem problem(2, 733, 9, 8, 1);
  problem.fill(s, true);
  std::vector<double> out, lse;
  oracle(problem.params(0), out, lse);
  verify_mla_params p = problem.params(0);
  p.variant = VERIFY_MLA_EAGER;
  run(p);
  require(cudaDeviceSynchronize(), "run");
  report("eager", compare(problem, out, lse));
}

} // namespace

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  run_on_host();
  char text[512];
  if (verify_mla_open(0, &device, text, sizeof text) != VERIFY_MLA_OK) {
    std::printf("skipped, nothing was checked: %s\n", text);
    return 77;
  }
  if (argc > 1 && std::strcmp(argv[1], "--smallest") == 0) {
    check_smallest();
    check_eager();
    std::printf("%d checks, %d failures\n", checks, failures);
    return failures ? 1 : 0;
  }
  check_cases(quick);
  check_padding();
  check_eager();
  check_invariance(WAYS[5], quick);
  check_invariance(WAYS[6], quick);
  check_replay(WAYS[0], quick);
  check_replay(WAYS[1], quick);
  check_replay(WAYS[6], quick);
  check_replay(WAYS[3], quick);
  std::printf("%d checks, %d failures\n", checks, failures);
  return failures ? 1 : 0;
}
