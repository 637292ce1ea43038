// FlashInfer's MLA kernel as an outside comparator, over the problems of verify_bench and timed as they are: a CUDA
// graph of steps over rotating pools, medians. It is the mma.sync form ("fa2"), which reads pages of one token, as ours
// does; slots are int32 there, its plan is made on the host, once, outside the timed part, and it knows a causal mask
// and no tree.
//
// Not part of the build: FlashInfer's headers (Apache 2.0) come with its wheel.
//   unzip flashinfer_python-0.7.4-*.whl 'flashinfer/data/include/*' 'flashinfer/data/cccl/*' -d fi;
//   D=fi/flashinfer/data nvcc -std=c++20 -O3 --expt-relaxed-constexpr -gencode arch=compute_90a,code=sm_90a -I
//   $D/cccl/libcudacxx/include
//        -I $D/cccl/cub -I $D/cccl/thrust -I $D/include -I kernels -I kernels/bench kernels/baselines/flashinfer_mla.cu
//        libverify_mla_problem.a libverify_mla_static.a libverify_mla_host.a -o flashinfer_mla
#include "config.h"
#include "problem.h"

#include <flashinfer/attention/mla.cuh>
#include <flashinfer/attention/mla_params.cuh>
#include <flashinfer/attention/scheduler.cuh>
#include <flashinfer/fastdiv.cuh>

#include <algorithm>
#include <cstdio>

using namespace verify_mla;

namespace {

using params_type = flashinfer::MLAParams<__nv_bfloat16, __nv_bfloat16, __nv_bfloat16, int32_t>;

template <class T>
std::vector<T> read(const T* from, size_t n) {
  std::vector<T> v(n);
  require(cudaMemcpy(v.data(), from, n * sizeof(T), cudaMemcpyDeviceToHost), "read");
  return v;
}

template <class T>
T* device_memory(size_t n) {
  void* p = nullptr;
  require(cudaMalloc(&p, n * sizeof(T)), "cudaMalloc");
  return static_cast<T*>(p);
}

// Slots of prefix and draft tokens together, and the plan of FlashInfer for a problem.
struct planned {
  flashinfer::MLAPlanInfo plan;
  int32_t* indices;
  char *floats, *ints;

