// The runtime over the driver, as the CUDA Runtime API documentation (13.0) describes it. Built in several ways: shared
// and static runtime, legacy and per-thread default stream, relocatable device code. Runs on a GPU too: kernels have
// host twins.
#include "include/capturesan_host.h"
#include "tests/runtime/check.h"

#include <cstring>
#include <thread>
#include <vector>

constexpr int count = 1000;

__constant__ int factors[4];
__device__ int offset_value = 7;
__managed__ int managed_value = 5;

__global__ void add(int* data, int n, int value) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) data[i] += value;
}

template <class T>
__global__ void fill(T* data, int n, T value) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) data[i] = value;
}

struct pair_of {
  float a;
  double b;
};
__global__ void with_struct(pair_of value, double* sum) {
  if (threadIdx.x == 0) *sum = value.a + value.b;
}

static void use_host_twins() {
  using capturesan::place;
  capturesan::run_on_host(add, [](const place& at, int* data, int n, int value) {
    if (static_cast<int>(at.x()) < n) data[at.x()] += value;
  });
  capturesan::run_on_host(fill<int>, [](const place& at, int* data, int n, int value) {
    if (static_cast<int>(at.x()) < n) data[at.x()] = value;
  });
  capturesan::run_on_host(with_struct, [](const place& at, pair_of value, double* sum) {
    if (at.thread_index.x == 0) *sum = value.a + value.b;
  });
}

static int at(const int* device, int index) {
  int value = -1;
  OK(cudaMemcpy(&value, device + index, sizeof value, cudaMemcpyDeviceToHost));
  return value;
}

static void launches(int* data) {
  fill<<<4, 256>>>(data, count, 40);
  add<<<4, 256>>>(data, count, 2);
  OK(cudaGetLastError());
  OK(cudaDeviceSynchronize());
  EQUAL(at(data, 0), 42);
  EQUAL(at(data, count - 1), 42);

  double* sum = nullptr;
  OK(cudaMalloc(&sum, sizeof *sum));
  with_struct<<<1, 32>>>(pair_of{1.5f, 2.25}, sum);
  double back = 0;
  OK(cudaMemcpy(&back, sum, sizeof back, cudaMemcpyDefault));
  EQUAL(back * 4, 15);
  OK(cudaFree(sum));

  int n = count, value = 3;
  void* values[] = {&data, &n, &value};
  OK(cudaLaunchKernel(add, dim3(4), dim3(256), values, 0, nullptr));
  OK(cudaLaunchKernel(reinterpret_cast<void*>(&add), dim3(4), dim3(256), values, 0, cudaStreamLegacy));
  cudaKernel_t kernel = nullptr;
  OK(cudaGetKernel(&kernel, reinterpret_cast<const void*>(&add)));
  OK(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(4), dim3(256), values, 0, cudaStreamPerThread));
  OK(cudaDeviceSynchronize());
  EQUAL(at(data, 5), 51);
}

