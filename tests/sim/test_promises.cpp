// What the simulation promises beyond what a real driver does. Expected values: docs/simulated-driver.md and the public
// headers.
#include "tests/support/catch.hpp"

#include "call_names.h"
#include "client.h"
#include "include/capturesan.h"
#include "include/capturesan_sim.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

[[maybe_unused]] const int devices = setenv("CAPTURESAN_SIM_DEVICES", "8", 1);

void* driver() {
  static void* const handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return handle;
}

CUdeviceptr allocate(std::size_t bytes = 64) {
  CUdeviceptr address = 0;
  REQUIRE(cuMemAlloc(&address, bytes) == CUDA_SUCCESS);
  return address;
}

struct seen_launch {
  int runs = 0;
  capturesan_host_launch launch{};
  CUdeviceptr target = 0;
  unsigned what = 0;
};

void remember(const capturesan_host_launch* launch, void* user) {
  auto& seen = *static_cast<seen_launch*>(user);
  ++seen.runs;
  seen.launch = *launch;
  std::memcpy(&seen.target, launch->parameters[0], sizeof seen.target);
  std::memcpy(&seen.what, launch->parameters[1], sizeof seen.what);
}

} // namespace

TEST_CASE("every call of the list is exported") {
  std::set<void*> addresses;
  for (const auto& call : call_names()) {
    INFO(call.symbol);
    void* address = dlsym(driver(), call.symbol.c_str());
    CHECK(address != nullptr);
    Dl_info info{};
    CHECK(dladdr(address, &info) != 0);
    CHECK(std::string(info.dli_sname ? info.dli_sname : "") == call.symbol);
    addresses.insert(address);
  }
  CHECK(addresses.size() == call_names().size()); // no two share one: a hook tells them apart by address
}

TEST_CASE("cuGetProcAddress hands out the exported symbols") {
  for (const auto& call : call_names()) {
    INFO(call.symbol);
    void* address = nullptr;
    CUdriverProcAddressQueryResult status{};
    const cuuint64_t flags =
        call.per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
    REQUIRE(cuGetProcAddress(call.api.c_str(), &address, call.since, flags, &status) == CUDA_SUCCESS);
    CHECK(status == CU_GET_PROC_ADDRESS_SUCCESS);
    Dl_info info{};
    REQUIRE(dladdr(address, &info) != 0);
    CHECK(dlsym(driver(), info.dli_sname) == address);
    CHECK(std::string(info.dli_sname).starts_with(call.api));
  }
}

TEST_CASE("the driver says that it is simulated") {
  const auto* version_text = static_cast<const char*>(dlsym(driver(), "capturesan_sim_version"));
  REQUIRE(version_text != nullptr);
  CHECK(std::string(version_text).find('.') != std::string::npos);
  const client::device device;
  REQUIRE(device.good);
  char name[64] = {};
  int version = 0;
  CHECK(cuDeviceGetName(name, sizeof name, 0) == CUDA_SUCCESS);
  CHECK(std::string(name) == "CaptureSan simulated device");
  CHECK(cuDriverGetVersion(&version) == CUDA_SUCCESS);
  CHECK(version == 13000);
}

TEST_CASE("a call that is not simulated answers 801 and is counted by name") {
  REQUIRE(cuInit(0) == CUDA_SUCCESS);
  const char* name = nullptr;
  unsigned long long count = 0;
  CHECK(capturesan_sim_unsupported(0, &name, &count) == 0);
  CUmemGenericAllocationHandle handle = 0;
  const CUmulticastObjectProp properties{};
  CHECK(cuMulticastCreate(&handle, &properties) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuMulticastCreate(&handle, &properties) == CUDA_ERROR_NOT_SUPPORTED);
  REQUIRE(capturesan_sim_unsupported(0, &name, &count) == 1);
  CHECK(std::string(name) == "cuMulticastCreate");
  CHECK(count == 2);
  CHECK(capturesan_sim_unsupported(1, &name, &count) == 0);
}

TEST_CASE("undocumented tables are not imitated") {
  const void* table = &table;
  const CUuuid id{};
  CHECK(cuGetExportTable(&table, &id) != CUDA_SUCCESS);
  CHECK(table == nullptr);
}

