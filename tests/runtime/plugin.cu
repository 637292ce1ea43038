// A shared library with device code, loaded and unloaded by host_only.cpp.
#include "include/capturesan_host.h"

#include <cuda_runtime.h>

__device__ int value = 40;

__global__ void more(int* data) { *data += 2; }

extern "C" int launch_and_read() {
  capturesan::run_on_host(more, [](const capturesan::place&, int* data) { *data += 2; });
  void* address = nullptr;
  if (cudaGetSymbolAddress(&address, value) != cudaSuccess) return -1;
  more<<<1, 1>>>(static_cast<int*>(address));
  int back = 0;
  return cudaMemcpyFromSymbol(&back, value, sizeof back) == cudaSuccess ? back : -2;
}
