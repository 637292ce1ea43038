// Nothing is warmed up: the first launch of the program happens in a capture, and loads its code there. So does the
// first use of a variable of another module. Measured on a real driver (tests/golden, cuLibraryLoadData): loading is
// allowed in every mode.
#include "include/capturesan_host.h"
#include "tests/runtime/check.h"

__device__ int table[4];

__global__ void one_more(int* data) { *data += 1; }

int main() {
  capturesan::run_on_host(one_more, [](const capturesan::place&, int* data) { *data += 1; });
  int* data = nullptr;
  OK(cudaMalloc(&data, sizeof *data));
  OK(cudaMemset(data, 0, sizeof *data));
  cudaStream_t stream = nullptr;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  one_more<<<1, 1, 0, stream>>>(data);
  OK(cudaGetLastError());
  OK(cudaMemcpyToSymbolAsync(table, data, sizeof *data, 4, cudaMemcpyDeviceToDevice, stream));
  cudaGraph_t graph = nullptr;
  OK(cudaStreamEndCapture(stream, &graph));
  size_t nodes = 0;
  OK(cudaGraphGetNodes(graph, nullptr, &nodes));
  EQUAL(nodes, 2);
  cudaGraphExec_t exec = nullptr;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 5; ++i) OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  int back[4] = {};
  OK(cudaMemcpyFromSymbol(back, table, sizeof back));
  EQUAL(back[0], 0);
  EQUAL(back[1], 5);
  return check::failed();
}
