// What one driver call costs with whatever is preloaded: nanoseconds per call as one JSON line on stdout.
//   call_cost CASE CALLS THREADS [PAUSE]      CASE: filtered | launch | recorded | varied
// Processor time of the calling thread, page faults included, so that a busy machine does not count. PAUSE:
// microseconds between two batches of 1,000 calls, so that a reader of the trace can keep up. filtered: a call the shim
// never records; launch: a kernel launch outside any capture; recorded: a query, always recorded; varied: the same of a
// thousand different events, so that no record can refer to an earlier one. Run it against the fake driver, with and
// without the shim, interleaved: see tests/bench/README.md.
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>
#include <vector>

namespace {

double processor_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

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
  } else if (std::strcmp(which, "varied") == 0) {
    for (std::uintptr_t i = 1; i <= batch; ++i) {
      cuEventQuery(reinterpret_cast<CUevent>(i * 64));
    }
  } else {
    for (int i = 0; i < batch; ++i) {
      cuEventQuery(nullptr);
    }
  }
}

void run(const char* which, long calls, long pause_us, std::vector<double>& ns) {
  for (long done = 0; done < calls; done += batch) {
    const double from = processor_ns();
    one_batch(which);
    ns.push_back((processor_ns() - from) / batch);
    if (pause_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
  }
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::fprintf(stderr, "usage: %s filtered|launch|recorded|varied CALLS THREADS [PAUSE]\n", argv[0]);
    return 2;
  }
  const long calls = std::atol(argv[2]);
  const int threads = std::atoi(argv[3]);
  std::vector<std::vector<double>> per_thread(static_cast<std::size_t>(threads));
  std::vector<std::thread> pool;
  one_batch(argv[1]);
  const long pause_us = argc == 5 ? std::atol(argv[4]) : 0;
  for (auto& samples : per_thread) {
    pool.emplace_back([&samples, calls, pause_us, which = argv[1]] { run(which, calls, pause_us, samples); });
  }
  for (auto& t : pool) {
    t.join();
  }
  std::vector<double> all;
  for (const auto& samples : per_thread) {
    all.insert(all.end(), samples.begin(), samples.end());
  }
  double total = 0;
  for (const double ns : all) total += ns;
  std::sort(all.begin(), all.end());
  std::printf(
      "{\"case\": \"%s\", \"threads\": %d, \"calls\": %zu, \"mean_ns\": %.2f, \"p50_ns\": %.2f, \"p99_ns\": %.2f}\n",
      argv[1], threads, all.size() * batch, total / static_cast<double>(all.size()), all[all.size() / 2],
      all[all.size() * 99 / 100]);
}
