// Facts about a driver, each a short program whose answers are written down as numbers: what the capture tables do not
// ask. Every fact runs in a process of its own, so that a lost context or an open capture harms no other.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <initializer_list>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace facts {

inline constexpr std::size_t kib = 1024, mib = 1024 * kib;

// Ends the process if set-up fails: the fact has no answer then.
void require(CUresult result, const char* what);
#define REQUIRE(call) facts::require((call), #call)

// What most facts start from: a device with its primary context current, two kernels, a buffer, streams.
struct kit {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction store = nullptr; // store(unsigned* p): *p = *p + 1
  CUfunction other = nullptr; // other(unsigned* p, unsigned v): *p = v
  CUdeviceptr buffer = 0;     // 1 MiB
  CUstream stream = nullptr;  // non-blocking
  CUstream blocking = nullptr, second = nullptr;

  // Sets all that up; a fact that asks about a driver before that does not call it.
  void start();

  // One answer more.
  kit& operator<<(long long value);
  kit& operator<<(const std::string& text);
  const std::string& answer() const { return answer_; }

  CUresult launch(CUstream on) const { return launch(on, buffer); }
  CUresult launch(CUstream on, CUdeviceptr target) const;
  void begin(CUstream on, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) const;
  // Status of the stream, then EndCapture's result, then the number of nodes (-1: no graph).
  void tell_end(CUstream on);
  int status(CUstream on) const;

  CUdeviceptr allocate(std::size_t bytes) const;
  CUstream make_stream(unsigned flags = CU_STREAM_NON_BLOCKING) const;
  CUevent make_event(unsigned flags = CU_EVENT_DISABLE_TIMING) const;
  CUgraph make_graph() const;
  CUgraphNode add_kernel(CUgraph graph, CUdeviceptr target, std::initializer_list<CUgraphNode> after = {}) const;
  CUgraphNode add_set(CUgraph graph, CUdeviceptr target, std::size_t width = 64, std::size_t height = 1,
                      unsigned value = 1) const;
  CUgraphExec instantiate(CUgraph graph, unsigned long long flags = 0) const;
  // A graph captured from `work` on `stream`.
  template <class F>
  CUgraph captured(F&& work) const {
    begin(stream);
    work();
    CUgraph graph = nullptr;
    REQUIRE(cuStreamEndCapture(stream, &graph));
    return graph;
  }
  unsigned read(CUdeviceptr from) const;
  void write(CUdeviceptr to, unsigned value) const;

 private:
  std::string answer_;
};

// Runs on another thread, with the context current there.
template <class F>
void elsewhere(const kit& k, F&& body) {
  std::thread([&] {
    cuCtxSetCurrent(k.context);
    body();
  }).join();
}

struct fact {
  const char* name;
  void (*ask)(kit&);
};

extern const std::vector<fact> driver_facts;
extern const std::vector<fact> memory_facts;
extern const std::vector<fact> overlap_facts;
extern const std::vector<fact> per_thread_facts;
extern const std::vector<fact> capture_facts;
extern const std::vector<fact> capture_work_facts;
extern const std::vector<fact> capture_call_facts;
extern const std::vector<fact> graph_facts;
extern const std::vector<fact> update_facts;
extern const std::vector<fact> graph_memory_facts;
extern const std::vector<fact> replay_facts;
extern const std::vector<fact> two_device_facts; // a second device is needed

} // namespace facts
