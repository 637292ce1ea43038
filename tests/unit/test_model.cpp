// Model and engine: which capture a call is about, who is the culprit, what hangs under it. Expected values follow from
// the rules of design.md, section 5, and from the facts in tests/golden.
#include "tests/unit/support.h"

using namespace capturesan;

namespace {

constexpr std::uint64_t s1 = 0x1000, s2 = 0x2000;

} // namespace

TEST_CASE("the culprit of another thread that returns after the capture's end still claims it") {
  trace_builder b;
  const auto begin =
      b.call(1, {.symbol = "cuStreamBeginCapture_v2", .begin = 1'000'000, .end = 1'001'000, .stream = s1});
  // Thread 2 is inside cuMemAlloc from 1'002'000 on, which breaks the capture, and returns only at 1'009'000.
  b.status(1, s1, begin, trace::capture_status::invalidated);
  b.call(1, {.symbol = "cuLaunchKernel", .result = 901, .begin = 1'003'000, .end = 1'004'000, .stream = s1});
  b.status(1, s1, begin, trace::capture_status::invalidated);
  b.call(1, {.symbol = "cuStreamEndCapture", .result = 901, .begin = 1'005'000, .end = 1'006'000, .stream = s1});
  b.call(2, {.symbol = "cuMemAlloc_v2", .result = 900, .begin = 1'002'000, .end = 1'009'000, .arg = {0, 4096}});
  const judged j(b.bytes());
  REQUIRE(j.rules() == std::vector<std::string>{"CS104"});
  CHECK(j.findings()[0].cascade.size() == 2);
  REQUIRE(j.findings()[0].capture);
  CHECK(j.findings()[0].capture->id == 1);
}

TEST_CASE("a refused call long after the end does not claim the capture") {
  trace_builder b;
  const auto begin = b.call(1, {.symbol = "cuStreamBeginCapture_v2", .stream = s1});
  b.status(1, s1, begin, trace::capture_status::invalidated);
  b.call(1, {.symbol = "cuStreamEndCapture", .result = 901, .stream = s1});
  b.call(2, {.symbol = "cuMemAlloc_v2", .result = 900, .arg = {0, 4096}});
  const judged j(b.bytes());
  REQUIRE(j.findings().size() == 2);
  const auto& f = j.findings();
  const auto unexplained = std::find_if(f.begin(), f.end(), [](const finding& x) { return x.rule == "CS902"; });
  REQUIRE(unexplained != f.end());
  CHECK(unexplained->conf == confidence::suspected);
  CHECK(unexplained->cascade.size() == 1);
}

TEST_CASE("cascades of other threads hang under the culprit") {
  trace_builder b;
  const auto begin = b.call(1, {.symbol = "cuStreamBeginCapture_v2", .stream = s1});
  b.status(1, s1, begin, trace::capture_status::invalidated);
  b.call(1, {.symbol = "cuStreamSynchronize", .result = 900, .stream = s1});
  for (int i = 0; i < 3; ++i) {
    b.status(2, s1, begin, trace::capture_status::invalidated);
    b.call(2, {.symbol = "cuLaunchKernel", .result = 901, .stream = s1});
  }
  b.status(1, s1, begin, trace::capture_status::invalidated);
  b.call(1, {.symbol = "cuStreamEndCapture", .result = 901, .stream = s1});
  const judged j(b.bytes());
  REQUIRE(j.rules() == std::vector<std::string>{"CS101"});
  const auto& cascade = j.findings()[0].cascade;
  REQUIRE(cascade.size() == 2);
  CHECK(cascade[0].api == "cuLaunchKernel");
  CHECK(cascade[0].count == 3);
  CHECK(cascade[0].thread.index == 2);
}

