// The twin of cs104_three_captures: each thread leaves the others' streams alone.
//
// EXPECT: none
// CAPTURES: 3
// REPLAYS: 3
// EVENTS: 19
#include <barrier>
#include <thread>

#include "examples/example.h"

namespace {

constexpr int workers = 3;
std::barrier begun(workers), captured(workers);

void work(example::device& device, CUstream* streams, int self, CUdeviceptr data) {
  CHECK(cuCtxSetCurrent(device.context));
  CHECK(cuStreamBeginCapture(streams[self], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  begun.arrive_and_wait();
  TRY(example::launch(device.fill, streams[self], data, example::count, 1u));
  captured.arrive_and_wait();
  CUgraph graph = nullptr;
  TRY(cuStreamEndCapture(streams[self], &graph));
  if (graph == nullptr) return;
  CUgraphExec exec = nullptr;
  CHECK(cuGraphInstantiate(&exec, graph, 0));
  TRY(cuGraphLaunch(exec, streams[self]));
}

} // namespace

int main() {
  example::device device;
  CUstream streams[workers];
  for (CUstream& s : streams) s = example::make_stream();
  CUdeviceptr data = example::allocate();
  std::thread threads[workers];
  for (int i = 0; i < workers; ++i) threads[i] = std::thread(work, std::ref(device), streams, i, data);
  for (std::thread& t : threads) t.join();
}
