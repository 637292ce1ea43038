// Counts allocations of the heap while the shim records: there must be none. Run with the shim preloaded and the fake
// driver; malloc and its kin are this program's own, so whoever calls them is counted, the unwinder too.
// Exit code 0: none on the hot paths, and the counter works.
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace {

std::atomic<long> allocations{0};

} // namespace

extern "C" {
void* malloc(std::size_t n) {
  ++allocations;
  return __libc_malloc(n);
}
void* calloc(std::size_t n, std::size_t size) {
  ++allocations;
  return __libc_calloc(n, size);
}
void* realloc(void* p, std::size_t n) {
  ++allocations;
  return __libc_realloc(p, n);
}
void* memalign(std::size_t a, std::size_t n) {
  ++allocations;
  return __libc_memalign(a, n);
}
void* aligned_alloc(std::size_t a, std::size_t n) { return memalign(a, n); }
int posix_memalign(void** p, std::size_t a, std::size_t n) {
  *p = memalign(a, n);
  return *p == nullptr ? 12 : 0;
}
}

namespace {

void calls(int n) {
  const auto function = reinterpret_cast<CUfunction>(0x1000);
  int value = 0;
  CUdeviceptr block = 0;
  const auto stream = reinterpret_cast<CUstream>(0x2000);
  for (int i = 0; i < n; ++i) {
    cuEventQuery(nullptr);                                                    // recorded
    cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function);         // filtered
    cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr); // filtered
    cuMemAlloc_v2(&block, 4096);                                              // recorded with a stack
    cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED);          // opens a window
    cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);  // recorded with a stack
    cuStreamDestroy_v2(stream);                                               // and closes it
    cuGraphLaunch(reinterpret_cast<CUgraphExec>(0x3000), stream);
    cuMemFree_v2(block);
  }
}

} // namespace

int main() {
  calls(200); // first uses: stacks, module map, names
  const long before = allocations.load();
  calls(20000);
  const long during = allocations.load() - before;
  void* volatile canary = std::malloc(1);
  const bool counts = allocations.load() == before + during + 1;
  std::free(canary);
  std::printf("%ld allocations in 180,000 calls, the counter works: %s\n", during, counts ? "yes" : "no");
  return during == 0 && counts ? 0 : 1;
}