TEST_CASE("a call that breaks two captures is one finding and explains both") {
  trace_builder b;
  const auto b1 = b.call(1, {.symbol = "cuStreamBeginCapture_v2", .stream = s1});
  const auto b2 = b.call(2, {.symbol = "cuStreamBeginCapture_v2", .stream = s2});
  b.status(3, s1, b1, trace::capture_status::invalidated);
  b.status(3, s2, b2, trace::capture_status::invalidated);
  b.call(3, {.symbol = "cuMemAlloc_v2", .result = 900, .arg = {0, 64}});
  for (const auto& [t, s, begin] : {std::tuple{1u, s1, b1}, std::tuple{2u, s2, b2}}) {
    b.status(t, s, begin, trace::capture_status::invalidated);
    b.call(t, {.symbol = "cuStreamEndCapture", .result = 901, .stream = s});
  }
  const judged j(b.bytes());
  REQUIRE(j.rules() == std::vector<std::string>{"CS104"});
  CHECK(j.findings()[0].cascade.size() == 2);
}

// Facts "overlap: two threads, thread-local, each alone" and "overlap: sync of a stream that captures, from a third
// capture": each of these calls breaks one capture. The other is broken already when the status is read, by a call that
// takes its place later.
TEST_CASE("a capture that another thread broke in the same moment is not this call's") {
  const auto two = [](const char* call, std::uint64_t first_stream, std::uint64_t second_stream, std::uint64_t mode) {
    trace_builder b;
    const auto b1 = b.call(1, {.symbol = "cuStreamBeginCapture_v2", .stream = s1, .arg = {mode}});
    const auto b2 = b.call(2, {.symbol = "cuStreamBeginCapture_v2", .stream = s2, .arg = {mode}});
    for (const auto& [t, s] : {std::pair{1u, first_stream}, std::pair{2u, second_stream}}) {
      b.status(t, s1, b1, trace::capture_status::invalidated);
      b.status(t, s2, b2, trace::capture_status::invalidated);
      b.call(t, {.symbol = call, .result = 900, .stream = s});
    }
    for (const auto& [t, s, begin] : {std::tuple{1u, s1, b1}, std::tuple{2u, s2, b2}}) {
      b.status(t, s, begin, trace::capture_status::invalidated);
      b.call(t, {.symbol = "cuStreamEndCapture", .result = 901, .stream = s});
    }
    return judged(b.bytes());
  };
  const auto own = [](const judged& j, const char* rule) {
    REQUIRE(j.findings().size() == 1); // the same mistake, made twice
    const finding& f = j.findings()[0];
    CHECK(f.rule == rule);
    CHECK(f.count == 2);
    REQUIRE(f.capture);
    CHECK(f.thread.index == static_cast<std::uint32_t>(f.capture->id)); // thread 1 began capture 1
    CHECK(f.cascade.size() == 2);
  };
  constexpr std::uint64_t global = 0, thread_local_ = 1, relaxed = 2;
  own(two("cuStreamSynchronize", s1, s2, global), "CS101");
  own(two("cuStreamSynchronize", s1, s2, thread_local_), "CS101");
  own(two("cuStreamQuery", s1, s2, relaxed), "CS101");
  own(two("cuMemAlloc_v2", 0, 0, thread_local_), "CS105");
  // "overlap: cuCtxSynchronize with two relaxed captures": this one does break both.
  const judged both = two("cuCtxSynchronize", 0, 0, relaxed);
  REQUIRE(both.findings().size() >= 1);
  CHECK(both.findings()[0].cascade.size() == 2);
}

TEST_CASE("the same fault in a loop is one finding with a count") {
  trace_builder b;
  for (int i = 0; i < 5; ++i) {
    const auto begin = b.call(1, {.symbol = "cuStreamBeginCapture_v2", .stream = s1});
    b.status(1, s1, begin, trace::capture_status::invalidated);
    b.call(1, {.symbol = "cuMemAlloc_v2", .result = 900, .arg = {0, 64}});
    b.status(1, s1, begin, trace::capture_status::invalidated);
    b.call(1, {.symbol = "cuStreamEndCapture", .result = 901, .stream = s1});
  }
  const judged j(b.bytes());
  REQUIRE(j.findings().size() == 1);
  CHECK(j.findings()[0].count == 5);
  CHECK(j.summary().captures.size() == 5);
  CHECK(j.summary().captures[4].result == 901);
}

