// The text report of a finding that has everything, and the counts.
#include "analyzer/report.h"

#include "tests/support/catch.hpp"

using namespace capturesan;

namespace {

stack_frame frame(std::string symbol, std::string file, int line) {
  stack_frame f;
  f.symbol = std::move(symbol);
  f.file = std::move(file);
  f.line = line;
  return f;
}

finding full_finding() {
  finding f;
  f.rule = "CS201";
  f.name = "stale-device-pointer";
  f.message = "graph 1 reads freed memory";
  f.remediation = "keep the buffer";
  f.api = "cuGraphLaunch";
  f.symbol = "cuGraphLaunch_ptsz";
  f.result_name = "CUDA_SUCCESS";
  f.thread = {10, 11, 2, "worker"};
  f.capture = capture_ref{3, "global", "stream 0x5 (blocking)", {10, 10, 1, "main"}, {frame("begin()", "a.cpp", 12)}};
  f.graph = graph_ref{1, 4, 9};
  pointer_ref p;
  p.address = 0x7f0000000100;
  p.node = 5;
  p.node_type = "kernel";
  p.kernel = "scale(float*, int)";
  p.parameter = 0;
  p.offset = 8;
  p.allocation = 0x7f0000000000;
  p.allocation_bytes = 4096;
  p.allocation_offset = 0x100;
  p.allocated_at = {frame("make_buffer", "a.cpp", 20)};
  p.freed_at = {frame("drop_buffer", "a.cpp", 30)};
  p.owner_now = "nobody";
  f.pointers = {p};
  f.stack = {frame("launch", "a.cpp", 40)};
  stack_frame bare;
  bare.module = "libthing.so";
  bare.offset = 0x1234;
  f.stack.push_back(bare);
  f.python = {frame("step", "train.py", 7)};
  f.count = 3;
  f.cascade = {{"cuEventRecord", 901, {}}, {"cuEventRecord", 901, {}}, {"cuStreamEndCapture", 901, {}}};
  f.after = "ffff";
  f.fingerprint = "abcd";
  return f;
}

} // namespace

TEST_CASE("the text report says everything a finding knows") {
  finding first;
  first.rule = "CS105";
  first.api = "cuMemAlloc";
  first.fingerprint = "ffff";
  first.suppressed = true;
  const std::vector<finding> findings = {first, full_finding()};
  audit_summary summary;
  summary.events = 1;
  summary.rules.push_back({"CS202", "unstable", false, "needs level full", 0});
  summary.notes.push_back("something was given up");
  const report_data data{findings, summary};
  const std::string text = write_text(data, {});
  for (const char* part : {"== CS201 stale-device-pointer\n",
                           "capture 3 (global mode, stream 0x5 (blocking)), begun by thread 1 \"main\" (pid 10, tid "
                           "10) in begin()  a.cpp:12",
                           "error: graph 1 reads freed memory (3 times)",
                           "cuGraphLaunch [cuGraphLaunch_ptsz] returned 0 (CUDA_SUCCESS), on thread 2 \"worker\"",
                           "graph 1 (9 nodes), replay 4",
                           "#0 launch  a.cpp:40",
                           "#1 ??  (libthing.so+0x1234)",
                           "#0 step  train.py:7",
                           "0x7f0000000100 in node 5 (kernel), kernel scale(float*, int), parameter 0 at byte 8",
                           "byte 256 of the 4 KiB at 0x7f0000000000",
                           "#0 make_buffer  a.cpp:20",
                           "#0 drop_buffer  a.cpp:30",
                           "now owned by nobody",
                           "3 later calls failed because of this:",
                           "cuEventRecord -> 901 (2 times)",
                           "cuStreamEndCapture -> 901\n",
                           "after: CS105 cuMemAlloc, which came first in this capture",
                           "fix: keep the buffer",
                           "fingerprint abcd",
                           "not evaluated: CS202 (needs level full)",
                           "note: something was given up"}) {
    INFO(part);
    CHECK(text.find(part) != std::string::npos);
  }
  CHECK(text.find("\x1b") == std::string::npos);
  CHECK(text.ends_with(last_line(data) + "\n"));
  CHECK(text.find("== CS105") == std::string::npos); // suppressed
  CHECK(write_text(data, {true, false}).find("\x1b[1;31merror\x1b[0m") != std::string::npos);
}

