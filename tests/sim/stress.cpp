// Sixty-four threads use the driver at once: captures of their own, launches, memory, events, modules, host functions.
// Every result is checked; under the thread sanitizer the run is also free of data races.
#include "client.h"
#include "include/capturesan.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr int thread_count = 64, rounds = 20, launches = 5;
std::atomic<int> failures{0};
std::atomic<int> host_runs{0}, kernel_runs{0};

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  if (failures.fetch_add(1) < 10) std::printf("%s -> %d\n", what, result);
}
#define CHECK(call) check((call), #call)

void one_round(const client::device& shared, CUstream stream) {
  CUdeviceptr data = 0;
  CUevent event = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUmodule module = nullptr;
  CHECK(cuMemAlloc(&data, 4096));
  CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  CHECK(cuModuleLoadData(&module, client::kernel_text));
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK(cuMemsetD32Async(data, 5, 16, stream));
  CHECK(shared.launch(stream, data));
  CHECK(cuLaunchHostFunc(
      stream, [](void*) { host_runs.fetch_add(1); }, nullptr));
  CHECK(cuStreamEndCapture(stream, &graph));
  CHECK(cuGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < launches; ++i) CHECK(cuGraphLaunch(exec, stream));
  CHECK(cuEventRecord(event, stream));
  CHECK(cuEventSynchronize(event));
  unsigned value = 0;
  CHECK(cuMemcpyDtoH(&value, data, sizeof value));
  if (value != 6) failures.fetch_add(1); // set to 5 by the node before the kernel, which adds 1
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
  CHECK(cuModuleUnload(module));
  CHECK(cuEventDestroy(event));
  CHECK(cuMemFree(data));
}

} // namespace

int main() {
  const client::device shared;
  if (!shared.good) return 1;
  const auto add = [](const capturesan_host_launch* launch, void*) {
    unsigned* target = nullptr;
    std::memcpy(&target, launch->parameters[0], sizeof target);
    *target += 1;
    kernel_runs.fetch_add(1);
  };
  capturesan_use_host_kernel("add", add, nullptr);
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t)
    threads.emplace_back([&] {
      CHECK(cuCtxSetCurrent(shared.context));
      CUstream stream = nullptr;
      CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
      for (int i = 0; i < rounds; ++i) one_round(shared, stream);
      CHECK(cuStreamDestroy(stream));
    });
  for (auto& t : threads) t.join();
  constexpr int expected = thread_count * rounds * launches;
  std::printf("%d threads: %d host functions and %d kernels ran (%d each expected), %d failures\n", thread_count,
              host_runs.load(), kernel_runs.load(), expected, failures.load());
  return failures == 0 && host_runs == expected && kernel_runs == expected ? 0 : 1;
}
