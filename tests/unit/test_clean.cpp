// Patterns that are fine, as public reports and the CUDA documentation describe them: no finding may come of them. Each
// is a whole little program; that it was seen at all is checked by its captures and replays.
#include "tests/unit/support.h"

using namespace capturesan;

namespace {

constexpr std::uint64_t s1 = 0x1000, s2 = 0x2000, legacy = 1;
constexpr std::uint64_t buf = 0x700000000000, other = 0x700000100000;
constexpr std::uint64_t graph = 0x50, exec = 0x60, function = 0x77;

class program {
 public:
  trace_builder b;

  void allocate(std::uint64_t address, std::uint64_t bytes = 4096, std::uint32_t thread = 1) {
    b.call(thread, {.symbol = "cuMemAlloc_v2", .arg = {address, bytes}, .stack = 0});
  }
  std::uint64_t begin(std::uint64_t mode = 0, std::uint64_t stream = s1, std::uint32_t thread = 1) {
    return b.call(thread, {.symbol = "cuStreamBeginCapture_v2", .stream = stream, .arg = {mode}});
  }
  void launch(std::uint64_t stream = s1, std::uint32_t thread = 1) {
    b.call(thread, {.symbol = "cuLaunchKernel", .stream = stream, .arg = {function}});
  }
  void end(std::uint64_t stream = s1, std::uint32_t thread = 1) {
    b.call(thread, {.symbol = "cuStreamEndCapture", .stream = stream, .arg = {graph, 1}});
  }
  void kernel(std::initializer_list<std::uint64_t> pointers) {
    std::vector<std::pair<std::uint16_t, std::uint16_t>> layout;
    const std::vector<std::uint64_t> words(pointers);
    for (std::uint16_t i = 0; i < words.size(); ++i)
      layout.emplace_back(static_cast<std::uint16_t>(i * 8), std::uint16_t{8});
    b.function(1, function, "kernel", layout);
    trace::node_record n{};
    n.value[0] = function;
    b.node(1, n, std::as_bytes(std::span(words)));
  }
  void instantiate(std::uint64_t handle = exec) {
    b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {handle, graph}});
  }
  void replay(int times = 1, std::uint64_t stream = s1, std::uint64_t handle = exec) {
    for (int i = 0; i < times; ++i) b.call(1, {.symbol = "cuGraphLaunch", .stream = stream, .arg = {handle}});
  }
  void clean(std::size_t captures, std::uint64_t replays) {
    const judged j(b.bytes());
    for (const auto& f : j.findings()) { // a note blames nobody
      if (f.sev != severity::note) FAIL_CHECK(f.rule << ": " << f.message);
    }
    CHECK(j.summary().captures.size() == captures);
    CHECK(j.summary().replays == replays);
    CHECK(j.summary().complete);
  }
};

} // namespace

TEST_CASE("clean: capture status queries on any stream, one per allocation") {
  program p;
  p.begin();
  for (int i = 0; i < 1000; ++i)
    p.b.call(1, {.symbol = "cuStreamIsCapturing", .stream = i % 2 == 0 ? s1 : s2, .arg = {1}});
  p.launch();
  p.end();
  p.clean(1, 0);
}

TEST_CASE("clean: a mode exchanged around an allocation, and an event query by a thread in thread-local mode") {
  program p;
  p.begin();
  p.b.call(1, {.symbol = "cuThreadExchangeStreamCaptureMode", .arg = {2, 0}});
  p.allocate(buf);
  p.b.call(1, {.symbol = "cuThreadExchangeStreamCaptureMode", .arg = {0, 2}});
  p.b.call(2, {.symbol = "cuThreadExchangeStreamCaptureMode", .arg = {1, 0}});
  p.b.call(2, {.symbol = "cuEventQuery", .arg = {0x99}});
  p.b.call(2, {.symbol = "cuEventQuery", .result = 600, .arg = {0x99}}); // not ready: no error
  p.launch();
  p.end();
  p.clean(1, 0);
}

TEST_CASE("clean: another thread allocates, pins and copies under a thread-local capture") {
  program p;
  p.begin(1);
  p.b.call(2, {.symbol = "cuMemHostAlloc", .arg = {0x500000, 4096}});
  p.b.call(2, {.symbol = "cuMemcpyHtoDAsync_v2", .stream = s2, .arg = {buf, 0x500000, 64}});
  p.b.call(2, {.symbol = "cuStreamSynchronize", .stream = s2});
  p.launch();
  p.end();
  p.clean(1, 0);
}

TEST_CASE("clean: a private pool that allocates in a relaxed capture and keeps the memory") {
  program p;
  p.begin(2);
  p.allocate(buf);
  p.launch();
  p.end();
  p.kernel({buf, buf + 512});
  p.instantiate();
  p.replay(3);
  p.b.call(1, {.symbol = "cuGraphExecDestroy", .arg = {exec}});
  p.b.call(1, {.symbol = "cuMemFree_v2", .arg = {buf}});
  p.clean(1, 3);
}

