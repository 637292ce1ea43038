// Every cell that was measured on a real driver has exactly one owner among the shipped rules if the driver refused the
// call with 900 or 902-908, and none if it did not. Source: the two tables in tests/golden, made by a probe on driver
// 580.159.
#include <fstream>
#include <functional>
#include <map>

#include "tests/unit/support.h"

using namespace capturesan;

namespace {

std::vector<std::string> split_csv(const std::string& line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

struct row {
  std::string stream_kind, call, mode, thread;
  int result = 0;
  std::string status;
  int end_result = 0;
};

std::vector<row> read_table(const std::string& name) {
  std::ifstream in(std::string(CAPTURESAN_GOLDEN) + "/" + name);
  REQUIRE(in);
  std::string line;
  std::getline(in, line);
  const auto columns = split_csv(line);
  const auto column = [&](const std::string& c) {
    const auto it = std::find(columns.begin(), columns.end(), c);
    REQUIRE(it != columns.end());
    return static_cast<std::size_t>(it - columns.begin());
  };
  std::vector<row> out;
  while (std::getline(in, line)) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const auto f = split_csv(line);
    if (f.size() != columns.size()) continue;
    out.push_back({f[column("capture_stream")], f[column("call")], f[column("begin_mode")], f[column("calling_thread")],
                   std::stoi(f[column("result")]), f[column("status_after")],
                   std::stoi(f[column("end_capture_result")])});
  }
  return out;
}

// Handles of the probe's objects.
constexpr std::uint64_t capturing = 0x1000, other_stream = 0x2000, nonblocking = 0x3000, legacy = 1, own_default = 2;
constexpr std::uint64_t batch_target = 0x700000100000, batch_source = 0x700000200000;
constexpr std::uint64_t eager_event = 0x8000, captured_event = 0x8100, fresh_event = 0x8200;

struct step {
  std::string symbol;
  std::uint64_t stream = 0;
  std::array<std::uint64_t, 3> arg{};
};

std::uint64_t stream_in(const std::string& name) {
  const auto has = [&](const char* word) { return name.find(word) != std::string::npos; };
  if (has("nonblocking")) return nonblocking;
  if (has("legacy")) return legacy;
  if (has("(null)")) return 0;
  if (has("per-thread")) return own_default;
  if (has("other")) return other_stream;
  if (has("capturing")) return capturing;
  return 0;
}

const step record_captured{"cuEventRecord", capturing, {captured_event}};
const step fork_it{"cuStreamWaitEvent", nonblocking, {captured_event}};
const step relax{"cuThreadExchangeStreamCaptureMode", 0, {2, 0}};
const step make_local{"cuThreadExchangeStreamCaptureMode", 0, {1, 0}};
const step restore{"cuThreadExchangeStreamCaptureMode", 0, {0, 2}};

// The calls behind the names of rows that are more than one call, or whose name does not say what was called (capture
// probe). The last one is the one that answered the result of the row, unless it is followed by `restore`.
const std::map<std::string, std::vector<step>>& several_calls() {
  static const std::map<std::string, std::vector<step>> table = {
      {"cuEventRecord(captured)+cuEventQuery", {record_captured, {"cuEventQuery", 0, {captured_event}}}},
      {"cuEventRecord(captured)+cuEventSynchronize", {record_captured, {"cuEventSynchronize", 0, {captured_event}}}},
      {"cuEventRecordWithFlags(EXTERNAL)+cuEventQuery",
       {{"cuEventRecordWithFlags", capturing, {fresh_event, 1}}, {"cuEventQuery", 0, {fresh_event}}}},
      {"cuEventElapsedTime(captured,captured)",
       {{"cuEventRecord", capturing, {fresh_event}}, {"cuEventElapsedTime", 0, {fresh_event, fresh_event}}}},
      {"cuEventDestroy(captured)",
       {{"cuEventRecord", capturing, {fresh_event}}, {"cuEventDestroy_v2", 0, {fresh_event}}}},
      {"cuEventCreate+Destroy", {{"cuEventCreate", 0, {fresh_event}}, {"cuEventDestroy_v2", 0, {fresh_event}}}},
      {"cuEventRecord(ev,legacy)", {{"cuEventRecord", legacy, {fresh_event}}}},
      {"cuStreamDestroy(capturing)", {{"cuStreamBeginCapture_v2", 0x7000, {1}}, {"cuStreamDestroy_v2", 0x7000}}},
      {"cuStreamDestroy(the capturing stream's forked child)",
       {record_captured, {"cuStreamWaitEvent", 0x7000, {captured_event}}, {"cuStreamDestroy_v2", 0x7000}}},
      {"cuModuleLoadData+GetFunction", {{"cuModuleLoadData", 0, {0x55}}, {"cuModuleGetFunction", 0, {0x56, 0x55}}}},
      {"cuModuleLoadData+launch(capturing)", {{"cuModuleLoadData", 0, {0x55}}, {"cuLaunchKernel", capturing, {0x56}}}},
      {"cuModuleUnload(loaded)", {{"cuModuleLoadData", 0, {0x55}}, {"cuModuleUnload", 0, {0x55}}}},
      {"cuStreamWaitEvent(capturing,eager ev)", {{"cuStreamWaitEvent", capturing, {eager_event}}}},
      {"cuStreamWaitEvent(capturing,eager ev,EXTERNAL)", {{"cuStreamWaitEvent", capturing, {eager_event, 1}}}},
      {"cuStreamWaitEvent(capturing, never-recorded event)", {{"cuStreamWaitEvent", capturing, {fresh_event}}}},
      {"cuStreamWaitEvent(legacy, captured event)", {record_captured, {"cuStreamWaitEvent", legacy, {captured_event}}}},
      {"fork-nojoin", {record_captured, fork_it}},
      {"fork+launch-nojoin", {record_captured, fork_it, {"cuLaunchKernel", nonblocking}}},
      {"fork+launch+join",
       {record_captured,
        fork_it,
        {"cuLaunchKernel", nonblocking},
        {"cuEventRecord", nonblocking, {fresh_event}},
        {"cuStreamWaitEvent", capturing, {fresh_event}}}},
      {"dev1 fork from capture+launch+join",
       {record_captured,
        fork_it,
        {"cuLaunchKernel", nonblocking},
        {"cuEventRecord", nonblocking, {fresh_event}},
        {"cuStreamWaitEvent", capturing, {fresh_event}}}},
      {"fork+cuStreamEndCapture(forked stream)", {record_captured, fork_it, {"cuStreamEndCapture", nonblocking}}},
      {"cuStreamBeginCapture(again same)", {{"cuStreamBeginCapture_v2", capturing, {2}}}},
      {"cuStreamBeginCapture(legacy)", {{"cuStreamBeginCapture_v2", legacy, {2}}}},
      {"cuStreamEndCapture(not capturing other)", {{"cuStreamEndCapture", other_stream}}},
      {"cuStreamEndCapture(origin; from the calling thread)", {{"cuStreamEndCapture", capturing, {0x66, 1}}}},
      {"cuStreamGetCaptureInfo(legacy)", {{"cuStreamIsCapturing", legacy}}},
      {"cuGraphInstantiate(empty)", {{"cuGraphCreate", 0, {0x60}}, {"cuGraphInstantiateWithFlags", 0, {0x61, 0x60}}}},
      // In the relaxed cells the instantiation passed and the launch was refused; the owner is the same by class.
      {"cuGraphInstantiate+Launch(other)",
       {{"cuGraphCreate", 0, {0x60}}, {"cuGraphInstantiateWithFlags", 0, {0x61, 0x60}}}},
      {"cuGraphInstantiate+Launch(capturing)",
       {{"cuGraphCreate", 0, {0x60}},
        {"cuGraphInstantiateWithFlags", 0, {0x61, 0x60}},
        {"cuGraphLaunch", capturing, {0x61}}}},
      {"cuGraphExecDestroy(other graph)",
       {relax, {"cuGraphInstantiateWithFlags", 0, {0x61, 0x60}}, restore, {"cuGraphExecDestroy", 0, {0x61}}}},
      {"cuGraphLaunch(prebuilt exec; capturing)",
       {relax, {"cuGraphInstantiateWithFlags", 0, {0x61, 0x60}}, restore, {"cuGraphLaunch", capturing, {0x61}}}},
      {"cuGraphLaunch(prebuilt exec; other)",
       {relax, {"cuGraphInstantiateWithFlags", 0, {0x61, 0x60}}, restore, {"cuGraphLaunch", other_stream, {0x61}}}},
      {"cuGraphUpload(prebuilt exec; other)", {{"cuGraphUpload", other_stream, {0x61}}}},
      {"two captures; wait captured event of the other (merge)",
       {{"cuStreamBeginCapture_v2", 0x7000, {2}},
        {"cuEventRecord", 0x7000, {fresh_event}},
        {"cuStreamWaitEvent", capturing, {fresh_event}}}},
      {"exchange RELAXED; cuMemAlloc; restore", {relax, {"cuMemAlloc_v2", 0, {0x90000, 1024}}, restore}},
      {"exchange RELAXED; cuEventQuery(eager); restore", {relax, {"cuEventQuery", 0, {eager_event}}, restore}},
      {"exchange THREAD_LOCAL; cuMemAlloc; restore", {make_local, {"cuMemAlloc_v2", 0, {0x90000, 1024}}, restore}},
      {"exchange RELAXED; cuStreamSynchronize(other); restore",
       {relax, {"cuStreamSynchronize", other_stream}, restore}},
      {"exchange RELAXED; cuCtxSynchronize; restore", {relax, {"cuCtxSynchronize"}, restore}},
      {"cuMemAllocAsync+cuMemFreeAsync(capturing)",
       {{"cuMemAllocAsync", capturing, {0x90000, 1024}}, {"cuMemFreeAsync", capturing, {0x90000}}}},
      {"cuMemFreeAsync(eager pointer; capturing)",
       {relax, {"cuMemAlloc_v2", 0, {0x90000, 1024}}, restore, {"cuMemFreeAsync", capturing, {0x90000}}}},
      {"cuMemFreeHost", {relax, {"cuMemHostAlloc", 0, {0x90000, 4096}}, restore, {"cuMemFreeHost", 0, {0x90000}}}},
      {"cuMemHostUnregister",
       {relax, {"cuMemHostRegister_v2", 0, {0x90000, 4096}}, restore, {"cuMemHostUnregister", 0, {0x90000}}}},
      {"cuMemAllocAsync(other)", {{"cuMemAllocAsync", other_stream, {0x90000, 1024}}}},
      {"cuMemcpyBatchAsync(capturing)", {{"cuMemcpyBatchAsync_v2", capturing, {batch_target, batch_source, 64}}}},
      {"cuMemPrefetchAsync", {{"cuMemPrefetchAsync_v2", capturing, {0x90000, 64}}}},
      {"cuStreamAttachMemAsync", {{"cuStreamAttachMemAsync", capturing, {0x90000}}}},
      {"cuOccupancyMaxActiveBlocks", {{"cuOccupancyMaxActiveBlocksPerMultiprocessor"}}},
      {"cuMemcpyHtoDAsync(pageable;nonblocking)", {{"cuMemcpyHtoDAsync_v2", nonblocking}}},
      {"cuCtxCreate", {}}, // the probe made no call
      {"none", {}},
      {"dev1 kernel on dev0 capturing stream", {{"cuLaunchKernel", capturing}}},
      {"dev1 current; cuMemcpyAsync peer on capturing stream", {{"cuMemcpyAsync", capturing}}},
      {"dev1 cuLaunchKernel(t1)", {{"cuLaunchKernel", other_stream}}},
      {"dev1 cuStreamSynchronize", {{"cuStreamSynchronize", other_stream}}},
      {"dev1 cuStreamQuery", {{"cuStreamQuery", other_stream}}},
      {"dev1 cuStreamSynchronize(legacy)", {{"cuStreamSynchronize", legacy}}},
  };
  return table;
}

// The newest ABI name of a documented name.
std::string symbol_of(const std::string& api) {
  std::string found;
  for (const auto& c : trace::call_table)
    if (c.api == api && !trace::per_thread_variant(c.symbol)) found = c.symbol;
  return found;
}

std::vector<step> steps_of(std::string name) {
  const auto it = several_calls().find(name);
  if (it != several_calls().end()) return it->second;
  if (name.starts_with("dev1 ")) name.erase(0, 5);
  const std::string symbol = symbol_of(name.substr(0, name.find('(')));
  INFO("row " << name);
  REQUIRE_FALSE(symbol.empty());
  return {{symbol, stream_in(name)}};
}

trace::capture_status status_of(const std::string& s) {
  return s == "invalidated" ? trace::capture_status::invalidated
         : s == "active"    ? trace::capture_status::active
                            : trace::capture_status::none;
}

// Begin, launch, the call, launch, end; with the results and statuses of the row.
std::vector<std::byte> trace_of(const row& r) {
  trace_builder b;
  const std::uint64_t modes = r.mode == "global" ? 0 : r.mode == "thread_local" ? 1 : 2;
  b.call(1, {.symbol = "cuStreamCreate", .arg = {capturing, r.stream_kind == "blocking" ? 0u : 1u}});
  b.call(1, {.symbol = "cuStreamCreate", .arg = {other_stream, 0}});
  b.call(1, {.symbol = "cuStreamCreate", .arg = {nonblocking, 1}});
  b.call(1, {.symbol = "cuEventRecord", .stream = other_stream, .arg = {eager_event}});
  for (const std::uint64_t address : {batch_target, batch_source})
    b.call(1, {.symbol = "cuMemAlloc_v2", .arg = {address, 4096}});
  const std::uint64_t begin = b.call(1, {.symbol = "cuStreamBeginCapture_v2", .stream = capturing, .arg = {modes}});
  b.call(1, {.symbol = "cuLaunchKernel", .stream = capturing});
  const std::uint32_t caller = r.thread == "same" ? 1 : 2;
  const auto steps = steps_of(r.call);
  std::size_t judged_step = steps.size();
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (steps[i].arg != restore.arg || steps[i].symbol != restore.symbol) judged_step = i;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const int result = i == judged_step ? r.result : 0;
    if (result >= 900) b.status(caller, capturing, begin, status_of(r.status));
    b.call(caller, {.symbol = steps[i].symbol, .result = result, .stream = steps[i].stream, .arg = steps[i].arg});
  }
  const bool invalid = r.status == "invalidated";
  const auto ending = [&](const char* symbol, int result) {
    if (result >= 900 && result != 904) b.status(1, capturing, begin, trace::capture_status::invalidated);
    b.call(1, {.symbol = symbol, .result = result, .stream = capturing, .arg = {0x99, 2}});
  };
  if (r.status != "none") ending("cuLaunchKernel", invalid ? 901 : 0);
  ending("cuStreamEndCapture", r.end_result);
  if (r.end_result == 0) { // the probe's two kernels take one address each
    const std::pair<std::uint16_t, std::uint16_t> layout[] = {{0, 8}};
    const std::uint64_t parameter[] = {0x700000000000};
    b.function(1, 0x77, "kernel", layout);
    trace::node_record n{};
    n.value[0] = 0x77;
    b.node(1, n, std::as_bytes(std::span(parameter)));
    b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {0x9a, 0x99}});
  }
  return b.bytes();
}

