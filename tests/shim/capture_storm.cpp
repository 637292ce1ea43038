// Many captures open at once, each invalidated by its own thread, while other threads create and destroy streams.
//   capture_storm THREADS ROUNDS
// Each of THREADS threads, in each round: a capture (thread-local mode) that its own cuStreamSynchronize invalidates,
// and one that succeeds and is replayed three times. A barrier keeps THREADS captures open at the moment of the
// mistakes. Results expected: golden/capture_matrix_580.159.csv, rows of cuStreamSynchronize(capturing) and
// cuStreamDestroy. Exit code 0 if every call answered as measured.
#include <cuda.h>

#include <atomic>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/sim/client.h"

namespace {

std::atomic<int> failures{0};
std::atomic<bool> done{false};

void expect(CUresult got, CUresult wanted, const char* what) {
  if (got != wanted && failures.fetch_add(1) < 10) std::printf("%s -> %d, not %d\n", what, got, wanted);
}
#define EXPECT(wanted, call) expect((call), (wanted), #call)
#define CHECK(call) EXPECT(CUDA_SUCCESS, call)

struct storm {
  const client::device& shared;
  std::barrier<>& together;

  void failing_capture(CUdeviceptr data) {
    CUstream stream = nullptr;
    CUgraph graph = nullptr;
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    CHECK(shared.launch(stream, data));
    together.arrive_and_wait();
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(stream));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, shared.launch(stream, data));
    together.arrive_and_wait(); // nobody's window closes before everybody's mistake
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
    CHECK(cuStreamDestroy(stream));
  }

  void good_capture(CUdeviceptr data) {
    CUstream stream = nullptr;
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    CHECK(shared.launch(stream, data));
    CHECK(cuStreamEndCapture(stream, &graph));
    CHECK(cuGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; ++i) CHECK(cuGraphLaunch(exec, stream));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuGraphExecDestroy(exec));
    CHECK(cuGraphDestroy(graph));
    CHECK(cuStreamDestroy(stream));
  }

  void work(int rounds) {
    CHECK(cuCtxSetCurrent(shared.context));
    CUdeviceptr data = 0;
    CHECK(cuMemAlloc(&data, 4096));
    for (int i = 0; i < rounds; ++i) {
      failing_capture(data);
      good_capture(data);
    }
    CHECK(cuMemFree(data));
  }
};

void create_and_destroy(CUcontext context) {
  CHECK(cuCtxSetCurrent(context));
  while (!done.load()) {
    CUstream stream = nullptr;
    CUevent event = nullptr;
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CHECK(cuEventRecord(event, stream));
    CHECK(cuEventDestroy(event));
    CHECK(cuStreamDestroy(stream));
    std::this_thread::yield();
  }
}

// The first driver calls of the process come from all threads at once: one of them starts the shim.
void first_calls(int threads) {
  std::barrier together(threads);
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; ++i) {
    pool.emplace_back([&together, i] {
      together.arrive_and_wait();
      int value = 0;
      if (i % 2 == 0) {
        CHECK(cuInit(0));
      } else {
        CHECK(cuDriverGetVersion(&value));
      }
    });
  }
  for (auto& t : pool) t.join();
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int threads = std::atoi(argv[1]), rounds = std::atoi(argv[2]);
  first_calls(threads);
  const client::device shared;
  if (!shared.good) return 3;
  std::barrier<> together(threads);
  storm s{shared, together};
  std::vector<std::thread> workers, others;
  for (int i = 0; i < threads; ++i) workers.emplace_back([&] { s.work(rounds); });
  for (int i = 0; i < 4; ++i) others.emplace_back(create_and_destroy, shared.context);
  for (auto& t : workers) t.join();
  done = true;
  for (auto& t : others) t.join();
  std::printf("%d threads, %d rounds, %d unexpected results\n", threads, rounds, failures.load());
  return failures == 0 ? 0 : 1;
}