TEST_CASE("clean: side streams that fork and join, many of them just before the end") {
  program p;
  p.begin();
  for (std::uint64_t i = 0; i < 20; ++i) {
    const std::uint64_t side = 0x9000 + i, fork = 0xa000, join = 0xb000 + i;
    p.b.call(1, {.symbol = "cuEventRecord", .stream = s1, .arg = {fork}});
    p.b.call(1, {.symbol = "cuStreamWaitEvent", .stream = side, .arg = {fork}});
    p.launch(side, 2);
    p.b.call(1, {.symbol = "cuEventRecord", .stream = side, .arg = {join}});
  }
  for (std::uint64_t i = 0; i < 20; ++i)
    p.b.call(1, {.symbol = "cuStreamWaitEvent", .stream = s1, .arg = {0xb000 + i}});
  p.end();
  p.clean(1, 0);
}

TEST_CASE("clean: replay on other streams, the default stream included") {
  program p;
  p.allocate(buf);
  p.begin();
  p.launch();
  p.end();
  p.kernel({buf});
  p.instantiate();
  p.replay(2, s2);
  p.replay(2, legacy);
  p.replay(2, 0);
  p.clean(1, 6);
}

TEST_CASE("clean: pointers read from a table on the device, inputs refreshed in place") {
  program p;
  p.allocate(buf);   // the table
  p.allocate(other); // what it points to at capture
  p.begin();
  p.launch();
  p.end();
  p.kernel({buf});
  p.instantiate();
  p.replay();
  p.b.call(1, {.symbol = "cuMemFree_v2", .arg = {other}}); // the table gets another address
  p.b.call(1, {.symbol = "cuMemcpyHtoDAsync_v2", .stream = s1, .arg = {buf, 0x500000, 8}});
  p.replay();
  p.clean(1, 2);
}

TEST_CASE("clean: one pool shared by graphs that are replayed in any order") {
  program p;
  p.allocate(buf, 1 << 20);
  for (const std::uint64_t handle : {0x61, 0x62, 0x63}) {
    p.begin();
    p.launch();
    p.end();
    p.kernel({buf + 256, buf + 4096});
    p.instantiate(handle);
  }
  for (const std::uint64_t handle : {0x62, 0x61, 0x63, 0x61}) p.replay(1, s1, handle);
  p.clean(3, 4);
}

TEST_CASE("clean: modules loaded in a capture, first launches") {
  program p;
  p.begin(2);
  p.b.call(1, {.symbol = "cuLibraryLoadData", .arg = {0x70}});
  p.b.call(1, {.symbol = "cuLibraryGetKernel", .arg = {0x71, 0x70}});
  p.launch();
  p.end();
  p.clean(1, 0);
}

TEST_CASE("clean: memory nodes with their free in the same graph") {
  program p;
  p.begin();
  p.b.call(1, {.symbol = "cuMemAllocAsync", .stream = s1, .arg = {buf, 4096}});
  p.launch();
  p.b.call(1, {.symbol = "cuMemFreeAsync", .stream = s1, .arg = {buf}});
  p.end();
  p.kernel({buf});
  p.instantiate();
  p.replay(5);
  p.clean(1, 5);
}

TEST_CASE("clean: two threads capture at the same time, each in thread-local mode") {
  program p;
  p.begin(1, s1, 1);
  p.begin(1, s2, 2);
  p.launch(s1, 1);
  p.launch(s2, 2);
  p.b.call(3, {.symbol = "cuMemAlloc_v2", .arg = {buf, 64}});
  p.end(s2, 2);
  p.end(s1, 1);
  p.clean(2, 0);
}

TEST_CASE("clean: try to update, then instantiate anew") {
  program p;
  p.allocate(buf);
  p.begin();
  p.launch();
  p.end();
  p.kernel({buf});
  p.instantiate();
  p.replay();
  p.b.call(1, {.symbol = "cuGraphExecUpdate_v2", .result = 910, .arg = {exec, graph, 2}});
  p.b.call(1, {.symbol = "cuGraphExecDestroy", .arg = {exec}});
  p.kernel({buf});
  p.instantiate();
  p.replay();
  p.clean(1, 2);
}

TEST_CASE("clean: a context that goes takes its memory along") {
  program p;
  p.b.call(1, {.symbol = "cuCtxCreate_v2", .arg = {0xc0}});
  p.allocate(buf);
  p.begin();
  p.launch();
  p.end();
  p.kernel({buf});
  p.instantiate();
  p.replay();
  p.b.call(1, {.symbol = "cuGraphExecDestroy", .arg = {exec}});
  p.b.call(1, {.symbol = "cuCtxDestroy_v2", .arg = {0xc0}});
  p.clean(1, 1);
}