  explicit planned(const device_problem& p) {
    const auto batch = static_cast<size_t>(p.batch);
    const auto starts = read(p.kv_indptr, batch + 1);
    const auto prefix = read(p.kv_indices, static_cast<size_t>(starts.back()));
    const auto drafts = read(p.out_cache_loc, batch * static_cast<size_t>(p.draft));
    std::vector<int32_t> slots, q_starts = {0}, kv_starts = {0}, lengths;
    for (int b = 0; b < p.batch; ++b) {
      for (int j = starts[b]; j < starts[b + 1]; ++j) slots.push_back(static_cast<int32_t>(prefix[j]));
      for (int t = 0; t < p.draft; ++t) slots.push_back(static_cast<int32_t>(drafts[b * p.draft + t]));
      q_starts.push_back((b + 1) * p.draft);
      lengths.push_back(starts[b + 1] - starts[b] + p.draft);
      kv_starts.push_back(static_cast<int32_t>(slots.size()));
    }
    indices = device_memory<int32_t>(slots.size());
    require(cudaMemcpy(indices, slots.data(), slots.size() * 4, cudaMemcpyHostToDevice), "slots");
    const size_t float_bytes = size_t{512} << 20, int_bytes = size_t{64} << 20;
    floats = device_memory<char>(float_bytes);
    ints = device_memory<char>(int_bytes);
    void* staging = nullptr;
    require(cudaMallocHost(&staging, int_bytes), "cudaMallocHost");
    size_t staged = 0;
    require(flashinfer::MLAPlan(floats, float_bytes, ints, staging, int_bytes, plan, staged, q_starts.data(),
                                kv_starts.data(), lengths.data(), static_cast<uint32_t>(p.batch),
                                static_cast<uint32_t>(p.heads), VALUE_DIM, true, nullptr),
            "plan");
    // The plan lies in the staging buffer: copying it is the caller's business (batch_mla_plan.cu of the wheel).
    require(cudaMemcpy(ints, staging, staged, cudaMemcpyHostToDevice), "plan");
    cudaFreeHost(staging);
  }
  ~planned() {
    cudaFree(indices);
    cudaFree(floats);
    cudaFree(ints);
  }
};

params_type params_of(const device_problem& p, const planned& plan, int pool) {
  const auto at = [&](int64_t offset) {
    return flashinfer::GetPtrFromBaseOffset<int32_t>(static_cast<void*>(plan.ints), offset);
  };
  auto* q = reinterpret_cast<__nv_bfloat16*>(p.q);
  auto* kv = reinterpret_cast<__nv_bfloat16*>(p.kv + int64_t{pool} * p.slots * HEAD_DIM);
  params_type a = {};
  a.q_nope = q;
  a.q_pe = q + VALUE_DIM;
  a.ckv = kv;
  a.kpe = kv + VALUE_DIM;
  a.partial_o =
      flashinfer::GetPtrFromBaseOffset<__nv_bfloat16>(static_cast<void*>(plan.floats), plan.plan.partial_o_offset);
  a.partial_lse =
      flashinfer::GetPtrFromBaseOffset<float>(static_cast<void*>(plan.floats), plan.plan.partial_lse_offset);
  a.final_o = reinterpret_cast<__nv_bfloat16*>(p.out);
  a.final_lse = p.lse;
  a.q_indptr = at(plan.plan.q_indptr_offset);
  a.kv_indptr = at(plan.plan.kv_indptr_offset);
  a.partial_indptr = at(plan.plan.partial_indptr_offset);
  a.merge_packed_offset_start = at(plan.plan.merge_packed_offset_start_offset);
  a.merge_packed_offset_end = at(plan.plan.merge_packed_offset_end_offset);
  a.merge_partial_packed_offset_start = at(plan.plan.merge_partial_packed_offset_start_offset);
  a.merge_partial_packed_offset_end = at(plan.plan.merge_partial_packed_offset_end_offset);
  a.merge_partial_stride = at(plan.plan.merge_partial_stride_offset);
  a.kv_indices = plan.indices;
  a.q_len = at(plan.plan.q_len_offset);
  a.kv_len = at(plan.plan.kv_len_offset);
  a.q_start = at(plan.plan.q_start_offset);
  a.kv_start = at(plan.plan.kv_start_offset);
  a.kv_end = at(plan.plan.kv_end_offset);
  a.work_indptr = at(plan.plan.work_indptr_offset);
  a.block_size = flashinfer::uint_fastdiv(1u);
  a.num_heads = flashinfer::uint_fastdiv(static_cast<uint32_t>(p.heads));
  a.q_nope_stride_n = a.q_pe_stride_n = static_cast<uint32_t>(p.heads) * HEAD_DIM;
  a.q_nope_stride_h = a.q_pe_stride_h = HEAD_DIM;
  a.ckv_stride_page = a.ckv_stride_n = a.kpe_stride_page = a.kpe_stride_n = HEAD_DIM;
  a.o_stride_n = static_cast<uint32_t>(p.heads) * VALUE_DIM;
  a.o_stride_h = VALUE_DIM;
  a.sm_scale = p.spec.scale;
  a.ckv_scale = a.kpe_scale = 1.0f;
  a.return_lse_base_on_e = true;
  return a;
}

void step(const params_type& a, const planned& plan, cudaStream_t stream) {
  require(flashinfer::mla::BatchMLAPagedAttention<flashinfer::MaskMode::kCausal, VALUE_DIM, HEAD_DIM - VALUE_DIM>(
              a, static_cast<uint32_t>(plan.plan.num_blks_x), static_cast<uint32_t>(plan.plan.num_blks_y), stream),
          "run");
}

double time_graph(const device_problem& p, const planned& plan) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaEvent_t begin, end;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "begin capture");
  for (int pool = 0; pool < p.pools; ++pool) step(params_of(p, plan, pool), plan, stream);
  require(cudaStreamEndCapture(stream, &graph), "end capture");
  require(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
  require(cudaEventCreate(&begin), "event");
  require(cudaEventCreate(&end), "event");
  std::vector<float> times;
  for (int i = 0; i < 22; ++i) {
    float ms = 0;
    require(cudaEventRecord(begin, stream), "record");
    require(cudaGraphLaunch(exec, stream), "replay");
    require(cudaEventRecord(end, stream), "record");
    require(cudaEventSynchronize(end), "replay");
    require(cudaEventElapsedTime(&ms, begin, end), "elapsed");
    if (i >= 2) times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  return 1e3 * static_cast<double>(times[times.size() / 2]) / p.pools;
}

} // namespace

int main() {
  int failures = 0;
  std::printf("rows B ctx_req flashinfer-fa2 us, rel-l2 against float64\n");
  for (int rows : {8, 32, 64, 72, 128})
    for (int batch : {1, 8})
      for (int context : {1024, 4096, 16384, 65536, 200000}) {
        problem_spec spec{std::vector<int>(static_cast<size_t>(batch), context), rows / 8, 8, mask_kind::causal};
        const int64_t bytes = total_tokens(spec) * 1160;
        const int pools = static_cast<int>(std::clamp<int64_t>((int64_t{320} << 20) / bytes + 1, 4, 256));
        device_problem p(batch, int64_t{batch} * context, rows / 8, 8, pools);
        p.fill(spec, true);
        const planned plan(p);
        step(params_of(p, plan, 0), plan, nullptr);
        require(cudaDeviceSynchronize(), "run");
        double error = -1; // not compared
        if (context <= 65536 || batch == 1) {
          std::vector<double> out, lse;
          oracle(p.params(0), out, lse);
          const difference d = compare(p, out, lse);
          error = d.rel_l2;
          failures += d.bad || !(error <= 1e-2);
        }
        std::printf("%4d %d %7d %9.2f  %.1e\n", rows, batch, context, time_graph(p, plan), error);
        std::fflush(stdout);
      }
  std::printf("%d failures\n", failures);
  return failures ? 1 : 0;
}
