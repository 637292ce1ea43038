// Two devices (CAPTURESAN_SIM_DEVICES=2): the current one belongs to the thread, and code is loaded into each.
#include "include/capturesan_host.h"
#include "tests/runtime/check.h"

#include <thread>

__device__ int table[2];

__global__ void set(int* data, int value) { *data = value; }

static int current() {
  int device = -1;
  OK(cudaGetDevice(&device));
  return device;
}

int main() {
  capturesan::run_on_host(set, [](const capturesan::place&, int* data, int value) { *data = value; });
  int devices = 0;
  OK(cudaGetDeviceCount(&devices));
  if (devices < 2) {
    std::printf("skipped: one device only\n");
    return 77;
  }
  int *first = nullptr, *second = nullptr, back = 0;
  OK(cudaMalloc(&first, sizeof *first));
  set<<<1, 1>>>(first, 10);
  OK(cudaMemcpyToSymbol(table, &(back = 3), sizeof back));
  OK(cudaSetDevice(1));
  EQUAL(current(), 1);
  std::thread([] { EQUAL(current(), 0); }).join();
  OK(cudaMalloc(&second, sizeof *second));
  set<<<1, 1>>>(second, 11);
  OK(cudaGetLastError());
  OK(cudaDeviceSynchronize());
  OK(cudaMemcpyFromSymbol(&back, table, sizeof back)); // a variable of each device
  EQUAL(back, 0);

  cudaPointerAttributes a{};
  OK(cudaPointerGetAttributes(&a, first));
  EQUAL(a.device, 0);
  OK(cudaPointerGetAttributes(&a, second));
  EQUAL(a.device, 1);

  int can = 0;
  OK(cudaDeviceCanAccessPeer(&can, 1, 0));
  EQUAL(can, 1);
  OK(cudaDeviceEnablePeerAccess(0, 0));
  ANSWERS(cudaErrorPeerAccessAlreadyEnabled, cudaDeviceEnablePeerAccess(0, 0));
  cudaGetLastError();
  EQUAL(current(), 1);
  OK(cudaMemcpyPeer(second, 1, first, 0, sizeof *first));
  OK(cudaMemcpy(&back, second, sizeof back, cudaMemcpyDefault));
  EQUAL(back, 10);
  OK(cudaDeviceDisablePeerAccess(0));
  ANSWERS(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(0));
  OK(cudaSetDevice(0));
  OK(cudaMemcpyFromSymbol(&back, table, sizeof back));
  EQUAL(back, 3);
  return check::failed();
}