TEST_CASE("clean: external event nodes, asked for and timed by the host after the launch") {
  program p;
  p.begin();
  p.b.call(1, {.symbol = "cuEventRecordWithFlags", .stream = s1, .arg = {0xe1, 1}});
  p.launch();
  p.b.call(1, {.symbol = "cuEventRecordWithFlags", .stream = s1, .arg = {0xe2, 1}});
  p.end();
  p.instantiate();
  p.replay();
  p.b.call(1, {.symbol = "cuEventSynchronize", .arg = {0xe2}});
  p.b.call(1, {.symbol = "cuEventElapsedTime", .arg = {0xe1, 0xe2}});
  p.clean(1, 1);
}

TEST_CASE("clean: the refusal of a batch copy is noticed, and single copies are captured") {
  program p;
  p.allocate(buf);
  p.allocate(other);
  const auto begin = p.begin();
  p.b.status(1, s1, begin, trace::capture_status::active);
  p.b.call(1, {.symbol = "cuMemcpyBatchAsync", .result = 900, .stream = s1, .arg = {buf, other, 64}});
  p.b.call(1, {.symbol = "cuMemcpyDtoDAsync_v2", .stream = s1, .arg = {buf, other, 64}});
  p.launch();
  p.end();
  p.kernel({buf, other});
  p.instantiate();
  p.replay(2);
  p.clean(1, 2);
}

TEST_CASE("clean: captured collectives mixed with eager ones on streams of their own") {
  program p;
  p.begin(1);
  p.b.call(1, {.symbol = "cuEventRecord", .stream = s1, .arg = {0xe1}});
  p.b.call(1, {.symbol = "cuStreamWaitEvent", .stream = s2, .arg = {0xe1}});
  p.launch(s2, 2); // the library's internal stream joins
  p.b.call(2, {.symbol = "cuEventRecord", .stream = s2, .arg = {0xe2}});
  p.b.call(1, {.symbol = "cuStreamWaitEvent", .stream = s1, .arg = {0xe2}});
  p.launch(0x3000, 3); // an eager one of another thread meanwhile
  p.end();
  p.instantiate();
  p.replay();
  p.launch(s2, 2);
  p.clean(1, 1);
}

TEST_CASE("clean: address kept, memory swapped by pause and resume") {
  program p;
  p.b.call(1, {.symbol = "cuMemAddressReserve", .arg = {buf, 0x200000}});
  p.b.call(1, {.symbol = "cuMemMap", .arg = {buf, 0x200000, 0x11}});
  p.begin();
  p.launch();
  p.end();
  p.kernel({buf});
  p.instantiate();
  p.replay();
  p.b.call(1, {.symbol = "cuMemUnmap", .arg = {buf, 0x200000}});
  p.b.call(1, {.symbol = "cuMemMap", .arg = {buf, 0x200000, 0x12}});
  p.replay();
  p.clean(1, 2);
}

TEST_CASE("clean: eager side work beside a capture, and an empty graph as a placeholder") {
  program p;
  p.begin();
  p.launch();
  p.b.call(1, {.symbol = "cuMemcpyHtoDAsync_v2", .stream = s2, .arg = {other, 0x500000, 64}}); // fills a constant
  p.launch(s2);
  p.end();
  p.begin();
  p.end();
  p.instantiate();
  p.replay();
  p.clean(2, 1);
}

TEST_CASE("clean: allocated by one graph and freed by another, relaunched with auto-free, trimmed") {
  program p;
  const auto node = [&](trace::node_type type) {
    trace::node_record n{};
    n.type = type;
    n.node = 0x900 + static_cast<std::uint64_t>(type);
    n.value[0] = buf;
    n.value[1] = 4096;
    p.b.node(1, n);
    p.b.edges(1, {});
  };
  p.begin();
  p.b.call(1, {.symbol = "cuMemAllocAsync", .stream = s1, .arg = {buf, 4096}});
  p.end();
  node(trace::node_type::mem_alloc);
  p.instantiate(0x61);
  node(trace::node_type::mem_free);
  p.b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {0x62, 0x51}});
  for (int i = 0; i < 3; ++i) {
    p.replay(1, s1, 0x61);
    p.replay(1, s1, 0x62);
  }
  node(trace::node_type::mem_alloc);
  p.b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {0x63, 0x52, 1}});
  p.replay(3, s1, 0x63);
  p.b.call(1, {.symbol = "cuMemFreeAsync", .stream = s1, .arg = {buf}});
  p.b.call(1, {.symbol = "cuDeviceGraphMemTrim"});
  p.b.call(1, {.symbol = "cuGraphExecDestroy", .arg = {0x63}});
  p.clean(1, 9);
}

TEST_CASE("clean: a bounded cache of graphs that are launched again") {
  program p;
  p.allocate(buf, 1 << 20);
  const std::uint64_t place[] = {0x400100};
  p.b.stack(1, 7, place);
  for (std::uint64_t i = 0; i < 200; ++i) { // one size after the other, each with parameters of its own
    p.begin();
    p.launch();
    p.end();
    p.kernel({buf + 64 * i});
    p.b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {0x10000 + i, graph}, .stack = 7});
    p.replay(1, s1, 0x10000 + i);
  }
  for (std::uint64_t i = 0; i < 200; ++i) p.replay(1, s1, 0x10000 + i);
  p.clean(200, 400);
}