bool has_owner(int result) { return result >= 900 && result <= 908 && result != 901; }

// What design.md, section 5, says.
std::string expected_owner(const row& r) {
  switch (r.result) {
  case 907:
    return "CS110";
  case 902:
  case 903:
  case 905:
  case 908:
    return "CS109";
  case 904:
    return "CS108";
  case 906:
    return "CS102";
  default:
    break;
  }
  if (r.status == "active") return steps_of(r.call).back().stream == capturing ? "CS111" : "CS105";
  std::string symbol;
  for (const auto& s : steps_of(r.call))
    if (s.symbol != restore.symbol) symbol = s.symbol;
  // The rows that put work into the capture with the refused call's thread before: it takes part.
  const bool took_part = r.call.starts_with("cuEventRecordWithFlags");
  if (r.thread == "other" && !took_part) return "CS104";
  if (symbol.find("Synchronize") != std::string::npos || symbol.find("Query") != std::string::npos) return "CS101";
  if (symbol == "cuGraphExecDestroy" || symbol == "cuModuleUnload") return "CS107";
  return "CS105";
}

void walk(const std::string& table, std::size_t rows) {
  const auto all = read_table(table);
  REQUIRE(all.size() == rows);
  std::map<std::string, int> owners;
  for (const row& r : all) {
    INFO(r.stream_kind << " " << r.call << " " << r.mode << " " << r.thread << " -> " << r.result << " " << r.status);
    const judged j(trace_of(r));
    std::vector<std::string> expected;
    if (has_owner(r.result)) expected.push_back(expected_owner(r));
    if (has_owner(r.end_result)) expected.push_back("CS108"); // 904, the only one the tables have there
    const std::size_t refused = expected.size();
    // The probe leaves its second capture open, or destroys the stream it is on.
    if (r.call == "cuStreamDestroy(capturing)" || r.call.starts_with("two captures;")) expected.push_back("CS113");
    std::vector<std::string> found;
    for (const finding& f : j.findings()) {
      if (f.rule == "CS111" && !is_capture_result(r.result)) { // refused for another reason than the capture
        CHECK((r.status == "active" && f.conf < confidence::proved));
      } else if (f.sev != severity::note) {
        found.push_back(f.rule);
      } else { // what answered 0 may still be worth a note
        CHECK((f.rule == "CS103" || f.rule == "CS106"));
      }
    }
    CHECK(found == expected);
    if (has_owner(r.result) && refused == 1 && !j.findings().empty()) {
      const finding& f = j.findings().front();
      ++owners[f.rule];
      CHECK(f.result == r.result);
      // Kernels follow the dropped copy: that none of them does its work is only likely.
      CHECK(f.conf == (f.rule == "CS111" ? confidence::likely : confidence::proved));
      CHECK(f.after.empty());
      if (r.status == "invalidated") CHECK(f.cascade.size() == 2); // the next launch and the end
      if (r.status == "active") CHECK(f.cascade.empty());
    }
    CHECK(j.summary().captures.size() >= 1);
  }
  for (const auto& [rule, n] : owners) WARN(table << ": " << rule << " owns " << n << " cells");
}

} // namespace

TEST_CASE("every cell of the capture matrix has one owner or none") { walk("capture_matrix_580.159.csv", 1440); }
TEST_CASE("every cell of the two-GPU matrix has one owner or none") {
  walk("capture_matrix_two_gpus_580.159.csv", 180);
}