// Documented: a launch reports through cudaGetLastError, which forgets; cudaPeekAtLastError does not.
static void errors(int* data) {
  add<<<1, 2048>>>(data, count, 1);
  ANSWERS(cudaErrorInvalidConfiguration, cudaPeekAtLastError());
  ANSWERS(cudaErrorInvalidConfiguration, cudaGetLastError());
  OK(cudaGetLastError());
  add<<<0, 32>>>(data, count, 1);
  ANSWERS(cudaErrorInvalidConfiguration, cudaGetLastError());
  ANSWERS(cudaErrorInvalidDevice, cudaSetDevice(1000));
  std::thread([] { OK(cudaPeekAtLastError()); }).join(); // of each thread its own
  ANSWERS(cudaErrorInvalidDevice, cudaGetLastError());
  static int not_registered = 0;
  ANSWERS(cudaErrorInvalidSymbol, cudaMemcpyToSymbol(&not_registered, &count, 4));
  ANSWERS(cudaErrorInvalidDeviceFunction, cudaLaunchKernel(&not_registered, dim3(1), dim3(1), nullptr, 0, nullptr));
  ANSWERS(cudaErrorInvalidDeviceFunction, cudaGetLastError());
  EQUAL(std::strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation"), 0);
  EQUAL(std::strcmp(cudaGetErrorName(static_cast<cudaError_t>(12345)), "unrecognized error code"), 0);
}

static void variables() {
  const int given[4] = {2, 3, 5, 7};
  int back[4] = {};
  OK(cudaMemcpyToSymbol(factors, given, sizeof given));
  OK(cudaMemcpyFromSymbol(back, factors, 2 * sizeof(int), 2 * sizeof(int)));
  EQUAL(back[0], 5);
  EQUAL(back[1], 7);
  ANSWERS(cudaErrorInvalidValue, cudaMemcpyToSymbol(factors, given, sizeof given, 4)); // beyond its end
  cudaGetLastError();
  OK(cudaMemcpyFromSymbol(back, offset_value, sizeof(int)));
  EQUAL(back[0], 7); // its initial value
  void* address = nullptr;
  size_t bytes = 0;
  OK(cudaGetSymbolAddress(&address, factors));
  OK(cudaGetSymbolSize(&bytes, factors));
  EQUAL(bytes, sizeof given);
  OK(cudaMemcpy(back, address, sizeof back, cudaMemcpyDeviceToHost));
  EQUAL(back[3], 7);
  EQUAL(managed_value, 5); // read by the host
  managed_value = 6;
  OK(cudaDeviceSynchronize());
  EQUAL(managed_value, 6);
}

static void memory() {
  void* none = &none;
  OK(cudaMalloc(&none, 0));
  EQUAL(none == nullptr, true);
  OK(cudaFree(nullptr));
  char *device = nullptr, *host = nullptr;
  size_t pitch = 0;
  OK(cudaMallocPitch(&device, &pitch, 100, 8));
  EQUAL(pitch >= 100 && pitch % 32 == 0, true);
  OK(cudaMallocHost(&host, 800));
  OK(cudaMemset2D(device, pitch, 1, 100, 8));
  OK(cudaMemset2D(device + 10, pitch, 2, 5, 4));
  OK(cudaMemcpy2D(host, 100, device, pitch, 100, 8, cudaMemcpyDeviceToHost));
  EQUAL(host[9], 1);
  EQUAL(host[10], 2);
  EQUAL(host[3 * 100 + 14], 2);
  EQUAL(host[4 * 100 + 10], 1);
  ANSWERS(cudaErrorInvalidPitchValue, cudaMemcpy2D(host, 50, device, pitch, 100, 8, cudaMemcpyDeviceToHost));
  ANSWERS(cudaErrorInvalidMemcpyDirection, cudaMemcpy(host, device, 4, static_cast<cudaMemcpyKind>(9)));
  cudaGetLastError();

  cudaPointerAttributes a{};
  OK(cudaPointerGetAttributes(&a, device));
  EQUAL(a.type, cudaMemoryTypeDevice);
  OK(cudaPointerGetAttributes(&a, host));
  EQUAL(a.type, cudaMemoryTypeHost);
  int local = 0;
  OK(cudaPointerGetAttributes(&a, &local));
  EQUAL(a.type, cudaMemoryTypeUnregistered);
  OK(cudaFreeHost(host));
  OK(cudaFree(device));

  cudaPitchedPtr cube{};
  OK(cudaMalloc3D(&cube, make_cudaExtent(16, 4, 3)));
  OK(cudaMemset3D(cube, 3, make_cudaExtent(16, 4, 3)));
  OK(cudaMemset3D(cube, 4, make_cudaExtent(8, 2, 2)));
  char box[3][4][16] = {};
  cudaMemcpy3DParms p{};
  p.srcPtr = cube;
  p.dstPtr = make_cudaPitchedPtr(box, 16, 16, 4);
  p.extent = make_cudaExtent(16, 4, 3);
  p.kind = cudaMemcpyDeviceToHost;
  OK(cudaMemcpy3D(&p));
  EQUAL(box[1][1][7], 4);
  EQUAL(box[1][2][7], 3);
  EQUAL(box[2][1][7], 3);
  OK(cudaFree(cube.ptr));
}

static void functions() {
  cudaFuncAttributes a{};
  OK(cudaFuncGetAttributes(&a, add));
  EQUAL(a.numRegs > 0, true);
  EQUAL(a.maxThreadsPerBlock, 1024);
  OK(cudaFuncSetAttribute(add, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000));
  int grid = 0, block = 0, resident = 0;
  OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, add));
  EQUAL(grid > 0 && block > 0, true);
  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, add, 256, 0));
  EQUAL(resident > 0, true);
  size_t offset = 0, bytes = 0;
  OK(cudaFuncGetParamInfo(reinterpret_cast<const void*>(&add), 1, &offset, &bytes));
  EQUAL(offset, 8);
  EQUAL(bytes, 4);
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  OK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &entry, 13000, cudaEnableDefault, &found));
  EQUAL(found, cudaDriverEntryPointSuccess);
  EQUAL(entry != nullptr, true);
}

