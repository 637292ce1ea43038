// Kernels whose machine code test_sass.cpp follows. kernels_sm*.txt is what the compiler and the disassembler of CUDA
// 13 make of them, without encodings:
//   for sm in 80 90 120; do
//     nvcc -O2 -arch=sm_$sm -cubin -o kernels.cubin kernels.cu
//     cuobjdump -sass kernels.cubin | sed -E '/ NOP *;/d; /^ *\/\* 0x/d; s/ *\/\* 0x.*//' > kernels_sm$sm.txt
//   done
#include <cstddef>

struct work {
  char* data;
  std::size_t number;
  char* other;
  int flag, n;
  const int* places;
};
struct table {
  char* buffers[4];
  int index;
};
__device__ char area[1 << 20];
__device__ work saved;

#define KERNEL(name) extern "C" __global__ void name(work w)

KERNEL(plain) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < w.n) w.data[i] += 1;
}
KERNEL(flagged) {
  char v = w.data[threadIdx.x];
  if (w.flag) v += w.other[threadIdx.x];
  w.data[threadIdx.x] = v;
}
KERNEL(checked) {
  if (w.other) w.other[threadIdx.x] = 1;
}
KERNEL(gathered) {
  if (threadIdx.x < w.n) w.data[threadIdx.x] = w.other[w.places[threadIdx.x]];
}
KERNEL(strided) {
  for (int i = threadIdx.x; i < w.n; i += blockDim.x) w.other[i] = 2;
}
KERNEL(divided) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i / w.n < 1) w.other[i % w.n] = w.data[i];
}
KERNEL(second_warp) {
  if (threadIdx.x / 32 == 1) w.other[threadIdx.x] = 1;
}
KERNEL(last_lane) {
  if (threadIdx.x % 32 == 31) w.other[threadIdx.x] = 1;
}
KERNEL(staged) {
  __shared__ char s[128];
  s[threadIdx.x] = w.data[threadIdx.x];
  __syncthreads();
  w.other[threadIdx.x] = s[127 - threadIdx.x];
}
KERNEL(copied_async) {
  __shared__ alignas(16) char s[2048];
  const unsigned to = __cvta_generic_to_shared(s + threadIdx.x * 16);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(w.other + threadIdx.x * 16));
  asm volatile("cp.async.wait_all;");
  __syncthreads();
  w.data[threadIdx.x] = s[threadIdx.x];
}
KERNEL(added_up) {
  double sum = 0;
  for (int i = threadIdx.x; i < w.n; i += 32) sum += reinterpret_cast<double*>(w.data)[i];
  atomicAdd(reinterpret_cast<double*>(w.other), sum);
}
KERNEL(selected) {
  char* p = w.flag ? w.other : w.data;
  p[threadIdx.x] = 1;
}
KERNEL(by_memory) {
  if (w.data[0]) w.other[threadIdx.x] = 1;
  w.data[1] = 2;
}
KERNEL(limit) {
  if (threadIdx.x < w.number) w.data[threadIdx.x] = 1;
}
KERNEL(offset) { w.data[w.number + threadIdx.x] = 1; }
KERNEL(offset_in_area) { area[w.number + threadIdx.x] = 1; }
KERNEL(scaled) { reinterpret_cast<int*>(w.data)[w.number] = 1; }
KERNEL(stored) {
  if (threadIdx.x == 0) *reinterpret_cast<std::size_t*>(w.data) = w.number;
}
KERNEL(saved_whole) {
  if (threadIdx.x == 0) saved = w;
}
KERNEL(range) { // data to other
  for (char* p = w.data + threadIdx.x; p < w.other; p += blockDim.x) *p = 1;
}
KERNEL(length) {
  const long n = w.other - w.data;
  for (long i = threadIdx.x; i < n; i += blockDim.x) w.data[i] = 1;
}
KERNEL(before_end) { w.other[-1 - static_cast<int>(threadIdx.x)] = 1; }
static __device__ __noinline__ void helper(char* p, int i) { p[i] = p[i + 1] * 3; }
KERNEL(by_call) { helper(w.other, threadIdx.x); }
KERNEL(hashed) { // both are mixed into a number
  w.data[(w.number * 0x9e3779b97f4a7c15ull) >> 58] = 1;
}
extern "C" __global__ void from_table(table t) {
  char* p = t.buffers[t.index];
  p[threadIdx.x] = 1;
}
