// The kernels of all examples. One element a thread; every kernel names its memory in a parameter, as real ones do.

// data[i] += value
extern "C" __global__ void add(unsigned* data, unsigned count, unsigned value) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] += value;
}

// data[i] = value
extern "C" __global__ void fill(unsigned* data, unsigned count, unsigned value) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] = value;
}

struct view { // a pointer inside a struct, as most kernels get theirs
  unsigned* data;
  unsigned count;
};

// target.data[i] = source.data[i]
extern "C" __global__ void copy(view target, view source) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < target.count && i < source.count) target.data[i] = source.data[i];
}