// Default stream and capture: documented under "Stream synchronization behavior".
static void captures(int* data) {
  cudaStream_t stream = nullptr;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  fill<<<4, 256, 0, stream>>>(data, count, 1);
  add<<<4, 256, 0, stream>>>(data, count, 1);
  cudaGraph_t graph = nullptr;
  OK(cudaStreamEndCapture(stream, &graph));
  size_t nodes = 0;
  OK(cudaGraphGetNodes(graph, nullptr, &nodes));
  EQUAL(nodes, 2);
  cudaGraphNode_t both[2];
  OK(cudaGraphGetNodes(graph, both, &nodes));
  cudaKernelNodeParams params{};
  OK(cudaGraphKernelNodeGetParams(both[1], &params));
  EQUAL(params.func == reinterpret_cast<void*>(&add), true);
  EQUAL(params.gridDim.x, 4);
  cudaGraphExec_t exec = nullptr;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; ++i) OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  EQUAL(at(data, 1), 2);

  int n = count, more = 9;
  void* values[] = {&data, &n, &more};
  params.kernelParams = values;
  OK(cudaGraphExecKernelNodeSetParams(exec, both[1], &params));
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  EQUAL(at(data, 1), 10);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  OK(cudaStreamDestroy(stream));
}

int main(int argc, char** argv) {
  const bool per_thread = argc > 1 && std::strcmp(argv[1], "per-thread") == 0;
  use_host_twins();
  int devices = 0, version = 0, device = -1;
  OK(cudaGetDeviceCount(&devices));
  EQUAL(devices >= 1, true);
  OK(cudaRuntimeGetVersion(&version));
  EQUAL(version, CUDART_VERSION);
  OK(cudaGetDevice(&device));
  EQUAL(device, 0);
  cudaDeviceProp properties{};
  OK(cudaGetDeviceProperties(&properties, 0));
  EQUAL(properties.warpSize, 32);
  EQUAL(properties.maxThreadsPerBlock, 1024);

  int* data = nullptr;
  OK(cudaMalloc(&data, count * sizeof(int)));
  launches(data);
  errors(data);
  variables();
  memory();
  functions();
  captures(data);

  // Which stream stream 0 is: a blocking stream that captures forbids the legacy one, not a thread's own.
  cudaStream_t blocking = nullptr;
  OK(cudaStreamCreate(&blocking));
  OK(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
  fill<<<4, 256>>>(data, count, 1);
  ANSWERS(per_thread ? cudaSuccess : cudaErrorStreamCaptureImplicit, cudaGetLastError());
  cudaGraph_t graph = nullptr;
  ANSWERS(per_thread ? cudaSuccess : cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(blocking, &graph));
  cudaGetLastError();
  OK(cudaFree(data));
  OK(cudaDeviceReset());
  OK(cudaMalloc(&data, count * sizeof(int))); // a new context, into which the code is loaded again
  fill<<<4, 256>>>(data, count, 6);
  OK(cudaDeviceSynchronize());
  EQUAL(at(data, 999), 6);
  return check::failed();
}
