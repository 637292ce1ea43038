// A program that keeps the simulated driver busy and knows how many of its calls are recorded.
//   load flood CALLS THREADS     CALLS waits and queries, as fast as they go; prints how many calls it made in all
//   load serve PAUSE             replays a graph until SIGINT: copy in, launch, wait; PAUSE microseconds between steps
#include <cuda.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/sim/client.h"

namespace {

std::atomic<bool> stop{false};
std::atomic<long> failures{0};
void on_signal(int) { stop = true; }

void check(CUresult result) { failures += result != CUDA_SUCCESS ? 1 : 0; }

int flood(long calls, int threads) {
  const client::device device;
  if (!device.good) return 3;
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t) {
    pool.emplace_back([&, mine = calls / threads] {
      // More than a chunk has records, so that each call is written whole: a call that repeats is a sixth of that.
      std::vector<CUevent> events(300);
      check(cuCtxSetCurrent(device.context)); // recorded: it changes what is current on this thread
      for (CUevent& event : events) check(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
      for (long i = 0; i < mine; ++i) {
        const CUevent event = events[static_cast<std::size_t>(i) % events.size()];
        check(i % 2 == 0 ? cuEventQuery(event) : cuEventSynchronize(event));
      }
      for (const CUevent event : events) check(cuEventDestroy(event));
    });
  }
  for (auto& t : pool) t.join();
  std::printf("%ld\n", calls / threads * threads);
  return failures == 0 ? 0 : 1;
}

int serve(long pause_us) {
  std::signal(SIGINT, on_signal);
  const client::device device;
  if (!device.good) return 3;
  CUdeviceptr data = 0;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  check(cuMemAlloc(&data, 4096));
  check(cuStreamBeginCapture(device.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  check(device.launch(device.stream, data));
  check(cuStreamEndCapture(device.stream, &graph));
  check(cuGraphInstantiate(&exec, graph, 0));
  std::puts("serving");
  std::fflush(stdout);
  char input[256] = {};
  long steps = 0;
  for (; !stop; ++steps) {
    check(cuMemcpyHtoDAsync(data, input, sizeof(input), device.stream));
    check(cuGraphLaunch(exec, device.stream));
    check(cuStreamSynchronize(device.stream));
    if (pause_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
  }
  std::printf("%ld\n", steps);
  return failures == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  const auto is = [&](const char* name) { return argc > 2 && std::strcmp(argv[1], name) == 0; };
  if (is("flood") && argc == 4) return flood(std::atol(argv[2]), std::atoi(argv[3]));
  if (is("serve")) return serve(std::atol(argv[2]));
  return 2;
}
