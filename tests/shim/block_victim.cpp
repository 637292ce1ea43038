// A program with a caching allocator as PyTorch's: one allocation of the driver, cut into blocks, each reported to
// libc10.so across a library boundary. Prints what the profiler in there was told.
//
//   stale    a block of the graph is given back, then handed out to somebody else, each followed by a launch
//   again    the same block is handed out again
//   pool     the block was handed out to a stream that was capturing: it is kept for the graph
//   beside   other blocks come and go by the thousand
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>

#include <cuda.h>

#include "tests/shim/fake_c10.h"

namespace {

void need(CUresult r, int line) {
  if (r == CUDA_SUCCESS) return;
  std::printf("line %d: %d\n", line, static_cast<int>(r));
  std::exit(1);
}
#define NEED(call) need((call), __LINE__)

constexpr int cuda = 1, cpu = 0;

} // namespace

int main(int, char** argv) {
  const char* mode = argv[1];
  const bool pool = std::strcmp(mode, "pool") == 0;
  void* torch = ::dlopen("libfake_torch.so", RTLD_NOW | RTLD_LOCAL);
  void* c10 = torch == nullptr ? nullptr : ::dlopen("libc10.so", RTLD_NOW | RTLD_NOLOAD);
  if (c10 == nullptr) return 2;
  auto* report = reinterpret_cast<decltype(&fake_torch_report)>(::dlsym(torch, "fake_torch_report"));
  auto* profile = reinterpret_cast<decltype(&fake_c10_profile)>(::dlsym(c10, "fake_c10_profile"));

  CUdevice device{};
  CUcontext context{};
  CUstream stream{}, side{};
  CUdeviceptr segment{};
  NEED(cuInit(0));
  NEED(cuDeviceGet(&device, 0));
  NEED(cuDevicePrimaryCtxRetain(&context, device));
  NEED(cuCtxSetCurrent(context));
  NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  NEED(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
  NEED(cuMemAlloc(&segment, std::size_t{1} << 21));
  const auto at = [&](CUdeviceptr offset) { return reinterpret_cast<void*>(segment + offset); };

  if (!pool) report(at(1024), 2048, cuda);
  report(std::malloc(16), 16, cpu); // its own memory: none of ours
  NEED(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUstreamCaptureStatus status{};
  NEED(cuStreamIsCapturing(side, &status)); // the pool of a block is chosen by its stream
  report(at(65536), 512, cuda);
  NEED(cuStreamIsCapturing(stream, &status));
  if (pool) report(at(1024), 2048, cuda);
  NEED(cuMemsetD8Async(segment + 1500, 1, 64, stream));
  NEED(cuMemsetD8Async(segment + 65536, 1, 64, stream)); // memory of an ordinary block: its owner keeps it
  CUgraph graph{};
  CUgraphExec exec{};
  NEED(cuStreamEndCapture(stream, &graph));
  NEED(cuGraphInstantiate(&exec, graph, 0));
  NEED(cuGraphLaunch(exec, stream));

  if (std::strcmp(mode, "beside") == 0) {
    for (int i = 0; i < 100000; ++i) report(at(131072), 512, cuda), report(at(131072), -512, cuda);
  } else {
    report(at(1024), -2048, cuda);
    NEED(cuGraphLaunch(exec, stream));
    const bool again = std::strcmp(mode, "again") == 0;
    report(at(again ? 1024 : 512), again ? 2048 : 4096, cuda);
  }
  NEED(cuGraphLaunch(exec, stream));
  NEED(cuStreamSynchronize(stream));
  const fake_profile p = profile();
  std::printf("%llu calls, %lld, %llu of %llu\n", static_cast<unsigned long long>(p.calls),
              static_cast<long long>(p.bytes), static_cast<unsigned long long>(p.last_allocated),
              static_cast<unsigned long long>(p.last_reserved));
}
