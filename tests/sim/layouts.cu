// Kernels whose parameters are laid out in unusual ways.
#include "layouts.h"

using namespace layouts;

__device__ int counter = 42;
__constant__ unsigned short steps[4] = {1, 2, 300, 4};

extern "C" __global__ void mixed(char a, double b, odd c, int* d, empty e, short f) {
  *d = a + static_cast<int>(b) + c.three[0] + f + counter;
}
extern "C" __global__ void nothing() {}
extern "C" __global__ void large_block(block<large> b, int* out) { *out = b.content[17] + steps[2]; }
extern "C" __global__ void huge_block(block<huge> b, int* out) { *out = b.content[17]; }
extern "C" __global__ void constant_block(const __grid_constant__ odd c, float* out) {
  *out = static_cast<float>(c.number);
}
extern "C" __global__ void __launch_bounds__(256) bounded(long long a, char b, long long c, int* out) {
  *out = static_cast<int>(a + b + c);
}