TEST_CASE("a host kernel sees the launch, eagerly and at each replay") {
  const client::device device;
  REQUIRE(device.good);
  seen_launch seen;
  REQUIRE(capturesan_use_host_kernel("add", remember, &seen) == 1);
  const CUdeviceptr target = allocate();
  REQUIRE(device.launch(device.stream, target, 41) == CUDA_SUCCESS);
  CHECK(seen.runs == 1);
  CHECK(seen.launch.grid[0] == 2);
  CHECK(seen.launch.block[0] == 3);
  CHECK(seen.launch.shared_bytes == 16);
  CHECK(seen.launch.parameter_count == 2);
  CHECK(seen.target == target);
  CHECK(seen.what == 41);

  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  REQUIRE(cuStreamBeginCapture(device.stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  REQUIRE(device.launch(device.stream, target, 42) == CUDA_SUCCESS);
  REQUIRE(cuStreamEndCapture(device.stream, &graph) == CUDA_SUCCESS);
  CHECK(seen.runs == 1); // captured, not run
  REQUIRE(cuGraphInstantiate(&exec, graph, 0) == CUDA_SUCCESS);
  for (int i = 0; i < 5; ++i) REQUIRE(cuGraphLaunch(exec, device.stream) == CUDA_SUCCESS);
  CHECK(seen.runs == 6);
  CHECK(seen.what == 42);

  capturesan_use_host_kernel("add", nullptr, nullptr);
  REQUIRE(cuGraphLaunch(exec, device.stream) == CUDA_SUCCESS);
  CHECK(seen.runs == 6);
}

TEST_CASE("a host function may call the driver") {
  const client::device device;
  REQUIRE(device.good);
  static CUresult inner = CUDA_ERROR_UNKNOWN;
  const auto body = [](void*) {
    CUdeviceptr address = 0;
    inner = cuMemAlloc(&address, 64);
  };
  CHECK(cuLaunchHostFunc(device.stream, body, nullptr) == CUDA_SUCCESS);
  CHECK(inner == CUDA_SUCCESS);
}

TEST_CASE("so may each of several host nodes, and the launch goes on") {
  const client::device device;
  REQUIRE(device.good);
  static int good = 0;
  const auto body = [](void*) {
    CUdeviceptr address = 0;
    if (cuMemAlloc(&address, 64) == CUDA_SUCCESS && cuMemFree(address) == CUDA_SUCCESS) ++good;
  };
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  REQUIRE(cuStreamBeginCapture(device.stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  for (int i = 0; i < 3; ++i) REQUIRE(cuLaunchHostFunc(device.stream, body, nullptr) == CUDA_SUCCESS);
  REQUIRE(cuStreamEndCapture(device.stream, &graph) == CUDA_SUCCESS);
  REQUIRE(cuGraphInstantiate(&exec, graph, 0) == CUDA_SUCCESS);
  CHECK(cuGraphLaunch(exec, device.stream) == CUDA_SUCCESS);
  CHECK(good == 3);
}

TEST_CASE("a while node repeats as long as a host kernel says so") {
  const client::device device;
  REQUIRE(device.good);
  CUgraph graph = nullptr;
  REQUIRE(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
  params.conditional.size = 1;
  params.conditional.ctx = device.context;
  REQUIRE(cuGraphConditionalHandleCreate(&params.conditional.handle, graph, device.context, 1,
                                         CU_GRAPH_COND_ASSIGN_DEFAULT) == CUDA_SUCCESS);
  CUgraphNode node = nullptr;
  REQUIRE(cuGraphAddNode(&node, graph, nullptr, nullptr, 0, &params) == CUDA_SUCCESS);
  struct countdown {
    CUgraphConditionalHandle handle;
    unsigned left;
    int rounds;
  } counter{params.conditional.handle, 3, 0};
  capturesan_use_host_kernel(
      "add",
      [](const capturesan_host_launch*, void* user) {
        auto& c = *static_cast<countdown*>(user);
        ++c.rounds;
        capturesan_set_condition(c.handle, --c.left);
      },
      &counter);
  CUgraph body = params.conditional.phGraph_out[0];
  const CUdeviceptr target = allocate();
  CUstream stream = device.stream;
  REQUIRE(cuStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_GLOBAL) ==
          CUDA_SUCCESS);
  REQUIRE(device.launch(stream, target) == CUDA_SUCCESS);
  REQUIRE(cuStreamEndCapture(stream, &body) == CUDA_SUCCESS);
  CUgraphExec exec = nullptr;
  REQUIRE(cuGraphInstantiate(&exec, graph, 0) == CUDA_SUCCESS);
  REQUIRE(cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
  CHECK(counter.rounds == 3);
}

TEST_CASE("per-thread variants take stream 0 for the thread's own") {
  const client::device device;
  REQUIRE(device.good);
  using launch_function = decltype(&cuLaunchKernel);
  const auto launch = reinterpret_cast<launch_function>(dlsym(driver(), "cuLaunchKernel_ptsz"));
  CUdeviceptr target = allocate();
  unsigned what = 1;
  void* values[] = {&target, &what};
  REQUIRE(cuStreamBeginCapture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  CHECK(launch(device.add, 1, 1, 1, 1, 1, 1, 0, nullptr, values, nullptr) == CUDA_SUCCESS);
  std::thread([&] {
    cuCtxSetCurrent(device.context);
    CHECK(launch(device.add, 1, 1, 1, 1, 1, 1, 0, nullptr, values, nullptr) == CUDA_SUCCESS);
  }).join();
  CUgraph graph = nullptr;
  std::size_t nodes = 0;
  REQUIRE(cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph) == CUDA_SUCCESS);
  REQUIRE(cuGraphGetNodes(graph, nullptr, &nodes) == CUDA_SUCCESS);
  CHECK(nodes == 1);
}

TEST_CASE("eight devices, each with its context and memory") {
  REQUIRE(cuInit(0) == CUDA_SUCCESS);
  int count = 0;
  REQUIRE(cuDeviceGetCount(&count) == CUDA_SUCCESS);
  REQUIRE(count == 8);
  std::set<CUcontext> contexts;
  std::set<CUdeviceptr> addresses;
  for (int i = 0; i < count; ++i) {
    const client::device device(i);
    REQUIRE(device.good);
    contexts.insert(device.context);
    const CUdeviceptr address = allocate(4 << 20);
    addresses.insert(address);
    int ordinal = -1;
    CHECK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) == CUDA_SUCCESS);
    CHECK(ordinal == i);
    unsigned value = 100 + static_cast<unsigned>(i);
    CHECK(cuMemcpyHtoD(address, &value, sizeof value) == CUDA_SUCCESS);
  }
  CHECK(contexts.size() == 8);
  CHECK(addresses.size() == 8);
  const CUdeviceptr last = *addresses.rbegin(), first = *addresses.begin();
  CHECK(cuMemcpy(first, last, 4) == CUDA_SUCCESS);
}

TEST_CASE("a child of fork has no driver") {
  const client::device device;
  REQUIRE(device.good);
  const pid_t child = fork();
  if (child == 0) {
    CUdeviceptr address = 0;
    _exit(cuMemAlloc(&address, 64) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
