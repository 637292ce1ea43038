#include "balanced_demo.h"

#include "problem.h"

#include <cstdio>

namespace verify_mla {
namespace {

constexpr double TOLERANCE = 5e-3; // of the relative L2 difference, as in gpu_check

void launch_or_exit(const verify_mla_device& device, const verify_mla_params& params) {
  char error[256];
  if (verify_mla_launch(&device, &params, error, sizeof error) == VERIFY_MLA_OK) return;
  std::fprintf(stderr, "verify_bench: %s\n", error);
  std::exit(5);
}

} // namespace

int run_balanced_demo(const verify_mla_device& device, const variant_option& variant) {
  const int draft = 4, heads = 8;
  const std::vector<std::vector<int>> contents = {{1, 1}, {700, 300}, {1024, 33}, {3, 200}};
  device_problem problem(2, 1100, draft, heads, 1);
  problem_spec spec{contents[0], draft, heads, mask_kind::tree};
  problem.fill(spec, true);
  verify_mla_params params = problem.params(0);
  params.variant = variant.variant;
  params.flags = variant.flags;
  char error[256];
  int64_t bytes = 0;
  if (verify_mla_workspace_bytes(&device, &params, &bytes, error, sizeof error) != VERIFY_MLA_OK) {
    std::fprintf(stderr, "verify_bench: %s\n", error);
    return 5;
  }
  problem.set_workspace(bytes);
  params.workspace = {problem.workspace, bytes, VERIFY_MLA_U8, 0};
  cudaStream_t stream;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  params.stream = stream;

  launch_or_exit(device, params); // loads the kernels: a capture is no place for that
  require(cudaStreamSynchronize(stream), "warm-up");
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
  launch_or_exit(device, params);
  require(cudaStreamEndCapture(stream, &graph), "end capture");
  require(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
  std::printf("captured: %s, workspace %.1f MB\n", variant.name.c_str(), static_cast<double>(bytes) * 1e-6);

  bool right = true;
  for (const std::vector<int>& prefix : contents) {
    spec.prefix = prefix;
    ++spec.seed;
    problem.fill(spec, true); // in place: other lengths, slots, masks and queries, poisoned output and workspace
    std::vector<double> out, lse;
    oracle(problem.params(0), out, lse);
    require(cudaGraphLaunch(exec, stream), "replay");
    require(cudaStreamSynchronize(stream), "replay");
    const difference d = compare(problem, out, lse);
    const bool ok = !d.bad && d.rel_l2 <= TOLERANCE && d.lse <= 1e-3;
    right &= ok;
    std::printf("replay with %4d and %3d tokens: relative difference from the oracle %.1e%s\n", prefix[0], prefix[1],
                d.rel_l2, ok ? "" : "  WRONG");
  }
  require(cudaGraphExecDestroy(exec), "destroy");
  require(cudaGraphDestroy(graph), "destroy");
  require(cudaStreamDestroy(stream), "destroy");
  return right ? 0 : 1;
}

} // namespace verify_mla
