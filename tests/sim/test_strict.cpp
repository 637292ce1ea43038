// CAPTURESAN_SIM_STRICT=1: any use of freed memory is an error, also where a real driver goes on silently.
#include "tests/support/catch.hpp"

#include "client.h"

#include <cstdlib>

namespace {

[[maybe_unused]] const int strict = setenv("CAPTURESAN_SIM_STRICT", "1", 1);

CUdeviceptr allocate() {
  CUdeviceptr address = 0;
  REQUIRE(cuMemAlloc(&address, 64) == CUDA_SUCCESS);
  return address;
}

template <class F>
CUgraphExec capture(const client::device& device, F&& work) {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  REQUIRE(cuStreamBeginCapture(device.stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  REQUIRE(work() == CUDA_SUCCESS);
  REQUIRE(cuStreamEndCapture(device.stream, &graph) == CUDA_SUCCESS);
  REQUIRE(cuGraphInstantiate(&exec, graph, 0) == CUDA_SUCCESS);
  return exec;
}

} // namespace

TEST_CASE("a replayed kernel's freed pointer is met, though its slab lives") {
  const client::device device;
  REQUIRE(device.good);
  const CUdeviceptr target = allocate();
  allocate();
  CUgraphExec exec = capture(device, [&] { return device.launch(device.stream, target); });
  CHECK(cuGraphLaunch(exec, device.stream) == CUDA_SUCCESS);
  CHECK(cuStreamSynchronize(device.stream) == CUDA_SUCCESS);
  REQUIRE(cuMemFree(target) == CUDA_SUCCESS);
  CHECK(cuGraphLaunch(exec, device.stream) == CUDA_SUCCESS);
  CHECK(cuStreamSynchronize(device.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("so is one inside a structure") {
  const client::device device;
  REQUIRE(device.good);
  const CUdeviceptr first = allocate(), second = allocate();
  allocate();
  CUgraphExec exec = capture(device, [&] { return device.launch_boxed(device.stream, {first, 7, second}); });
  CHECK(cuGraphLaunch(exec, device.stream) == CUDA_SUCCESS);
  CHECK(cuStreamSynchronize(device.stream) == CUDA_SUCCESS);
  REQUIRE(cuMemFree(second) == CUDA_SUCCESS);
  CHECK(cuGraphLaunch(exec, device.stream) == CUDA_SUCCESS);
  CHECK(cuStreamSynchronize(device.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("a replayed copy's freed source is met") {
  const client::device device;
  REQUIRE(device.good);
  const CUdeviceptr from = allocate(), to = allocate();
  CUgraphExec exec = capture(device, [&] { return cuMemcpyDtoDAsync(to, from, 64, device.stream); });
  REQUIRE(cuMemFree(from) == CUDA_SUCCESS);
  CHECK(cuGraphLaunch(exec, device.stream) == CUDA_SUCCESS);
  CHECK(cuStreamSynchronize(device.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
}
