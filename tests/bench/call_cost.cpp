// What one driver call costs with whatever is preloaded: nanoseconds per call as one JSON line on stdout.
//   call_cost CASE CALLS THREADS      CASE: filtered | launch | recorded
// filtered: a call the shim never records; launch: a kernel launch outside any capture; recorded: a query, always
// recorded. Run it against the fake driver, with and without the shim, interleaved: see tests/bench/README.md.
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;
constexpr int batch = 1000; // calls between two readings of the clock

void one_batch(const char* which) {
  const auto function = reinterpret_cast<CUfunction>(0x1000);
  if (std::strcmp(which, "filtered") == 0) {
    int value = 0;
    for (int i = 0; i < batch; ++i) {
      cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
    }
  } else if (std::strcmp(which, "launch") == 0) {
    for (int i = 0; i < batch; ++i) {
      cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
    }
  } else {
    for (int i = 0; i < batch; ++i) {
      cuEventQuery(nullptr);
    }
  }
}

void run(const char* which, long calls, std::vector<double>& ns) {
  for (long done = 0; done < calls; done += batch) {
    const auto from = clock_type::now();
    one_batch(which);
    ns.push_back(std::chrono::duration<double, std::nano>(clock_type::now() - from).count() / batch);
  }
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s filtered|launch|recorded CALLS THREADS\n", argv[0]);
    return 2;
  }
  const long calls = std::atol(argv[2]);
  const int threads = std::atoi(argv[3]);
  std::vector<std::vector<double>> per_thread(static_cast<std::size_t>(threads));
  std::vector<std::thread> pool;
  one_batch(argv[1]);
  const auto from = clock_type::now();
  for (auto& samples : per_thread) {
    pool.emplace_back([&samples, calls, which = argv[1]] { run(which, calls, samples); });
  }
  for (auto& t : pool) {
    t.join();
  }
  const double total = std::chrono::duration<double, std::nano>(clock_type::now() - from).count();
  std::vector<double> all;
  for (const auto& samples : per_thread) {
    all.insert(all.end(), samples.begin(), samples.end());
  }
  std::sort(all.begin(), all.end());
  std::printf(
      "{\"case\": \"%s\", \"threads\": %d, \"calls\": %zu, \"mean_ns\": %.2f, \"p50_ns\": %.2f, \"p99_ns\": %.2f}\n",
      argv[1], threads, all.size() * batch, total / (static_cast<double>(all.size()) * batch), all[all.size() / 2],
      all[all.size() * 99 / 100]);
}
