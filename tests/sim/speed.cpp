// Capture of 10,000 nodes, instantiate and 1,000 launches take less than two seconds of one core; memory grows with the
// nodes. The limit is the project's own, not a property of any driver.
#include "client.h"

#include <cstdio>
#include <ctime>
#include <fstream>
#include <unistd.h>

namespace {

#define REQUIRE(call)                                                                                                  \
  if (const CUresult result = (call); result != CUDA_SUCCESS) {                                                        \
    std::printf("%s -> %d\n", #call, result);                                                                          \
    return 1;                                                                                                          \
  }

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double resident_mib() {
  std::ifstream statm("/proc/self/statm");
  double total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

CUresult capture(const client::device& device, CUdeviceptr target, int nodes, CUgraph* graph) {
  CUresult result = cuStreamBeginCapture(device.stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  for (int i = 0; i < nodes && !result; ++i) result = device.launch(device.stream, target, static_cast<unsigned>(i));
  return result ? result : cuStreamEndCapture(device.stream, graph);
}

} // namespace

int main() {
  constexpr int nodes = 10000, launches = 1000;
  constexpr double limit_seconds = 2, limit_bytes_a_node = 2048;
  const client::device device;
  CUdeviceptr target = 0;
  REQUIRE(device.good ? cuMemAlloc(&target, 64) : CUDA_ERROR_UNKNOWN);

  const double start = cpu_seconds();
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  REQUIRE(capture(device, target, nodes, &graph));
  const double captured = cpu_seconds();
  REQUIRE(cuGraphInstantiate(&exec, graph, 0));
  const double instantiated = cpu_seconds();
  for (int i = 0; i < launches; ++i) REQUIRE(cuGraphLaunch(exec, device.stream));
  const double launched = cpu_seconds();
  std::printf("capture of %d nodes %.3f s, instantiate %.3f s, %d launches %.3f s; together %.3f s (limit %.0f s)\n",
              nodes, captured - start, instantiated - captured, launches, launched - instantiated, launched - start,
              limit_seconds);

  const double before = resident_mib();
  constexpr int many = 20 * nodes;
  REQUIRE(capture(device, target, many, &graph));
  REQUIRE(cuGraphInstantiate(&exec, graph, 0));
  const double bytes_a_node = (resident_mib() - before) * (1 << 20) / many;
  std::printf("%.0f bytes a node, captured and instantiated, at %d nodes (limit %.0f)\n", bytes_a_node, many,
              limit_bytes_a_node);
  return launched - start < limit_seconds && bytes_a_node < limit_bytes_a_node ? 0 : 1;
}
