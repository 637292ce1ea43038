// What makes two findings different, how often one was found, and how large a report may become.
#include "analyzer/python_frames.h"
#include "analyzer/report.h"
#include "tests/unit/support.h"

using namespace capturesan;
using trace::node_type;

namespace {

constexpr std::uint64_t s1 = 0x1000, s2 = 0x2000, s3 = 0x3000, buf = 0x700000000000, function = 0x77;

// A wait inside a capture, from a call stack of two frames in one module.
void refused_wait(trace_builder& b, std::uint64_t stream, std::uint32_t stack) {
  const auto begin = b.call(1, {.symbol = "cuStreamBeginCapture_v2", .stream = stream});
  b.status(1, stream, begin, trace::capture_status::invalidated);
  b.call(1, {.symbol = "cuStreamSynchronize", .result = 900, .stream = stream, .stack = stack});
  b.call(1, {.symbol = "cuStreamEndCapture", .result = 901, .stream = stream});
}

void add_stack(trace_builder& b, std::uint32_t id, std::uint64_t call, std::uint64_t base = 0x400000) {
  const std::uint64_t addresses[] = {base + call, base + 0x900};
  b.stack(1, id, addresses);
}

} // namespace

TEST_CASE("two calls of one function are two findings, one call made twice is one") {
  trace_builder b;
  b.module(1, 0x400000, 0x400000, 0x500000, "/opt/program");
  add_stack(b, 1, 0x100);
  add_stack(b, 2, 0x140);
  refused_wait(b, s1, 1);
  refused_wait(b, s2, 2);
  refused_wait(b, s3, 1);
  const judged j(b.bytes());
  REQUIRE(j.rules() == std::vector<std::string>{"CS101", "CS101"});
  CHECK(j.findings()[0].count == 2);
  CHECK(j.findings()[1].count == 1);
  // One fingerprint but for the number: nothing in it depends on where in the function a call stands.
  CHECK(j.findings()[1].fingerprint == j.findings()[0].fingerprint + "-2");
}

TEST_CASE("a place is the same wherever its module was loaded") {
  trace_builder b;
  b.module(1, 0x400000, 0x400000, 0x500000, "/opt/program");
  add_stack(b, 1, 0x100);
  refused_wait(b, s1, 1);
  b.module(1, 0x800000, 0x800000, 0x900000, "/opt/program");
  add_stack(b, 2, 0x100, 0x800000);
  refused_wait(b, s2, 2);
  const judged j(b.bytes());
  REQUIRE(j.findings().size() == 1);
  CHECK(j.findings()[0].count == 2);
}

TEST_CASE("a freed buffer that many nodes of many graphs use is one finding, and a short one") {
  constexpr std::uint64_t graphs = 50, nodes = 40;
  trace_builder b;
  b.call(1, {.symbol = "cuMemAlloc_v2", .arg = {buf, 4096}});
  for (std::uint64_t g = 0; g < graphs; ++g) {
    for (std::uint64_t n = 0; n < nodes; ++n) {
      trace::node_record node{};
      node.type = node_type::memset;
      node.index = static_cast<std::uint32_t>(n);
      node.node = 0x5000 + n;
      node.value[0] = buf + n * 16;
      node.value[2] = 16;
      b.node(1, node);
    }
    b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {0x100 + g, 0x200 + g}});
  }
  b.call(1, {.symbol = "cuMemFree_v2", .arg = {buf}});
  for (std::uint64_t g = 0; g < graphs; ++g) b.call(1, {.symbol = "cuGraphLaunch", .stream = s1, .arg = {0x100 + g}});
  const judged j(b.bytes());
  REQUIRE(j.rules() == std::vector<std::string>{"CS201"});
  const finding& f = j.findings()[0];
  CHECK(f.count == graphs); // launches
  CHECK(f.uses == graphs * nodes);
  CHECK(f.nodes == graphs * nodes);
  CHECK(f.graphs == graphs);
  CHECK(f.pointers.size() == most_pointers);
  const std::string text = write_text(report_data{j.findings(), j.summary()}, {});
  CHECK(text.size() < 3000);
  CHECK(text.find("and 1996 more uses; 2000 nodes of 50 graphs in all") != std::string::npos);
}

TEST_CASE("both operands of a copy: a finding each, found once by one launch") {
  trace_builder b;
  b.call(1, {.symbol = "cuMemAlloc_v2", .arg = {buf, 4096}});
  b.call(1, {.symbol = "cuMemAlloc_v2", .arg = {buf + 0x100000, 4096}});
  trace::node_record node{};
  node.type = node_type::memcpy;
  node.value[0] = buf;
  node.value[1] = buf + 0x100000;
  node.value[2] = 64;
  b.node(1, node);
  b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {0x100, 0x200}});
  b.call(1, {.symbol = "cuMemFree_v2", .arg = {buf}});
  b.call(1, {.symbol = "cuMemFree_v2", .arg = {buf + 0x100000}});
  b.call(1, {.symbol = "cuGraphLaunch", .stream = s1, .arg = {0x100}});
  const judged j(b.bytes());
  REQUIRE(j.rules() == std::vector<std::string>{"CS201", "CS201"});
  CHECK(j.findings()[0].pointers[0].operand == "destination");
  CHECK(j.findings()[1].pointers[0].operand == "source");
  CHECK(j.findings()[0].count == 1);
  CHECK(j.findings()[1].count == 1);
}