TEST_CASE("captures end by any end call on their stream; the driver forgets them even if it refuses") { // golden: 908,
                                                                                                        // status none
  trace_builder b;
  b.call(1, {.symbol = "cuStreamBeginCapture_v2", .stream = s1});
  b.call(2, {.symbol = "cuStreamEndCapture", .result = 908, .stream = s1});
  b.call(1, {.symbol = "cuStreamEndCapture", .result = 401, .stream = s1});
  b.call(1, {.symbol = "cuStreamBeginCapture_v2", .stream = s1});
  b.call(1, {.symbol = "cuStreamEndCapture", .stream = s1, .arg = {0x50, 1}});
  const judged j(b.bytes());
  CHECK(j.rules() == std::vector<std::string>{"CS109"});
  REQUIRE(j.summary().captures.size() == 2);
  CHECK(j.summary().captures[0].result == 908);
  CHECK(j.summary().captures[1].result == 0);
  CHECK(j.summary().captures[1].nodes == 1);
}

TEST_CASE("stream 0 is the thread's own stream in the per-thread variants") {
  trace_builder b;
  // Thread 1 captures its own default stream; thread 2's stream 0 is another one.
  const auto begin = b.call(1, {.symbol = "cuStreamBeginCapture_v2_ptsz", .stream = 0});
  b.call(1, {.symbol = "cuLaunchKernel_ptsz", .stream = 0});
  b.call(2, {.symbol = "cuLaunchKernel_ptsz", .stream = 0});
  b.status(1, 0, begin, trace::capture_status::active);
  b.call(1, {.symbol = "cuMemcpyBatchAsync_ptsz", .result = 900, .stream = 2}); // CU_STREAM_PER_THREAD: the same stream
  b.call(1, {.symbol = "cuStreamEndCapture_ptsz", .stream = 0, .arg = {0x50, 1}});
  const judged j(b.bytes());
  CHECK(j.rules() == std::vector<std::string>{"CS111"});
}

TEST_CASE("graphs: replays, nodes and resolved kernels are counted") {
  trace_builder b;
  b.call(1, {.symbol = "cuMemAlloc_v2", .arg = {0x700000000000, 4096}});
  b.call(1, {.symbol = "cuStreamBeginCapture_v2", .stream = s1});
  b.call(1, {.symbol = "cuStreamEndCapture", .stream = s1, .arg = {0x50, 2}});
  const std::pair<std::uint16_t, std::uint16_t> layout[] = {{0, 8}, {8, 8}};
  b.function(1, 0x77, "kernel", layout);
  for (const std::uint64_t first : {0x700000000010ull, 0x1ull}) {
    trace::node_record n{};
    n.value[0] = 0x77;
    const std::uint64_t words[] = {first, 5};
    b.node(1, n, std::as_bytes(std::span(words)));
  }
  b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {0x60, 0x50}});
  for (int i = 0; i < 1000; ++i) b.call(1, {.symbol = "cuGraphLaunch", .stream = s2, .arg = {0x60}});
  b.call(1, {.symbol = "cuGraphLaunch", .result = 1, .stream = s2, .arg = {0x60}}); // refused: no replay
  const judged j(b.bytes());
  CHECK(j.findings().empty());
  REQUIRE(j.summary().graphs.size() == 1);
  const graph_summary& g = j.summary().graphs[0];
  CHECK(g.replays == 1000);
  CHECK(g.nodes == 2);
  CHECK(g.kernel_nodes == 2);
  CHECK(g.kernel_nodes_resolved == 1);
  CHECK(g.capture == 1);
  CHECK(j.summary().replays == 1000);
}

