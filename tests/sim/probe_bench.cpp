#include "probe.h"

#include <cstdio>
#include <cstdlib>

namespace probe {

const char* const kernel_text = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 target) {
  .reg .u64 %address;
  .reg .u32 %value;
  ld.param.u64 %address, [target];
  cvta.to.global.u64 %address, %address;
  mov.u32 %value, 7;
  st.global.u32 [%address], %value;
  ret;
}
)";

void require(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = "?";
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "capture_probe: %s -> %s\n", what, name);
  std::exit(2);
}

station::station(int ordinal) {
  REQUIRE(cuDeviceGet(&device, ordinal));
  REQUIRE(cuDevicePrimaryCtxRetain(&context, device));
  REQUIRE(cuCtxSetCurrent(context));
  REQUIRE(cuModuleLoadData(&module, kernel_text));
  REQUIRE(cuModuleGetFunction(&kernel, module, "k"));
  REQUIRE(cuMemAlloc(&buffer, large));
  REQUIRE(cuDeviceGetDefaultMemPool(&pool, device));
  REQUIRE(launch(nullptr)); // the first use is over before anything is captured
  REQUIRE(cuCtxSynchronize());
}

CUresult station::launch(CUstream stream) const {
  CUdeviceptr target = buffer;
  void* values[] = {&target};
  return cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, values, nullptr);
}

bench::bench(const station& home_station, const station* peer_station, unsigned capture_stream_flags)
    : home(home_station), peer(peer_station) {
  if (peer) {
    REQUIRE(cuCtxSetCurrent(peer->context));
    REQUIRE(cuStreamCreate(&peer_stream, CU_STREAM_NON_BLOCKING));
    REQUIRE(cuEventCreate(&peer_eager, 0));
    REQUIRE(cuEventCreate(&peer_event, CU_EVENT_DISABLE_TIMING));
    REQUIRE(cuEventRecord(peer_eager, peer_stream));
  }
  REQUIRE(cuCtxSetCurrent(home.context));
  REQUIRE(cuStreamCreate(&capturing, capture_stream_flags));
  REQUIRE(cuStreamCreate(&other, CU_STREAM_DEFAULT));
  REQUIRE(cuStreamCreate(&nonblocking, CU_STREAM_NON_BLOCKING));
  REQUIRE(cuStreamCreate(&third, CU_STREAM_NON_BLOCKING));
  for (CUevent* event : {&eager, &captured, &never, &second}) REQUIRE(cuEventCreate(event, 0));
  REQUIRE(cuEventRecord(eager, other));
  REQUIRE(cuMemAlloc(&victim, page));
  REQUIRE(cuMemAlloc(&memory, large));
  REQUIRE(cuMemHostAlloc(&pinned, large, 0));
  pageable = std::malloc(large);
  registered = std::aligned_alloc(page, page);
  unregistered = std::aligned_alloc(page, page);
  REQUIRE(cuMemHostRegister(registered, page, 0));
  CUgraph empty = nullptr;
  REQUIRE(cuGraphCreate(&empty, 0));
  REQUIRE(cuGraphInstantiate(&empty_exec, empty, 0));
  REQUIRE(cuGraphDestroy(empty));
  REQUIRE(cuCtxSynchronize());
}

// What the call under test has freed already answers an error here, which is of no interest.
bench::~bench() {
  for (CUstream stream : {capturing, other, nonblocking, third, peer_stream}) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph graph = nullptr;
    if (stream && cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE)
      cuStreamEndCapture(stream, &graph);
    if (graph) cuGraphDestroy(graph);
  }
  REQUIRE(cuCtxSynchronize());
  for (CUstream stream : {capturing, other, nonblocking, peer_stream})
    if (stream) cuStreamDestroy(stream);
  if (third) cuStreamDestroy(third);
  for (CUevent event : {eager, captured, never, second, peer_eager, peer_event})
    if (event) cuEventDestroy(event);
  if (victim) cuMemFree(victim);
  cuMemFree(memory);
  if (pinned) cuMemFreeHost(pinned);
  if (registered) cuMemHostUnregister(registered);
  cuMemHostUnregister(unregistered);
  std::free(pageable);
  if (empty_exec) cuGraphExecDestroy(empty_exec);
}

CUresult bench::fork() const {
  return in_turn([&] { return mark(); }, [&] { return cuStreamWaitEvent(nonblocking, captured, 0); });
}

} // namespace probe
