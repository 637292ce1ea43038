// The report for programs. `schema` rises when a field changes its meaning or goes away; new fields may come at any
// time.
#include "analyzer/report_json.h"

#include <algorithm>

#include "analyzer/report.h"

namespace capturesan {

namespace {

using json = ordered_json;

constexpr int json_schema = 1;

// Addresses are text: JSON numbers lose the low bits beyond 2^53 in many readers.
std::string hex(std::uint64_t value) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  do text.insert(text.begin(), digits[value & 15]);
  while (value >>= 4);
  return "0x" + text;
}

json to_json(const std::vector<stack_frame>& stack) {
  json frames = json::array();
  for (const stack_frame& frame : stack) {
    frames.push_back({{"module", frame.module},
                      {"symbol", frame.symbol},
                      {"offset", frame.offset},
                      {"file", frame.file},
                      {"line", frame.line},
                      {"address", hex(frame.address)}});
  }
  return frames;
}

json to_json(const thread_ref& thread) {
  return {{"pid", thread.pid}, {"tid", thread.tid}, {"index", thread.index}, {"name", thread.name}};
}

json to_json(const capture_ref& capture) {
  return {{"id", capture.id},
          {"mode", capture.mode},
          {"stream", capture.stream},
          {"origin_thread", to_json(capture.origin_thread)},
          {"began_at", to_json(capture.began_at)}};
}

json to_json(const pointer_ref& pointer) {
  return {{"address", hex(pointer.address)},
          {"graph", pointer.graph},
          {"node", pointer.node},
          {"node_type", pointer.node_type},
          {"operand", pointer.operand},
          {"kernel", pointer.kernel},
          {"parameter", pointer.parameter},
          {"offset", pointer.offset},
          {"allocation", hex(pointer.allocation)},
          {"allocation_bytes", pointer.allocation_bytes},
          {"allocation_offset", pointer.allocation_offset},
          {"allocated_at", to_json(pointer.allocated_at)},
          {"freed_at", to_json(pointer.freed_at)},
          {"allocated_in", pointer.allocated_in},
          {"freed_in", pointer.freed_in},
          {"owner_now", pointer.owner_now}};
}

json to_json(const finding& found) {
  json pointers = json::array();
  for (const pointer_ref& pointer : found.pointers) pointers.push_back(to_json(pointer));
  json cascade = json::array();
  for (const cascade_call& call : found.cascade) {
    cascade.push_back({{"api", call.api}, {"result", call.result}, {"thread", to_json(call.thread)}});
  }
  json graph = nullptr;
  if (found.graph) {
    graph = {{"id", found.graph->id},
             {"replay", found.graph->replay},
             {"nodes", found.graph->nodes},
             {"place", found.graph->place}};
  }
  return {{"rule", found.rule},
          {"name", found.name},
          {"severity", name_of(found.sev)},
          {"confidence", name_of(found.conf)},
          {"message", found.message},
          {"remediation", found.remediation},
          {"doc", found.doc},
          {"api", found.api},
          {"symbol", found.symbol},
          {"runtime_api", found.runtime_api},
          {"result", found.result},
          {"result_name", found.result_name},
          {"returned", found.returned},
          {"time_s", found.time_s},
          {"thread", to_json(found.thread)},
          {"capture", found.capture ? to_json(*found.capture) : json(nullptr)},
          {"graph", std::move(graph)},
          {"pointers", std::move(pointers)},
          {"uses", {{"pointers", found.uses}, {"nodes", found.nodes}, {"graphs", found.graphs}}},
          {"stack", to_json(found.stack)},
          {"python", to_json(found.python)},
          {"count", found.count},
          {"not_listed", found.not_listed},
          {"cascade", std::move(cascade)},
          {"after", found.after.empty() ? json(nullptr) : json(found.after)},
          {"fingerprint", found.fingerprint},
          {"suppressed", found.suppressed},
          {"suppressed_by", found.suppressed_by}};
}

json summary_json(const report_data& data) {
  const audit_summary& summary = data.summary;
  const report_counts counts = count_findings(data);
  json coverage = json::object(), remarks = summary.notes;
  for (const std::string& remark : data.remarks) remarks.push_back(remark);
  for (const auto& [name, pair] : summary.coverage) coverage[name] = {{"shim", pair.first}, {"cupti", pair.second}};
  return {{"errors", counts.errors},
          {"warnings", counts.warnings},
          {"notes", counts.notes},
          {"suspected", counts.suspected},
          {"suppressed", counts.suppressed},
          {"captures", std::max<std::uint64_t>(summary.captures_begun, summary.captures.size())},
          {"replays", summary.replays},
          {"events", summary.events},
          {"dropped", summary.dropped},
          {"processes", summary.processes},
          {"threads", summary.threads},
          {"complete", verdict_of(data) != verdict::incomplete},
          {"running", data.running},
          {"remarks", std::move(remarks)},
          {"coverage", std::move(coverage)},
          {"last_line", last_line(data)}};
}

json lists_json(const report_data& data) {
  json captures = json::array();
  for (const capture_summary& capture : data.summary.captures) {
    json item = to_json(capture.ref);
    item["result"] = capture.result;
    item["nodes"] = capture.nodes;
    item["begin_s"] = capture.begin_s;
    item["end_s"] = capture.end_s;
    captures.push_back(std::move(item));
  }
  json graphs = json::array();
  for (const graph_summary& graph : data.summary.graphs) {
    json unresolved = json::array();
    for (const uncovered_kernel& u : graph.unresolved)
      unresolved.push_back({{"kernel", u.kernel}, {"why", u.why}, {"nodes", u.nodes}});
    graphs.push_back({{"id", graph.id},
                      {"capture", graph.capture},
                      {"place", graph.place},
                      {"nodes", graph.nodes},
                      {"kernel_nodes", graph.kernel_nodes},
                      {"kernel_nodes_resolved", graph.kernel_nodes_resolved},
                      {"unresolved", std::move(unresolved)},
                      {"replays", graph.replays}});
  }
  json rules = json::array();
  for (const rule_status& rule : data.summary.rules) {
    rules.push_back({{"id", rule.id},
                     {"name", rule.name},
                     {"evaluated", rule.evaluated},
                     {"why_not", rule.why_not},
                     {"findings", rule.findings}});
  }
  json uncovered = json::array();
  for (const uncovered_process& process : data.uncovered) {
    uncovered.push_back({{"pid", process.pid}, {"command", process.command}});
  }
  json ranks = json::array();
  for (const rank_summary& rank : data.summary.ranks) {
    ranks.push_back({{"pid", rank.pid}, {"variable", rank.variable}, {"rank", rank.rank}});
  }
  return {{"ranks", ranks}, {"captures", captures},     {"graphs", graphs},
          {"rules", rules}, {"not_covered", uncovered}, {"not_read", data.unreadable}};
}

} // namespace

std::string json_text(const ordered_json& value) {
  const std::string text = value.dump(2, ' ', false, ordered_json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size() + 1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '/' && i > 0 && text[i - 1] == '<') safe += '\\'; // `</` occurs in strings only
    safe += text[i];
  }
  return safe + '\n';
}

std::string write_json(const report_data& data, const report_style&) {
  const driver_summary& driver = data.summary.driver;
  json out = {{"schema", json_schema},
              {"tool", {{"name", "capturesan"}, {"version", CAPTURESAN_VERSION}}},
              {"driver", {{"kind", driver_kind(data)}, {"version", driver.version}, {"device", driver.device}}},
              {"summary", summary_json(data)},
              {"exit_code", data.exit_code},
              {"exit_reason", data.exit_reason},
              {"child_exit", data.child_exit ? json(*data.child_exit) : json(nullptr)},
              {"command", data.command},
              {"trace", data.trace}};
  out.update(lists_json(data));
  json findings = json::array();
  for (const finding& found : data.findings) {
    if (found.conf >= data.least_confidence) findings.push_back(to_json(found));
  }
  out["findings"] = std::move(findings);
  return json_text(out);
}

} // namespace capturesan
