// Three threads capture at the same time, each on a stream of its own, which is fine. One of them waits for the stream
// of its neighbour and breaks the neighbour's capture, not its own.
//
// EXPECT: CS104 cuStreamSynchronize
// EXPECT-NOT: CS101
// CAPTURES: 3
// REPLAYS: 0
// EVENTS: 16
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
  if (self == 0) TRY(cuStreamSynchronize(streams[1])); // the mistake: that one is being captured by another thread
  captured.arrive_and_wait();
  CUgraph graph = nullptr;
  TRY(cuStreamEndCapture(streams[self], &graph));
  if (graph == nullptr) return;
  CUgraphExec exec = nullptr;
  CHECK(cuGraphInstantiate(&exec, graph, 0));
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
