// Records are missing: nothing that hangs on them may be said for certain, and what does not hang on them still is.
// Each gap is tried beside the same program without it.
#include "tests/unit/support.h"

using namespace capturesan;

namespace {

constexpr std::uint64_t s1 = 0x1000, buf = 0x700000000000, graph = 0x50, exec = 0x60, function = 0x77;

struct program {
  trace_builder b;

  void allocate() { b.call(1, {.symbol = "cuMemAlloc_v2", .arg = {buf, 4096}}); }
  void free() { b.call(1, {.symbol = "cuMemFree_v2", .arg = {buf}}); }
  std::uint64_t begin() { return b.call(1, {.symbol = "cuStreamBeginCapture_v2", .stream = s1}); }
  void capture() {
    begin();
    b.call(1, {.symbol = "cuLaunchKernel", .stream = s1, .arg = {function}});
    b.call(1, {.symbol = "cuStreamEndCapture", .stream = s1, .arg = {graph, 1}});
    const std::pair<std::uint16_t, std::uint16_t> layout[] = {{0, 8}};
    b.function(1, function, "kernel", layout);
    trace::node_record n{};
    n.value[0] = function;
    const std::uint64_t words[] = {buf};
    b.node(1, n, std::as_bytes(std::span(words)));
    b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {exec, graph}});
  }
  void replay() { b.call(1, {.symbol = "cuGraphLaunch", .stream = s1, .arg = {exec}}); }
  void refused(std::uint64_t begin, std::string_view symbol) {
    b.status(1, s1, begin, trace::capture_status::invalidated);
    b.call(1, {.symbol = symbol, .result = 900, .stream = s1});
    b.call(1, {.symbol = "cuStreamEndCapture", .result = 901, .stream = s1});
  }
  void lose() {
    b.wait(5000);
    b.lost(1, 1);
    b.wait(5000);
  }
};

// The confidence of the one finding of this rule; -1 if there is none.
int confidence_of(const program& p, const std::string& rule) {
  const judged j(p.b.bytes());
  int found = -1;
  for (const finding& f : j.findings())
    if (f.rule == rule) found = static_cast<int>(f.conf);
  return found;
}

constexpr int suspected = static_cast<int>(confidence::suspected), proved = static_cast<int>(confidence::proved);

} // namespace

TEST_CASE("a pointer is stale for certain only if nothing is missing since it was allocated") {
  // 0: no gap. The others: a gap at this step; an allocation or a free may be in it.
  for (int gap = 0; gap <= 5; ++gap) {
    program p;
    const auto at = [&](int step) {
      if (gap == step) p.lose();
    };
    at(1); // before all of it
    p.allocate();
    at(2);
    p.capture();
    p.replay();
    at(3);
    p.free();
    at(4);
    p.replay();
    at(5); // after it
    INFO("gap " << gap);
    const int found = confidence_of(p, "CS201");
    if (gap >= 2 && gap <= 4) {
      CHECK(found == suspected);
    } else {
      CHECK(found > suspected);
    }
  }
}

TEST_CASE("a refused call is judged for certain only if nothing is missing since the capture began") {
  for (int gap = 0; gap <= 2; ++gap) {
    program p;
    if (gap == 1) p.lose();
    const std::uint64_t begin = p.begin();
    if (gap == 2) p.lose();
    p.refused(begin, "cuStreamSynchronize");
    INFO("gap " << gap);
    CHECK(confidence_of(p, "CS101") == (gap == 2 ? suspected : proved));
  }
}

TEST_CASE("nothing is said about a call that the file does not name") {
  program p;
  p.refused(p.begin(), ""); // its name is empty: as if the record of the name were missing
  const judged j(p.b.bytes());
  for (const finding& f : j.findings()) CHECK((f.rule == "CS901" || f.conf == confidence::suspected));
  CHECK(confidence_of(p, "CS105") == -1);
  CHECK_FALSE(j.summary().complete);

  program named;
  named.refused(named.begin(), "cuMemAlloc_v2");
  CHECK(confidence_of(named, "CS105") == proved);
}

TEST_CASE("a status of a capture whose begin is missing") {
  program p;
  p.refused(5, "cuMemAlloc_v2"); // no begin call in the trace
  CHECK(confidence_of(p, "CS105") == suspected);

  // Another thread's capture that ended a moment before the status was read is no gap.
  program two;
  constexpr std::uint64_t s2 = 0x2000;
  const std::uint64_t other = two.b.call(2, {.symbol = "cuStreamBeginCapture_v2", .stream = s2, .arg = {1}});
  const std::uint64_t begin = two.begin();
  two.b.call(2, {.symbol = "cuStreamEndCapture", .stream = s2, .arg = {graph, 1}});
  two.b.status(1, s2, other, trace::capture_status::active);
  two.refused(begin, "cuMemAlloc_v2");
  CHECK(confidence_of(two, "CS105") == proved);
}

