// Interaction modes of threads, and captures that overlap.
#include "facts.h"

namespace facts {
namespace {

constexpr auto global = CU_STREAM_CAPTURE_MODE_GLOBAL, local = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
               relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;

CUresult allocate() {
  CUdeviceptr a = 0;
  return cuMemAlloc(&a, 64);
}

CUstreamCaptureMode exchange(CUstreamCaptureMode mode) {
  cuThreadExchangeStreamCaptureMode(&mode);
  return mode;
}

// The result of an allocation by a thread in mode `own`, while another thread's stream captures in mode `captured`.
void tell_modes(kit& k, CUstreamCaptureMode captured, bool same_thread) {
  k.start();
  for (const auto own : {global, local, relaxed}) {
    k.begin(k.stream, captured);
    const auto attempt = [&] {
      const auto before = exchange(own);
      k << allocate();
      exchange(before);
    };
    if (same_thread)
      attempt();
    else
      elsewhere(k, attempt);
    k << k.status(k.stream);
    CUgraph graph = nullptr;
    cuStreamEndCapture(k.stream, &graph);
  }
}

} // namespace

const std::vector<fact> overlap_facts = {
    {"modes: global capture, same thread: alloc in each own mode", [](kit& k) { tell_modes(k, global, true); }},
    {"modes: global capture, other thread", [](kit& k) { tell_modes(k, global, false); }},
    {"modes: thread-local capture, same thread", [](kit& k) { tell_modes(k, local, true); }},
    {"modes: thread-local capture, other thread", [](kit& k) { tell_modes(k, local, false); }},
    {"modes: relaxed capture, same thread", [](kit& k) { tell_modes(k, relaxed, true); }},
    {"modes: what exchange returns",
     [](kit& k) { k.start(), k << exchange(relaxed) << exchange(local) << exchange(global); }},
    {"overlap: two global captures, one thread, alloc: both",
     [](kit& k) {
       k.start();
       k.begin(k.stream), k.begin(k.second);
       k << allocate();
       k.tell_end(k.stream), k.tell_end(k.second);
     }},
    {"overlap: global and relaxed, one thread, alloc",
     [](kit& k) {
       k.start();
       k.begin(k.stream), k.begin(k.second, relaxed);
       k << allocate();
       k.tell_end(k.stream), k.tell_end(k.second);
     }},
    {"overlap: two threads, thread-local, each alone",
     [](kit& k) {
       k.start();
       k.begin(k.stream, local);
       elsewhere(k, [&] {
         k.begin(k.second, local);
         k << allocate();
         k.tell_end(k.second);
       });
       k << k.launch(k.stream);
       k.tell_end(k.stream);
     }},
    {"overlap: global here, relaxed there; alloc there",
     [](kit& k) {
       k.start();
       k.begin(k.stream);
       elsewhere(k, [&] {
         k.begin(k.second, relaxed);
         k << allocate();
         k.tell_end(k.second);
       });
       k.tell_end(k.stream);
     }},
    {"overlap: sync of a stream that captures, from a third capture",
     [](kit& k) {
       k.start();
       k.begin(k.stream, relaxed), k.begin(k.second, relaxed);
       k << cuStreamSynchronize(k.second);
       k.tell_end(k.stream), k.tell_end(k.second);
     }},
    {"overlap: cuCtxSynchronize with two relaxed captures",
     [](kit& k) {
       k.start();
       k.begin(k.stream, relaxed), k.begin(k.second, relaxed);
       k << cuCtxSynchronize();
       k.tell_end(k.stream), k.tell_end(k.second);
     }},
    {"overlap: merge: both captures",
     [](kit& k) {
       k.start();
       CUevent e = k.make_event();
       k.begin(k.stream), k.begin(k.second);
       REQUIRE(k.launch(k.second));
       REQUIRE(cuEventRecord(e, k.second));
       k << cuStreamWaitEvent(k.stream, e, 0);
       k.tell_end(k.stream), k.tell_end(k.second);
     }},
};

} // namespace facts
