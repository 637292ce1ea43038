// A thread frees the target of a captured memset while another one is inside cuGraphLaunch: a host node, which the
// simulated driver runs inside the launch, waits for it. Arguments: the number of the launch in which that happens (0:
// never), and how many launches there are.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <cuda.h>

namespace {

void need(CUresult r, int line) {
  if (r == CUDA_SUCCESS) return;
  std::printf("line %d: %d\n", line, static_cast<int>(r));
  std::exit(1);
}
#define NEED(call) need((call), __LINE__)

std::atomic<int> launch{0}, free_in{0};
std::atomic<bool> wanted{false}, done{false};

void CUDA_CB inside(void*) {
  if (launch.load() != free_in.load()) return;
  wanted = true;
  while (!done.load()) std::this_thread::yield();
  std::printf("freed inside launch %d\n", launch.load());
}

} // namespace

int main(int, char** arguments) {
  free_in = std::atoi(arguments[1]);
  const int launches = std::atoi(arguments[2]);
  CUdevice device{};
  CUcontext context{};
  CUstream stream{};
  CUdeviceptr target{};
  NEED(cuInit(0));
  NEED(cuDeviceGet(&device, 0));
  NEED(cuDevicePrimaryCtxRetain(&context, device));
  NEED(cuCtxSetCurrent(context));
  NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  NEED(cuMemAlloc(&target, 4096));
  std::thread other([&] {
    NEED(cuCtxSetCurrent(context));
    while (!wanted.load()) std::this_thread::yield();
    if (free_in.load() != 0) NEED(cuMemFree(target));
    done = true;
  });
  NEED(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  NEED(cuMemsetD8Async(target, 1, 4096, stream));
  NEED(cuLaunchHostFunc(stream, inside, nullptr));
  CUgraph graph{};
  NEED(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec{};
  NEED(cuGraphInstantiate(&exec, graph, 0));
  for (launch = 1; launch.load() <= launches; ++launch) {
    NEED(cuGraphLaunch(exec, stream));
    // The simulated driver calls the memset of freed memory a fault.
    if (cuStreamSynchronize(stream) != CUDA_SUCCESS) break;
  }
  wanted = true;
  other.join();
  std::printf("ended\n");
}
