// What launches cost with whatever is preloaded, on whatever driver there is: nanoseconds per launch as one JSON line.
//   replay_cost SAMPLES LAUNCHES
// replay: one graph with one tiny kernel, back to back; eager: the same kernel launched by itself. One synchronisation
// a sample.
#include <chrono>
#include <vector>

#include <sched.h>

#include "examples/example.h"

namespace {

template <class F>
std::vector<double> measure(int samples, int launches, CUstream stream, F&& launch) {
  std::vector<double> ns;
  for (int s = -1; s < samples; ++s) { // the first one warms up
    const auto from = std::chrono::steady_clock::now();
    for (int i = 0; i < launches; ++i) launch();
    const auto issued = std::chrono::steady_clock::now();
    CHECK(cuStreamSynchronize(stream));
    if (s >= 0) ns.push_back(std::chrono::duration<double, std::nano>(issued - from).count() / launches);
  }
  return ns;
}

void print(const char* name, const std::vector<double>& ns, bool last) {
  std::printf("\"%s\": [", name);
  for (std::size_t i = 0; i < ns.size(); ++i) std::printf("%s%.1f", i == 0 ? "" : ", ", ns[i]);
  std::printf("]%s", last ? "}\n" : ", ");
}

} // namespace

int main(int argc, char** argv) {
  const int samples = argc > 1 ? std::atoi(argv[1]) : 10;
  const int launches = argc > 2 ? std::atoi(argv[2]) : 500;
  cpu_set_t
      cores; // one core for the whole run: which one a process lands on changes its speed by more than a shim does
  sched_getaffinity(0, sizeof(cores), &cores);
  for (int i = CPU_COUNT(&cores) / 2, seen = 0, cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &cores) && seen++ == i) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      sched_setaffinity(0, sizeof(one), &one);
      break;
    }
  }
  example::device device;
  CUstream stream = example::make_stream();
  CUdeviceptr data = example::allocate();
  CUgraph graph = nullptr;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(example::launch(device.add, stream, data, 1u, 1u));
  CHECK(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec = example::instantiate(graph);
  const auto replay = measure(samples, launches, stream, [&] { cuGraphLaunch(exec, stream); });
  const auto eager = measure(samples, launches, stream, [&] { example::launch(device.add, stream, data, 1u, 1u); });
  std::printf("{");
  print("replay", replay, false);
  print("eager", eager, true);
}