TEST_CASE("a launch into a capture is no replay") {
  trace_builder b;
  b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {0x60, 0x50}});
  b.call(1, {.symbol = "cuStreamBeginCapture_v2", .stream = s1});
  b.call(1, {.symbol = "cuGraphLaunch", .stream = s1, .arg = {0x60}});
  b.call(1, {.symbol = "cuStreamEndCapture", .stream = s1, .arg = {0x51, 1}});
  const judged j(b.bytes());
  CHECK(j.summary().replays == 0);
}

TEST_CASE("memory: overlapping allocations and reuse") {
  memory_map m;
  const auto make = [](std::uint64_t base, std::uint64_t size) {
    allocation a;
    a.base = base;
    a.size = size;
    a.kind = memory_kind::device;
    return a;
  };
  const auto a = m.add(make(0x1000, 0x100));
  const auto c = m.add(make(0x1100, 0x100));
  CHECK(m.find(0x10ff) == a);
  CHECK(m.find(0x1100) == c);
  CHECK(m.find(0x1200) == nullptr);
  CHECK(m.find(0xfff) == nullptr);
  CHECK(m.remove(0x1000, {}) == a);
  CHECK_FALSE(a->live);
  CHECK(m.find(0x1000) == nullptr);
  const auto over = m.add(make(0x1080, 0x100)); // the free of c was not seen
  CHECK_FALSE(c->live);
  CHECK(m.find(0x1100) == over);
  m.add(make(~0ull - 10, 100)); // wraps: must not loop
  CHECK(m.find(~0ull) != nullptr);
}

TEST_CASE("dropped records: silence is no pass") {
  trace_builder b;
  b.call(1, {.symbol = "cuInit"});
  b.lost(1, 7);
  b.call(1, {.symbol = "cuInit"});
  const judged j(b.bytes());
  CHECK(j.rules() == std::vector<std::string>{"CS901"});
  CHECK_FALSE(j.summary().complete);
  CHECK(j.summary().dropped == 7);
  for (const auto& r : j.summary().rules) {
    if (r.id == "CS901") continue;
    CHECK_FALSE(r.evaluated);
    CHECK(r.why_not == "records were dropped");
  }
}

TEST_CASE("fingerprints do not depend on addresses, handles or time") {
  const auto run = [](std::uint64_t base, std::uint64_t stream) {
    trace_builder b;
    b.wait(base);
    b.module(1, base, base, base + 0x100000, "/opt/app/bin/app");
    const std::uint64_t addresses[] = {base + 0x1234, base + 0x4321};
    b.stack(1, 5, addresses);
    const auto begin = b.call(1, {.symbol = "cuStreamBeginCapture_v2", .stream = stream});
    b.status(1, stream, begin, trace::capture_status::invalidated);
    b.call(1, {.symbol = "cuStreamSynchronize", .result = 900, .stream = stream, .stack = 5});
    const judged j(b.bytes());
    REQUIRE(j.findings().size() == 1);
    CHECK(j.findings()[0].stack.size() == 2);
    CHECK(j.findings()[0].stack[0].module == "app");
    CHECK(j.findings()[0].stack[0].offset == 0x1234);
    return j.findings()[0].fingerprint;
  };
  CHECK(run(0x400000, 0x10) == run(0x7f0000000000, 0x20));
}

TEST_CASE("frames of the shim are not shown; Python frames are") {
  trace_builder b;
  b.module(1, 0x1000000, 0x1000000, 0x2000000, "/usr/lib/libcapturesan.so");
  b.module(1, 0x400000, 0x400000, 0x500000, "/usr/bin/app");
  const std::uint64_t addresses[] = {0x1000010, 0x400020};
  b.stack(1, 5, addresses);
  b.call(1, {.symbol = "cuStreamSynchronize", .result = 900, .stack = 5});
  const judged j(b.bytes());
  REQUIRE(j.findings().size() == 1);
  REQUIRE(j.findings()[0].stack.size() == 1);
  CHECK(j.findings()[0].stack[0].module == "app");
}