// A call that answered 0 had an exec: if no record made it, records are missing that nobody counted.
TEST_CASE("a graph that no record made: nothing is called clean") {
  const auto evaluated = [](const judged& j) {
    std::size_t n = 0;
    for (const rule_status& r : j.summary().rules) n += r.evaluated && r.findings == 0 ? 1 : 0;
    return n;
  };
  for (const std::string_view call : {"cuGraphLaunch", "cuGraphExecUpdate_v2", "cuGraphExecMemcpyNodeSetParams"}) {
    INFO(call);
    program p;
    p.capture();
    p.b.call(1, {.symbol = call, .stream = s1, .arg = {exec + 1, graph}});
    const judged j(p.b.bytes());
    CHECK_FALSE(j.summary().complete);
    CHECK(evaluated(j) == 0);
    CHECK(j.rules() == std::vector<std::string>{"CS901"});

    program known;
    known.capture();
    known.b.call(1, {.symbol = call, .stream = s1, .arg = {exec, graph}});
    const judged clean(known.b.bytes());
    CHECK(clean.summary().complete);
    CHECK(evaluated(clean) == clean.summary().rules.size());

    program refused; // any number may be passed to a call that says that it is none
    refused.capture();
    refused.b.call(1, {.symbol = call, .result = 400, .stream = s1, .arg = {exec + 1, graph}});
    CHECK(judged(refused.b.bytes()).summary().complete);

    program destroyed; // the trace shows all there was: this is the program's own fault
    destroyed.capture();
    destroyed.b.call(1, {.symbol = "cuGraphExecDestroy", .arg = {exec}});
    destroyed.b.call(1, {.symbol = call, .stream = s1, .arg = {exec, graph}});
    CHECK(judged(destroyed.b.bytes()).summary().complete);
  }
}

TEST_CASE("before a graph that no record made nothing is certain, behind it all is") {
  for (const bool before : {true, false}) {
    program p;
    const auto unknown = [&] { p.b.call(1, {.symbol = "cuGraphLaunch", .stream = s1, .arg = {exec + 1}}); };
    if (before) unknown();
    p.b.wait(1'000'000);
    p.allocate();
    p.capture();
    p.replay();
    if (!before) unknown();
    p.free();
    p.replay();
    CHECK(confidence_of(p, "CS201") == (before ? proved : suspected));
  }
}

TEST_CASE("chunks used anew before they were read: from the beginning until the last of what they held") {
  for (const bool before : {true, false}) {
    program p;
    p.b.header().state = trace::process_state::ended;
    p.b.header().recycled = 3;
    if (before) p.b.header().recycled_until = p.b.now();
    p.b.wait(1'000'000);
    const std::uint64_t begin = p.begin();
    if (!before) p.b.header().recycled_until = p.b.now();
    p.refused(begin, "cuStreamSynchronize");
    CHECK(confidence_of(p, "CS101") == (before ? proved : suspected));
    CHECK_FALSE(judged(p.b.bytes()).summary().complete);
  }
}

TEST_CASE("a finding that was in doubt is certain once it is seen again where nothing is missing") {
  program p;
  std::uint64_t begin = p.begin();
  p.lose();
  p.refused(begin, "cuStreamSynchronize");
  p.b.wait(1'000'000);
  begin = p.begin();
  p.refused(begin, "cuStreamSynchronize");
  CHECK(confidence_of(p, "CS101") == proved);
}

TEST_CASE("a cut trace: what lies before the cut is judged, what may hang on the rest is not") {
  program p;
  const std::uint64_t begin = p.begin();
  p.refused(begin, "cuStreamSynchronize");
  for (std::uint64_t i = 0; i < 1000; ++i) p.b.call(1, {.symbol = "cuMemAlloc_v2", .arg = {buf + i * 4096, 4096}});
  p.b.call(1, {.symbol = "cuMemFree_v2", .arg = {buf}});
  p.capture(); // of freed memory
  const std::vector<std::byte> whole = p.b.bytes();
  const judged all(whole);
  REQUIRE(all.summary().complete);
  std::size_t sure = 0, cuts = 0;
  for (std::size_t size = trace::header_bytes; size < whole.size() - trace::chunk_bytes; size += 64) {
    std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const judged j(std::move(cut));
    CHECK_FALSE(j.summary().complete);
    ++cuts;
    for (const finding& f : j.findings()) {
      if (f.rule == "CS901" || f.conf == confidence::suspected) continue;
      CHECK(f.rule == "CS101");
      ++sure;
    }
  }
  // Once the second chunk is there, all that could have been written beside the first one is.
  CHECK(cuts - sure == (trace::chunk_bytes + 2 * sizeof(trace::event)) / 64);
}
