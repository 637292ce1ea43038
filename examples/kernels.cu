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

// target[i] = source[i]
extern "C" __global__ void copy(unsigned* target, const unsigned* source, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) target[i] = source[i];
}

// target[i] = table[0][i] + table[1][i]: the kernel finds its sources in memory, as batched and grouped operations do
extern "C" __global__ void add_two(unsigned* target, const unsigned* const* table, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) target[i] = table[0][i] + table[1][i];
}
