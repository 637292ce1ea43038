#include "facts.h"

#include "include/capturesan.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace facts {
namespace {

const char* const kernel_text = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 counter;
.visible .entry store(.param .u64 target) {
  .reg .u64 %address;
  .reg .u32 %value;
  ld.param.u64 %address, [target];
  cvta.to.global.u64 %address, %address;
  ld.global.u32 %value, [%address];
  add.u32 %value, %value, 1;
  st.global.u32 [%address], %value;
  ret;
}
.visible .entry other(.param .u64 target, .param .u32 what) {
  .reg .u64 %address;
  .reg .u32 %value;
  ld.param.u64 %address, [target];
  ld.param.u32 %value, [what];
  cvta.to.global.u64 %address, %address;
  st.global.u32 [%address], %value;
  ret;
}
)";

// What the kernels do, for a driver that does not run them.
void store_on_host(const capturesan_host_launch* launch, void*) {
  unsigned* target = nullptr;
  std::memcpy(&target, launch->parameters[0], sizeof target);
  *target += 1;
}

void other_on_host(const capturesan_host_launch* launch, void*) {
  unsigned* target = nullptr;
  std::memcpy(&target, launch->parameters[0], sizeof target);
  std::memcpy(target, launch->parameters[1], sizeof *target);
}

} // namespace

void require(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = "?";
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "facts_probe: %s -> %s\n", what, name);
  _exit(3);
}

void kit::start() {
  capturesan_use_host_kernel("store", store_on_host, nullptr);
  capturesan_use_host_kernel("other", other_on_host, nullptr);
  REQUIRE(cuInit(0));
  REQUIRE(cuDeviceGet(&device, 0));
  REQUIRE(cuDevicePrimaryCtxRetain(&context, device));
  REQUIRE(cuCtxSetCurrent(context));
  REQUIRE(cuModuleLoadData(&module, kernel_text));
  REQUIRE(cuModuleGetFunction(&store, module, "store"));
  REQUIRE(cuModuleGetFunction(&other, module, "other"));
  buffer = allocate(mib);
  stream = make_stream();
  blocking = make_stream(CU_STREAM_DEFAULT);
  second = make_stream();
  REQUIRE(cuMemsetD8(buffer, 0, mib));
  REQUIRE(launch(stream));
  unsigned value = 0;
  CUdeviceptr target = buffer;
  void* values[] = {&target, &value};
  REQUIRE(cuLaunchKernel(other, 1, 1, 1, 1, 1, 1, 0, stream, values, nullptr));
  REQUIRE(cuCtxSynchronize());
}

kit& kit::operator<<(long long value) { return *this << std::to_string(value); }

kit& kit::operator<<(const std::string& text) {
  if (!answer_.empty()) answer_ += ' ';
  answer_ += text;
  return *this;
}

CUresult kit::launch(CUstream on, CUdeviceptr target) const {
  void* values[] = {&target};
  return cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, on, values, nullptr);
}

void kit::begin(CUstream on, CUstreamCaptureMode mode) const { REQUIRE(cuStreamBeginCapture(on, mode)); }

int kit::status(CUstream on) const {
  CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
  REQUIRE(cuStreamIsCapturing(on, &found));
  return found;
}

void kit::tell_end(CUstream on) {
  *this << status(on);
  CUgraph graph = nullptr;
  *this << cuStreamEndCapture(on, &graph);
  std::size_t nodes = 0;
  if (graph) REQUIRE(cuGraphGetNodes(graph, nullptr, &nodes));
  *this << (graph ? static_cast<long long>(nodes) : -1);
}

CUdeviceptr kit::allocate(std::size_t bytes) const {
  CUdeviceptr address = 0;
  REQUIRE(cuMemAlloc(&address, bytes));
  return address;
}

CUstream kit::make_stream(unsigned flags) const {
  CUstream made = nullptr;
  REQUIRE(cuStreamCreate(&made, flags));
  return made;
}

CUevent kit::make_event(unsigned flags) const {
  CUevent made = nullptr;
  REQUIRE(cuEventCreate(&made, flags));
  return made;
}

CUgraph kit::make_graph() const {
  CUgraph made = nullptr;
  REQUIRE(cuGraphCreate(&made, 0));
  return made;
}

CUgraphNode kit::add_kernel(CUgraph graph, CUdeviceptr target, std::initializer_list<CUgraphNode> after) const {
  void* values[] = {&target};
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = store;
  params.gridDimX = params.gridDimY = params.gridDimZ = params.blockDimX = params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = values;
  CUgraphNode node = nullptr;
  REQUIRE(cuGraphAddKernelNode(&node, graph, after.begin(), after.size(), &params));
  return node;
}

CUgraphNode kit::add_set(CUgraph graph, CUdeviceptr target, std::size_t width, std::size_t height,
                         unsigned value) const {
  CUDA_MEMSET_NODE_PARAMS params{};
  params.dst = target;
  params.pitch = height > 1 ? 512 : 0;
  params.value = value;
  params.elementSize = 1;
  params.width = width;
  params.height = height;
  CUgraphNode node = nullptr;
  REQUIRE(cuGraphAddMemsetNode(&node, graph, nullptr, 0, &params, context));
  return node;
}

CUgraphExec kit::instantiate(CUgraph graph, unsigned long long flags) const {
  CUgraphExec exec = nullptr;
  REQUIRE(cuGraphInstantiate(&exec, graph, flags));
  return exec;
}

unsigned kit::read(CUdeviceptr from) const {
  unsigned value = 0;
  REQUIRE(cuMemcpyDtoH(&value, from, sizeof value));
  return value;
}

void kit::write(CUdeviceptr to, unsigned value) const { REQUIRE(cuMemcpyHtoD(to, &value, sizeof value)); }

} // namespace facts