TEST_CASE("the headline of a finding points at the code a person would open") {
  // Debian's C library is compiled in csu/ and nptl/ of its source; their names begin with "../".
  const stack_frame start = frame("__libc_start_call_main", "../sysdeps/nptl/libc_start_call_main.h", 58);
  const stack_frame without_source = frame("main", "", 0);
  const stack_frame standard_library = frame("std::call_once", "/usr/include/c++/12/mutex", 800);
  const stack_frame own = frame("step", "engine/step.cpp", 41);
  const stack_frame torch = frame("item", "/venv/lib/python3.12/site-packages/torch/_tensor.py", 9);
  const stack_frame script = frame("train", "train.py", 7);
  const auto place = [](std::vector<stack_frame> native, std::vector<stack_frame> python) {
    finding f;
    f.stack = std::move(native);
    f.python = std::move(python);
    const std::string line = headline(f, {});
    return line.substr(line.rfind('['));
  };
  CHECK(place({without_source, start}, {}).starts_with("[main"));
  CHECK(place({standard_library, own, start}, {}).starts_with("[step"));
  CHECK(place({own, start}, {torch, script}).starts_with("[train"));
  CHECK(place({start}, {torch}).starts_with("[item"));
}

TEST_CASE("the worst first, then by rule and capture") {
  std::vector<finding> findings(4);
  const auto set = [&](std::size_t i, severity sev, const char* rule, int capture, const char* message) {
    findings[i].sev = sev;
    findings[i].rule = rule;
    findings[i].message = message;
    findings[i].capture = capture_ref{};
    findings[i].capture->id = capture;
  };
  set(0, severity::note, "CS101", 1, "fourth");
  set(1, severity::error, "CS105", 1, "third");
  set(2, severity::error, "CS101", 2, "second");
  set(3, severity::error, "CS101", 1, "first");
  audit_summary summary;
  const report_data data{findings, summary};
  std::string order;
  for (const finding* f : shown_findings(data)) order += f->message + " ";
  CHECK(order == "first second third fourth ");
}

TEST_CASE("the word of the last line") {
  const std::vector<finding> none;
  audit_summary summary;
  report_data data{none, summary};
  CHECK(verdict_of(data) == verdict::nothing_captured);
  CHECK(last_line(data) ==
        "capturesan: 0 errors, 0 warnings, 0 suppressed, nothing captured; 0 rules; 0 captures, 0 replays, 0 "
        "events, 0 dropped; driver unknown");
  summary.events = 1;
  CHECK(verdict_of(data) == verdict::nothing_captured);
  summary.captures_begun = 1;
  CHECK(verdict_of(data) == verdict::clean);
  data.unreadable = {"x"};
  CHECK(verdict_of(data) == verdict::incomplete);
  data.unreadable.clear();
  data.uncovered = {{1, "x"}};
  CHECK(verdict_of(data) == verdict::incomplete);
  data.uncovered.clear();
  summary.complete = false;
  CHECK(verdict_of(data) == verdict::incomplete);
  data.simulated = true;
  CHECK(last_line(data).ends_with("; driver: simulated"));
}

TEST_CASE("text that is no UTF-8 or would drive a terminal is made harmless") {
  CHECK(printable("plain \xc3\xa4 \xf0\x9f\x98\x80") == "plain \xc3\xa4 \xf0\x9f\x98\x80");
  CHECK(printable("a\x1b[31m\n\x7f") == "a\\x1b[31m\\x0a\\x7f");
  CHECK(printable("\xff\xc0\x80 \xed\xa0\x80 \xf4\x90\x80\x80 \xc3").find_first_of("\xff\xc0\xed\xf4\xc3") ==
        std::string::npos);
  CHECK(printable("\xc2\x9b") == "\\x9b");
}
