// Times the verify kernel over a sweep and prints a table and, with --json, a file. See usage() for the options.
#include "balanced_demo.h"
#include "bench_options.h"
#include "bench_report.h"
#include "ceilings.h"
#include "eager_demo.h"
#include "host_mode.h"
#include "problem.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

using namespace verify_mla;

namespace {

verify_mla_device device;

double now_us() {
  using namespace std::chrono;
  return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

bool launch(const verify_mla_params& p) {
  char error[256];
  const int status = verify_mla_launch(&device, &p, error, sizeof error);
  if (status != VERIFY_MLA_OK) std::fprintf(stderr, "verify_bench: %s\n", error);
  return status == VERIFY_MLA_OK;
}

// Microseconds per step: `pools` steps, each on its own KV, timed together often enough for a median.
double time_steps(const std::vector<verify_mla_params>& steps, cudaStream_t stream, bool graph, double budget_ms) {
  cudaGraph_t captured = nullptr;
  cudaGraphExec_t exec = nullptr;
  if (graph) {
    require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
    for (const verify_mla_params& p : steps)
      if (!launch(p)) return -1;
    require(cudaStreamEndCapture(stream, &captured), "end capture");
    require(cudaGraphInstantiate(&exec, captured, 0), "instantiate");
  }
  cudaEvent_t begin, end;
  require(cudaEventCreate(&begin), "event");
  require(cudaEventCreate(&end), "event");
  std::vector<double> times;
  const double started = now_us();
  for (int i = 0; i < 60 && (i < 7 || now_us() - started < budget_ms * 1e3); ++i) {
    require(cudaEventRecord(begin, stream), "record");
    if (graph)
      require(cudaGraphLaunch(exec, stream), "replay");
    else
      for (const verify_mla_params& p : steps)
        if (!launch(p)) return -1;
    require(cudaEventRecord(end, stream), "record");
    require(cudaEventSynchronize(end), "replay");
    float ms = 0;
    require(cudaEventElapsedTime(&ms, begin, end), "elapsed");
    if (i >= 2) times.push_back(1e3 * static_cast<double>(ms) / static_cast<double>(steps.size()));
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  if (exec) cudaGraphExecDestroy(exec);
  if (captured) cudaGraphDestroy(captured);
  return median(times);
}

struct cell {
  std::string name; // context, or "ragged"
  std::vector<int> prefix;
  int rows, draft, heads;
};

void run_cell(const cell& c, const bench_options& options, const std::vector<ceiling>& ceilings,
              std::vector<measurement>& out) {
  const int batch = static_cast<int>(c.prefix.size());
  problem_spec spec{c.prefix, c.draft, c.heads, mask_kind::causal};
  int64_t prefix_tokens = 0;
  for (int p : c.prefix) prefix_tokens += p;
  const int64_t tokens = total_tokens(spec);
  const int64_t bytes = tokens * 1160;
  // Several times the L2 in all, so that no step finds its KV there.
  const int pools = static_cast<int>(std::clamp<int64_t>(options.rotate_bytes / bytes + 1, 4, 256));
  device_problem problem(batch, prefix_tokens, c.draft, c.heads, pools);
  cudaStream_t stream;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  bool first = true;
  for (bool contiguous : options.slot_orders) {
    spec.contiguous = contiguous;
    problem.fill(spec, first);
    if (!first) require(cudaMemset(problem.kv, 0x11, static_cast<size_t>(problem.slots) * pools * 1152), "refill");
    first = false;
    for (const variant_option& v : options.variants)
      for (bool graph : options.modes) {
        verify_mla_params p = problem.params(0);
        p.variant = v.variant;
        p.flags = options.flags | v.flags;
        p.min_tiles = options.min_tiles;
        p.row_granules = options.granules;
        p.stream = stream;
        char error[256];
        int64_t workspace = 0;
        if (verify_mla_workspace_bytes(&device, &p, &workspace, error, sizeof error) != VERIFY_MLA_OK) {
          std::fprintf(stderr, "verify_bench: %s\n", error);
          continue;
        }
        problem.set_workspace(workspace);
        std::vector<verify_mla_params> steps;
        for (int pool = 0; pool < pools; ++pool) {
          steps.push_back(p);
          steps.back().kv = problem.params(pool).kv;
          steps.back().workspace = {problem.workspace, workspace, VERIFY_MLA_U8, 0};
        }
        const double us = time_steps(steps, stream, graph, options.budget_ms);
        if (us < 0) continue;
        measurement m{v.name,
                      graph ? "graph" : "launch",
                      contiguous ? "contiguous" : "random",
                      c.name,
                      batch,
                      c.rows,
                      c.draft,
                      c.heads,
                      pools,
                      us,
                      static_cast<double>(workspace)};
        m.complete(tokens, ceilings);
        print_row(m);
        out.push_back(m);
      }
  }
  cudaStreamDestroy(stream);
}

} // namespace

int main(int argc, char** argv) {
  bench_options options;
  if (!parse_options(argc, argv, options)) return 2;
  const bool on_host = run_on_host();
  char text[512];
  if (verify_mla_open(0, &device, text, sizeof text) != VERIFY_MLA_OK) {
    std::fprintf(stderr, "verify_bench: %s\n", text);
    return 5;
  }
  if (options.eager_in_graph) return run_eager_demo(device);
  if (options.demo) return run_balanced_demo(device, options.variants[0]);
  if (on_host) {
    std::fprintf(stderr,
                 "verify_bench: no GPU, so nothing can be timed; --demo and --variant eager --mode graph work\n");
    return 2;
  }
  std::vector<ceiling> ceilings = measure_ceilings(options.gathers);
  for (const ceiling& c : ceilings) std::printf("ceiling  %-52s %8.0f %s\n", c.name.c_str(), c.value, c.unit.c_str());
  std::vector<measurement> results;
  print_header();
  for (int rows : options.rows) {
    const int heads = rows > 512 ? 64 : 8;
    for (int batch : options.batches)
      for (int context : options.contexts)
        run_cell(
            {std::to_string(context), std::vector<int>(static_cast<size_t>(batch), context), rows, rows / heads, heads},
            options, ceilings, results);
    if (options.ragged)
      run_cell({"ragged", {0, 1, 33, 1000, 4097, 16384, 65536, 200000}, rows, rows / heads, heads}, options, ceilings,
               results);
  }
  if (!options.json.empty() && !write_json(options.json, device, ceilings, results)) return 5;
  return 0;
}
