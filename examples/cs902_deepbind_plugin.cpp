// The plugin of cs902_deepbind: a library that allocates device memory by itself.
#include <cuda.h>

extern "C" CUresult plugin_allocate(CUdeviceptr* address, std::size_t size);
CUresult plugin_allocate(CUdeviceptr* address, std::size_t size) { return cuMemAlloc(address, size); }
