// A captured copy whose source is freed before the graph is launched again; prints what the copy brought each time.
// `kept` as argument: a buffer that no graph refers to is freed instead.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda.h>

namespace {

void need(CUresult r, int line) {
  if (r == CUDA_SUCCESS) return;
  std::printf("line %d: %d\n", line, static_cast<int>(r));
  std::exit(1);
}
#define NEED(call) need((call), __LINE__)

constexpr std::size_t bytes = 4096;

void show(CUgraphExec exec, CUstream stream, CUdeviceptr target) {
  unsigned word = 0;
  NEED(cuGraphLaunch(exec, stream));
  NEED(cuStreamSynchronize(stream));
  NEED(cuMemcpyDtoH(&word, target, sizeof(word)));
  std::printf("%08x\n", word);
}

} // namespace

int main(int count, char** arguments) {
  CUdevice device{};
  CUcontext context{};
  CUstream stream{};
  CUdeviceptr source{}, target{}, other{};
  NEED(cuInit(0));
  NEED(cuDeviceGet(&device, 0));
  NEED(cuDevicePrimaryCtxRetain(&context, device));
  NEED(cuCtxSetCurrent(context));
  NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  NEED(cuMemAlloc(&source, bytes));
  NEED(cuMemAlloc(&target, bytes));
  NEED(cuMemAlloc(&other, bytes));
  NEED(cuMemsetD32(source, 0x01020304, bytes / 4));
  NEED(cuMemsetD32(other, 0x05060708, bytes / 4));
  CUgraph graph{};
  CUgraphExec exec{};
  NEED(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  NEED(cuMemcpyDtoDAsync(target, source, bytes, stream));
  NEED(cuStreamEndCapture(stream, &graph));
  NEED(cuGraphInstantiate(&exec, graph, 0));
  show(exec, stream, target);
  NEED(cuMemFree(count > 1 && std::strcmp(arguments[1], "kept") == 0 ? other : source));
  show(exec, stream, target);
}
