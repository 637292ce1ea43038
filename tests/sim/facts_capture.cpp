// Captures: how they begin, fork, overlap and end; events before, in and after them.
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

// An event recorded in a capture that has ended.
CUevent stale_event(kit& k) {
  CUevent e = k.make_event(0);
  k.begin(k.second);
  REQUIRE(k.launch(k.second));
  REQUIRE(cuEventRecord(e, k.second));
  CUgraph graph = nullptr;
  REQUIRE(cuStreamEndCapture(k.second, &graph));
  return e;
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

const std::vector<fact> capture_facts = {
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
    {"legacy: launch with two captures on blocking streams",
     [](kit& k) {
       k.start();
       CUstream third = k.make_stream(CU_STREAM_DEFAULT);
       k.begin(k.blocking), k.begin(third), k.begin(k.stream);
       k << k.launch(nullptr);
       k.tell_end(k.blocking), k.tell_end(third), k.tell_end(k.stream);
     }},
    {"legacy: end capture on it; update its dependencies; with a blocking capture",
     [](kit& k) {
       k.start();
       CUgraph graph = nullptr;
       k << cuStreamEndCapture(nullptr, &graph) << cuStreamUpdateCaptureDependencies(nullptr, nullptr, nullptr, 0, 0);
       k.begin(k.blocking);
       k << cuStreamEndCapture(nullptr, &graph) << k.status(k.blocking)
         << cuStreamUpdateCaptureDependencies(nullptr, nullptr, nullptr, 0, 0);
       k.tell_end(k.blocking);
     }},
    {"legacy: launch while only a forked stream is blocking",
     [](kit& k) {
       k.start();
       CUevent e = k.make_event();
       k.begin(k.stream);
       REQUIRE(k.launch(k.stream));
       REQUIRE(cuEventRecord(e, k.stream));
       REQUIRE(cuStreamWaitEvent(k.blocking, e, 0));
       k << k.launch(nullptr);
       k.tell_end(k.stream);
     }},
    {"legacy: launch after a blocking capture was invalidated",
     [](kit& k) {
       k.start();
       k.begin(k.blocking);
       k << cuStreamSynchronize(k.blocking) << k.launch(nullptr);
       k.tell_end(k.blocking);
     }},
    {"per-thread: capture, launch, end",
     [](kit& k) {
       k.start();
       k << cuStreamBeginCapture(CU_STREAM_PER_THREAD, global) << k.launch(CU_STREAM_PER_THREAD);
       k.tell_end(CU_STREAM_PER_THREAD);
     }},
    {"per-thread: launch to legacy while it captures",
     [](kit& k) {
       k.start();
       k.begin(CU_STREAM_PER_THREAD);
       k << k.launch(CU_STREAM_LEGACY);
       k.tell_end(CU_STREAM_PER_THREAD);
     }},
    {"per-thread: synchronous copy while it captures",
     [](kit& k) {
       k.start();
       unsigned value = 0;
       k.begin(CU_STREAM_PER_THREAD);
       k << cuMemcpyHtoD(k.buffer, &value, 4);
       k.tell_end(CU_STREAM_PER_THREAD);
     }},
    {"per-thread: another thread's own default stream does not capture",
     [](kit& k) {
       k.start();
       k.begin(CU_STREAM_PER_THREAD, relaxed);
       elsewhere(k, [&] { k << k.status(CU_STREAM_PER_THREAD) << k.launch(CU_STREAM_PER_THREAD); });
       k.tell_end(CU_STREAM_PER_THREAD);
     }},
    {"end: null result; then well",
     [](kit& k) {
       k.start();
       k.begin(k.stream);
       k << cuStreamEndCapture(k.stream, nullptr);
       k.tell_end(k.stream);
     }},
    {"end: an invalidated capture on another thread",
     [](kit& k) {
       k.start();
       k.begin(k.stream);
       allocate();
       elsewhere(k, [&] { k.tell_end(k.stream); });
       k << k.status(k.stream);
     }},
    {"end: unjoined work, on another thread",
     [](kit& k) {
       k.start();
       CUevent e = k.make_event();
       k.begin(k.stream);
       REQUIRE(k.launch(k.stream));
       REQUIRE(cuEventRecord(e, k.stream));
       REQUIRE(cuStreamWaitEvent(k.second, e, 0));
       REQUIRE(k.launch(k.second));
       elsewhere(k, [&] { k.tell_end(k.stream); });
       k << k.status(k.second);
     }},
    {"end: on a forked stream after invalidation",
     [](kit& k) {
       k.start();
       CUevent e = k.make_event();
       k.begin(k.stream);
       REQUIRE(cuEventRecord(e, k.stream));
       REQUIRE(cuStreamWaitEvent(k.second, e, 0));
       allocate();
       k.tell_end(k.second);
       k.tell_end(k.stream);
     }},
    {"end: empty capture", [](kit& k) { k.start(), k.begin(k.stream), k.tell_end(k.stream); }},
    {"fork: joined, then more work on the fork",
     [](kit& k) {
       k.start();
       CUevent e = k.make_event(), f = k.make_event();
       k.begin(k.stream);
       REQUIRE(k.launch(k.stream));
       REQUIRE(cuEventRecord(e, k.stream));
       REQUIRE(cuStreamWaitEvent(k.second, e, 0));
       REQUIRE(k.launch(k.second));
       REQUIRE(cuEventRecord(f, k.second));
       REQUIRE(cuStreamWaitEvent(k.stream, f, 0));
       k << k.launch(k.second);
       k.tell_end(k.stream);
     }},
    {"fork: joined through a third stream",
     [](kit& k) {
       k.start();
       CUevent e = k.make_event(), f = k.make_event(), g = k.make_event();
       CUstream third = k.make_stream();
       k.begin(k.stream);
       REQUIRE(cuEventRecord(e, k.stream));
       REQUIRE(cuStreamWaitEvent(k.second, e, 0));
       REQUIRE(k.launch(k.second));
       REQUIRE(cuEventRecord(f, k.second));
       REQUIRE(cuStreamWaitEvent(third, f, 0));
       REQUIRE(cuEventRecord(g, third));
       REQUIRE(cuStreamWaitEvent(k.stream, g, 0));
       k.tell_end(k.stream);
     }},
    {"fork: the forked stream is destroyed with work on it",
     [](kit& k) {
       k.start();
       CUevent e = k.make_event();
       k.begin(k.stream);
       REQUIRE(cuEventRecord(e, k.stream));
       REQUIRE(cuStreamWaitEvent(k.second, e, 0));
       REQUIRE(k.launch(k.second));
       k << cuStreamDestroy(k.second);
       k.tell_end(k.stream);
     }},
    {"fork: an event of an empty capture forks too",
     [](kit& k) {
       k.start();
       CUevent e = k.make_event();
       k.begin(k.stream);
       REQUIRE(cuEventRecord(e, k.stream));
       k << cuStreamWaitEvent(k.second, e, 0) << k.status(k.second);
       k.tell_end(k.stream);
       k << k.status(k.second);
     }},
    {"fork: of an invalidated capture",
     [](kit& k) {
       k.start();
       CUevent e = k.make_event();
       k.begin(k.stream);
       REQUIRE(cuEventRecord(e, k.stream));
       allocate();
       k << cuStreamWaitEvent(k.second, e, 0) << k.status(k.second) << cuEventRecord(e, k.stream) << cuEventQuery(e);
       k.tell_end(k.stream);
     }},
    {"origin destroyed: result; alloc afterwards; query of its event",
     [](kit& k) {
       k.start();
       CUevent e = k.make_event();
       k.begin(k.second);
       REQUIRE(k.launch(k.second));
       REQUIRE(cuEventRecord(e, k.second));
       k << cuStreamDestroy(k.second) << allocate() << cuEventQuery(e);
     }},
    {"stale event: query; sync; elapsed; wait; record again; query",
     [](kit& k) {
       k.start();
       CUevent e = stale_event(k);
       float ms = 0;
       k << cuEventQuery(e) << cuEventSynchronize(e) << cuEventElapsedTime(&ms, e, e)
         << cuStreamWaitEvent(k.stream, e, 0) << cuEventRecord(e, k.stream) << cuEventSynchronize(e) << cuEventQuery(e);
     }},
    {"stale event in a global capture: query",
     [](kit& k) {
       k.start();
       CUevent e = stale_event(k);
       k.begin(k.stream);
       k << cuEventQuery(e);
       k.tell_end(k.stream);
     }},
    {"stale event in a relaxed capture: query; wait",
     [](kit& k) {
       k.start();
       CUevent e = stale_event(k);
       k.begin(k.stream, relaxed);
       k << cuEventQuery(e) << k.status(k.stream) << cuStreamWaitEvent(k.stream, e, 0);
       k.tell_end(k.stream);
     }},
    {"stale event, external wait in a capture",
     [](kit& k) {
       k.start();
       CUevent e = stale_event(k);
       k.begin(k.stream);
       k << cuStreamWaitEvent(k.stream, e, CU_EVENT_WAIT_EXTERNAL);
       k.tell_end(k.stream);
     }},
    {"external events: record and wait become nodes; the event after a launch",
     [](kit& k) {
       k.start();
       CUevent e = k.make_event();
       CUgraph graph = k.captured([&] {
         REQUIRE(k.launch(k.stream));
         k << cuEventRecordWithFlags(e, k.stream, CU_EVENT_RECORD_EXTERNAL)
           << cuStreamWaitEvent(k.stream, e, CU_EVENT_WAIT_EXTERNAL);
       });
       CUgraphExec exec = k.instantiate(graph);
       k << cuGraphLaunch(exec, k.stream) << cuEventSynchronize(e) << cuEventQuery(e);
     }},
    {"dependencies: set on an idle stream; bad flag; node of another graph; add",
     [](kit& k) {
       k.start();
       CUgraph foreign = k.make_graph();
       CUgraphNode n = k.add_kernel(foreign, k.buffer);
       k << cuStreamUpdateCaptureDependencies(k.stream, nullptr, nullptr, 0, 0);
       k.begin(k.stream);
       k << cuStreamUpdateCaptureDependencies(k.stream, nullptr, nullptr, 0, 2)
         << cuStreamUpdateCaptureDependencies(k.stream, &n, nullptr, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
       k.tell_end(k.stream);
     }},
    {"dependencies: a node added by hand to the capturing graph joins in",
     [](kit& k) {
       k.start();
       k.begin(k.stream);
       REQUIRE(k.launch(k.stream));
       CUstreamCaptureStatus status{};
       cuuint64_t id = 0;
       CUgraph graph = nullptr;
       const CUgraphNode* before = nullptr;
       const CUgraphEdgeData* data = nullptr;
       std::size_t count = 0;
       k << cuStreamGetCaptureInfo(k.stream, &status, &id, &graph, &before, &data, &count)
         << static_cast<long long>(count);
       CUgraphNode n = k.add_kernel(graph, k.buffer, {before[0]});
       k << cuStreamUpdateCaptureDependencies(k.stream, &n, nullptr, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES)
         << k.launch(k.stream);
       k.tell_end(k.stream);
     }},
    {"to graph: into a graph with a node; the same handle comes back",
     [](kit& k) {
       k.start();
       CUgraph graph = k.make_graph(), ended = nullptr;
       CUgraphNode n = k.add_kernel(graph, k.buffer);
       k << cuStreamBeginCaptureToGraph(k.stream, graph, &n, nullptr, 1, global) << k.launch(k.stream);
       k << cuStreamEndCapture(k.stream, &ended) << (ended == graph);
       std::size_t nodes = 0, edges = 0;
       REQUIRE(cuGraphGetNodes(graph, nullptr, &nodes));
       REQUIRE(cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
       k << static_cast<long long>(nodes) << static_cast<long long>(edges);
     }},
    {"to graph: invalidated: the graph stays",
     [](kit& k) {
       k.start();
       CUgraph graph = k.make_graph();
       k << cuStreamBeginCaptureToGraph(k.stream, graph, nullptr, nullptr, 0, global) << k.launch(k.stream)
         << allocate();
       k.tell_end(k.stream);
       std::size_t nodes = 9;
       k << cuGraphGetNodes(graph, nullptr, &nodes) << static_cast<long long>(nodes);
     }},
    {"to graph: two captures into one graph",
     [](kit& k) {
       k.start();
       CUgraph graph = k.make_graph();
       k << cuStreamBeginCaptureToGraph(k.stream, graph, nullptr, nullptr, 0, global)
         << cuStreamBeginCaptureToGraph(k.second, graph, nullptr, nullptr, 0, global);
     }},
    {"begin: a forked stream; a stream of an invalidated capture",
     [](kit& k) {
       k.start();
       CUevent e = k.make_event();
       k.begin(k.stream);
       REQUIRE(cuEventRecord(e, k.stream));
       REQUIRE(cuStreamWaitEvent(k.second, e, 0));
       k << cuStreamBeginCapture(k.second, global) << allocate() << cuStreamBeginCapture(k.stream, global);
     }},
    {"left open by a thread that ended",
     [](kit& k) {
       k.start();
       elsewhere(k, [&] { k.begin(k.stream); });
       k << allocate() << k.status(k.stream);
       k.tell_end(k.stream);
     }},
};

} // namespace facts
