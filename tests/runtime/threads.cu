// 16 threads, each with its own capture, whose first launches race for the loading of the same code; last errors stay
// apart.
#include "include/capturesan_host.h"
#include "tests/runtime/check.h"

#include <atomic>
#include <thread>
#include <vector>

template <int N>
__global__ void step(int* data) {
  *data += N;
}

static std::atomic<int> wrong{0};

template <int N>
static void use(int* data, cudaStream_t stream) {
  step<N><<<1, 1, 0, stream>>>(data);
  if (cudaGetLastError() != cudaSuccess) ++wrong;
}

static void one_thread(int index) {
  const auto need = [](cudaError_t e) { wrong += e != cudaSuccess; };
  int* data = nullptr;
  cudaStream_t stream = nullptr;
  need(cudaMalloc(&data, sizeof *data));
  need(cudaMemset(data, 0, sizeof *data));
  need(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  need(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  use<1>(data, stream);
  use<2>(data, stream);
  use<4>(data, stream);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  need(cudaStreamEndCapture(stream, &graph));
  need(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 10; ++i) need(cudaGraphLaunch(exec, stream));
  if (index % 2) wrong += cudaSetDevice(-1) != cudaErrorInvalidDevice;
  need(cudaStreamSynchronize(stream));
  int back = 0;
  need(cudaMemcpy(&back, data, sizeof back, cudaMemcpyDeviceToHost));
  wrong += back != 70;
  wrong += cudaGetLastError() != (index % 2 ? cudaErrorInvalidDevice : cudaSuccess);
  need(cudaGraphExecDestroy(exec));
  need(cudaGraphDestroy(graph));
  need(cudaStreamDestroy(stream));
  need(cudaFree(data));
}

int main() {
  const auto twin = [](int n) { return [n](const capturesan::place&, int* data) { *data += n; }; };
  capturesan::run_on_host(step<1>, twin(1));
  capturesan::run_on_host(step<2>, twin(2));
  capturesan::run_on_host(step<4>, twin(4));
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) threads.emplace_back(one_thread, i);
  for (auto& t : threads) t.join();
  EQUAL(wrong.load(), 0);
  return check::failed();
}
