// A library with a workspace of its own, as cuBLAS has: the program never sees its address.
#include <cuda.h>

#define VISIBLE extern "C" __attribute__((visibility("default")))

namespace {
CUdeviceptr workspace;
}

VISIBLE CUresult fake_blas_create() { return cuMemAlloc(&workspace, 1 << 20); }
VISIBLE CUresult fake_blas_run(CUstream stream) { return cuMemsetD8Async(workspace, 0, 4096, stream); }
VISIBLE CUresult fake_blas_destroy() { return cuMemFree(workspace); }
