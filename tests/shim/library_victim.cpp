// Captures work of a library that keeps a workspace, and lets the library free it before a replay.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda.h>

extern "C" CUresult fake_blas_create();
extern "C" CUresult fake_blas_run(CUstream stream);
extern "C" CUresult fake_blas_destroy();

namespace {

void need(CUresult r, int line) {
  if (r == CUDA_SUCCESS) return;
  std::printf("line %d: %d\n", line, static_cast<int>(r));
  std::exit(1);
}
#define NEED(call) need((call), __LINE__)

} // namespace

int main(int, char** argv) {
  CUdevice device{};
  CUcontext context{};
  CUstream stream{};
  CUgraph graph{};
  CUgraphExec exec{};
  NEED(cuInit(0));
  NEED(cuDeviceGet(&device, 0));
  NEED(cuDevicePrimaryCtxRetain(&context, device));
  NEED(cuCtxSetCurrent(context));
  NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  NEED(fake_blas_create());
  NEED(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  NEED(fake_blas_run(stream));
  NEED(cuStreamEndCapture(stream, &graph));
  NEED(cuGraphInstantiate(&exec, graph, 0));
  NEED(cuGraphLaunch(exec, stream));
  const bool wrong = std::strcmp(argv[1], "wrong") == 0;
  if (wrong) NEED(fake_blas_destroy());
  NEED(cuGraphLaunch(exec, stream));
  const CUresult end = cuStreamSynchronize(stream);
  if (!wrong) { // nobody can say what becomes of the other
    NEED(end);
    NEED(cuGraphExecDestroy(exec));
    NEED(fake_blas_destroy());
  }
  std::puts("done");
}
