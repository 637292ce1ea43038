// Prints the capture table of the driver it runs on, as CSV: `capture_probe one` for one device, `capture_probe two`
// for two. Exit code 77: there are not as many devices.
#include "probe.h"

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

namespace {

using namespace probe;

constexpr const char* mode_names[] = {"global", "thread_local", "relaxed"};
constexpr const char* status_names[] = {"none", "active", "invalidated"};

struct cell {
  CUresult result, next_launch, end;
  CUstreamCaptureStatus status;
  bool has_graph;
  std::size_t nodes;
};

cell measure(const call& tested, const station& home, const station* peer, unsigned flags, int mode,
             bool other_thread) {
  cell found{};
  bench b(home, peer, flags);
  REQUIRE(cuStreamBeginCapture(b.capturing, static_cast<CUstreamCaptureMode>(mode)));
  REQUIRE(b.launch(b.capturing));
  if (other_thread) {
    std::thread([&] {
      cuCtxSetCurrent(home.context);
      found.result = tested.make(b);
    }).join();
  } else {
    found.result = tested.make(b);
  }
  found.next_launch = b.launch(b.capturing);
  REQUIRE(cuStreamIsCapturing(b.capturing, &found.status));
  CUgraph graph = nullptr;
  found.end = cuStreamEndCapture(b.capturing, &graph);
  found.has_graph = graph != nullptr;
  if (graph) {
    REQUIRE(cuGraphGetNodes(graph, nullptr, &found.nodes));
    REQUIRE(cuGraphDestroy(graph));
  }
  return found;
}

// The table of two devices has no column for the next launch, and writes 0 nodes where there is no graph.
void print(const char* kind, const call& tested, int mode, bool other_thread, const cell& c, bool two) {
  const std::string name = std::strchr(tested.name, ',') ? '"' + std::string(tested.name) + '"' : tested.name;
  std::printf("%s,%s,%s,%s,%d,%s", kind, name.c_str(), mode_names[mode], other_thread ? "other" : "same", c.result,
              status_names[c.status]);
  if (!two) std::printf(",%d", c.next_launch);
  std::printf(",%d,%s\n", c.end, c.has_graph || two ? std::to_string(c.nodes).c_str() : "-");
}

} // namespace

int main(int argc, char** argv) {
  const bool two = argc == 2 && std::strcmp(argv[1], "two") == 0;
  if (!two && (argc != 2 || std::strcmp(argv[1], "one") != 0)) {
    std::fprintf(stderr, "usage: capture_probe one|two\n");
    return 2;
  }
  int devices = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGetCount(&devices) != CUDA_SUCCESS || devices < (two ? 2 : 1)) {
    std::printf("skipped: %d CUDA devices, %d needed\n", devices, two ? 2 : 1);
    return 77;
  }
  const auto peer = two ? std::make_unique<station>(1) : nullptr;
  const station home(0);
  std::vector<const std::vector<call>*> tables = {&wait_calls, &memory_calls, &work_calls, &capture_calls,
                                                  &object_calls};
  if (two) tables = {&two_device_calls};
  std::printf("capture_stream,call,begin_mode,calling_thread,result,status_after,%send_capture_result,graph_nodes\n",
              two ? "" : "next_launch_result,");
  for (const bool blocking : {true, false})
    for (const auto* table : tables)
      for (const call& tested : *table)
        for (int mode = 0; mode < 3; ++mode)
          for (const bool other_thread : {false, true}) {
            const unsigned flags = blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
            const char* kind = blocking ? "blocking" : "nonblocking";
            print(kind, tested, mode, other_thread, measure(tested, home, peer.get(), flags, mode, other_thread), two);
          }
}
