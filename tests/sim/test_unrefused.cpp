// CAPTURESAN_SIM_REFUSE=0: nothing is refused because of a capture, so that a tool that judges by names instead of
// results shows itself.
#include "tests/support/catch.hpp"

#include "client.h"

#include <cstdlib>

[[maybe_unused]] static const int unrefused = setenv("CAPTURESAN_SIM_REFUSE", "0", 1);

TEST_CASE("calls that a capture forbids succeed, and the capture goes on") {
  const client::device device;
  REQUIRE(device.good);
  CUstream blocking = nullptr;
  REQUIRE(cuStreamCreate(&blocking, CU_STREAM_DEFAULT) == CUDA_SUCCESS);
  CUdeviceptr target = 0, fresh = 0;
  REQUIRE(cuMemAlloc(&target, 64) == CUDA_SUCCESS);
  CUevent event = nullptr, eager = nullptr;
  REQUIRE(cuEventCreate(&event, 0) == CUDA_SUCCESS);
  REQUIRE(cuEventCreate(&eager, 0) == CUDA_SUCCESS);
  REQUIRE(cuEventRecord(eager, device.stream) == CUDA_SUCCESS);

  REQUIRE(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  REQUIRE(device.launch(blocking, target) == CUDA_SUCCESS);
  CHECK(cuStreamSynchronize(blocking) == CUDA_SUCCESS);
  CHECK(cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(cuMemAlloc(&fresh, 64) == CUDA_SUCCESS);
  CHECK(cuMemFree(fresh) == CUDA_SUCCESS);
  CHECK(device.launch(nullptr, target) == CUDA_SUCCESS);
  CHECK(cuMemsetD8(target, 0, 64) == CUDA_SUCCESS);
  CHECK(cuEventRecord(event, blocking) == CUDA_SUCCESS);
  CHECK(cuEventQuery(event) == CUDA_SUCCESS);
  CHECK(cuStreamWaitEvent(blocking, eager, 0) == CUDA_SUCCESS);
  CHECK(cuStreamWaitEvent(device.stream, event, 0) == CUDA_SUCCESS); // a fork, with work that nobody joins
  CHECK(device.launch(device.stream, target) == CUDA_SUCCESS);
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(blocking, &graph) == CUDA_SUCCESS);
  std::size_t nodes = 0;
  REQUIRE(cuGraphGetNodes(graph, nullptr, &nodes) == CUDA_SUCCESS);
  CHECK(nodes == 2);
}
