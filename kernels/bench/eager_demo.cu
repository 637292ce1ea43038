#include "eager_demo.h"

#include "eager.h"
#include "problem.h"

#include <cstdio>

namespace verify_mla {
namespace {

// The int32 index buffers an eager caller hands over. Device memory, owned.
struct narrow_indices {
  int32_t* qo_indptr = nullptr;  // int32 [batch + 1]
  int32_t* kv_indices = nullptr; // int32 [kv_indices.elements]

  explicit narrow_indices(const verify_mla_params& p) {
    qo_indptr = copy(p.qo_indptr);
    kv_indices = copy(p.kv_indices);
  }
  ~narrow_indices() {
    cudaFree(qo_indptr);
    cudaFree(kv_indices);
  }
  static int32_t* copy(const verify_mla_buffer& from) {
    std::vector<int64_t> wide(static_cast<size_t>(from.elements));
    require(cudaMemcpy(wide.data(), from.data, wide.size() * 8, cudaMemcpyDeviceToHost), "read indices");
    const std::vector<int32_t> narrow(wide.begin(), wide.end());
    int32_t* p = nullptr;
    require(cudaMalloc(&p, narrow.size() * 4), "cudaMalloc");
    require(cudaMemcpy(p, narrow.data(), narrow.size() * 4, cudaMemcpyHostToDevice), "write indices");
    return p;
  }
};

enum step { READ_BACK, ALLOCATE, CONVERT, LAUNCH, RELEASE, STEPS };
const char* STEP_NAMES[] = {"read-back of lengths", "allocation per call", "conversion copies", "launches",
                            "release per call"};

result do_step(eager_call& call, int s) {
  switch (s) {
  case READ_BACK:
    return call.read_back();
  case ALLOCATE:
    return call.allocate();
  case CONVERT:
    return call.convert();
  case LAUNCH:
    return call.launch();
  default:
    return call.release();
  }
}

// Captures the steps in [from, to]; those before them run outside, those behind them not at all.
void try_capture(const verify_mla_device& device, const verify_mla_params& params, int from, int to, const char* what) {
  eager_call call(device, params);
  const auto stream = static_cast<cudaStream_t>(params.stream);
  result first;
  const auto outside = [&](int s) {
    if (const result r = do_step(call, s); !r) std::printf("  outside the capture: %s\n", r.message.c_str());
    if (s == READ_BACK) (void)call.choose();
  };
  for (int s = 0; s < from; ++s) outside(s);
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
  for (int s = from; s <= to; ++s) {
    const result r = do_step(call, s);
    if (!r && first) first = r;
    if (s == READ_BACK) (void)call.choose();
  }
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
  (void)cudaGetLastError();
  std::printf("%-24s %s; end of capture: %s\n", what, first ? "accepted" : first.message.c_str(),
              cudaGetErrorName(ended));
  if (graph) cudaGraphDestroy(graph);
  (void)call.release(); // a refused release did not release
  require(cudaDeviceSynchronize(), "after the capture");
}

} // namespace

int run_eager_demo(const verify_mla_device& device) {
  problem_spec spec{{1024, 300}, 4, 8, mask_kind::causal};
  device_problem problem(2, 1324, 4, 8, 1);
  problem.fill(spec, true);
  verify_mla_params params = problem.params(0);
  const narrow_indices narrow(params);
  params.variant = VERIFY_MLA_EAGER;
  params.qo_indptr = {narrow.qo_indptr, params.qo_indptr.elements, VERIFY_MLA_I32, 0};
  params.kv_indices = {narrow.kv_indices, params.kv_indices.elements, VERIFY_MLA_I32, 0};
  cudaStream_t stream;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  params.stream = stream;

  char error[256];
  const int status = verify_mla_launch(&device, &params, error, sizeof error);
  std::printf("%-24s %s\n", "launched eagerly", status == VERIFY_MLA_OK ? "runs" : error);
  require(cudaStreamSynchronize(stream), "eager launch");

  try_capture(device, params, 0, STEPS - 1, "whole path in a capture");
  for (int s = 0; s < STEPS; ++s) try_capture(device, params, s, s, STEP_NAMES[s]);
  cudaStreamDestroy(stream);
  return 0;
}

} // namespace verify_mla