TEST_CASE("a suspicion about an allocation does not hide what is proved about it") {
  trace_builder b;
  b.call(1, {.symbol = "cuMemAlloc_v2", .arg = {buf, 4096}});
  const std::vector<std::pair<std::uint16_t, std::uint16_t>> layout = {{std::uint16_t{0}, std::uint16_t{16}}};
  b.function(1, function, "gemm", layout);
  const std::uint64_t block[] = {buf, 7};
  trace::node_record kernel{}, set{};
  kernel.value[0] = function;
  b.node(1, kernel, std::as_bytes(std::span(block))); // a word inside a struct
  set.type = node_type::memset;
  set.index = 1;
  set.value[0] = buf;
  set.value[2] = 16;
  b.node(1, set);
  b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {0x100, 0x200}});
  b.call(1, {.symbol = "cuMemFree_v2", .arg = {buf}});
  b.call(1, {.symbol = "cuGraphLaunch", .stream = s1, .arg = {0x100}});
  const judged j(b.bytes());
  REQUIRE(j.findings().size() == 1);
  CHECK(j.findings()[0].conf == confidence::proved);
  CHECK(j.findings()[0].message.find("the memset node 1") != std::string::npos);
  REQUIRE(j.findings()[0].pointers.size() == 2);
  CHECK(j.findings()[0].pointers[0].operand == "destination");
}

namespace {

// A buffer that a graph sets is given back before the launch. Waiting: in the order of another stream, so that the
// launch may come first.
void freed_too_early(trace_builder& b, std::uint64_t n, bool waiting) {
  const std::uint64_t at = buf + n * 0x10000;
  b.call(1, {.symbol = "cuMemAllocAsync", .stream = s2, .arg = {at, 4096}});
  trace::node_record set{};
  set.type = node_type::memset;
  set.value[0] = at;
  set.value[2] = 16;
  b.node(1, set);
  b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {0x100000 + n, 0x200000 + n}});
  b.call(1, {.symbol = "cuMemFreeAsync", .stream = s2, .arg = {at}});
  if (!waiting) b.call(1, {.symbol = "cuStreamSynchronize", .stream = s2});
  b.call(1, {.symbol = "cuGraphLaunch", .stream = s1, .arg = {0x100000 + n}});
}

} // namespace

TEST_CASE("many suspicions of one kind hide nothing that is proved, and take no number from it") {
  trace_builder b;
  constexpr std::uint64_t many = 300;
  for (std::uint64_t n = 0; n < many; ++n) freed_too_early(b, n, true);
  freed_too_early(b, many, false);
  freed_too_early(b, many + 1, false);
  const judged j(b.bytes());
  std::vector<const finding*> proved;
  std::uint64_t suspected = 0;
  for (const finding& f : j.findings()) {
    if (f.conf == confidence::proved) proved.push_back(&f);
    suspected += f.conf == confidence::suspected ? 1 + f.not_listed : 0;
  }
  CHECK(suspected == many);
  REQUIRE(proved.size() == 2);
  CHECK(proved[0]->fingerprint.find('-') == std::string::npos);
  CHECK(proved[1]->fingerprint == proved[0]->fingerprint + "-2");
  trace_builder alone;
  freed_too_early(alone, 0, false);
  const judged one(alone.bytes());
  REQUIRE(one.findings().size() == 1);
  CHECK(one.findings()[0].fingerprint == proved[0]->fingerprint);
}

TEST_CASE("more of one kind than are listed is another fingerprint than as many as are") {
  const auto last_of = [](std::uint64_t n) {
    trace_builder b;
    for (std::uint64_t i = 0; i < n; ++i) freed_too_early(b, i, false);
    const judged j(b.bytes());
    REQUIRE(j.findings().size() == 256);
    return j.findings().back();
  };
  const finding full = last_of(256), more = last_of(258);
  CHECK(full.not_listed == 0);
  CHECK(more.not_listed == 2);
  CHECK(more.fingerprint != full.fingerprint);
}

TEST_CASE("what is not listed is counted once, however often it happens") {
  trace_builder b;
  b.module(1, 0x400000, 0x400000, 0x500000, "/opt/program");
  for (std::uint32_t i = 0; i < 260; ++i) add_stack(b, 1 + i, 0x1000 + 16 * i);
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t i = 0; i < 260; ++i) refused_wait(b, s1, 1 + i);
  }
  const judged j(b.bytes());
  REQUIRE(j.findings().size() == 256);
  CHECK(j.findings().front().count == 3);
  CHECK(j.findings().back().not_listed == 4);
}

// CPython, Python/traceback.c, _Py_DumpASCII: below 0x20 and from 0x7f on as \xHH, then \uHHHH, then \UHHHHHHHH.
TEST_CASE("names of Python files are as the program has them") {
  const auto one = [](const std::string& file) {
    const auto frames = python_frames("  File \"" + file + "\", line 3 in f\\xfcr\n");
    REQUIRE(frames.size() == 1);
    CHECK(frames[0].symbol == "f\xc3\xbcr");
    CHECK(frames[0].line == 3);
    return frames[0].file;
  };
  CHECK(one("/srv/jos\\xe9/app.py") == "/srv/jos\xc3\xa9/app.py");
  CHECK(one("/\\u6a21\\u578b/a.py") == "/\xe6\xa8\xa1\xe5\x9e\x8b/a.py");
  CHECK(one("/\\U0001f600.py") == "/\xf0\x9f\x98\x80.py");
  CHECK(one("/\\udce9.py") == "/\xe9.py"); // a byte that is no UTF-8, as os.fsdecode() has it
  CHECK(one("/a\\x41\\u0041\\xg1\\x.py") == "/a\\x41\\u0041\\xg1\\x.py"); // CPython writes such characters as they are
  CHECK(one("/plain.py") == "/plain.py");
}
