// SARIF 2.1.0 as GitHub code scanning and others read it. What their limits force us to cut is said in the
// notifications. Suppressed findings are left out: GitHub would show them as open.
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "analyzer/report_json.h"
#include "analyzer/report_places.h"

namespace capturesan {

namespace {

using json = ordered_json;

// GitHub takes 25,000 results of a run and shows the worst 5,000; 10 tags of a rule; 10 MB of compressed file.
constexpr std::size_t most_results = 5000, most_tags = 10, most_steps = 50, most_notifications = 200;
constexpr std::size_t most_frames = 16;
// Ours alone: GitHub computes its primaryLocationLineHash itself as long as nobody supplies one.
constexpr const char* fingerprint_key = "capturesanFingerprint/v1";

std::string_view level_of(severity value) { return name_of(value); } // the words are SARIF's too

json text(std::string_view what) { return {{"text", what}}; }

json location(const stack_frame* frame, const report_data& data, const std::string& message) {
  const source_place place = place_of(frame, data);
  json artifact = {{"uri", uri_of(place)}};
  if (!place.path.starts_with('/')) artifact["uriBaseId"] = "%SRCROOT%";
  json physical = {{"artifactLocation", std::move(artifact)}};
  // A result without a line is shown at the top of its file.
  json region = {{"startLine", std::max(place.line, 1)}};
  if (frame && place.line > 0 && data.source_line) {
    const std::string line = data.source_line(frame->file, frame->line);
    if (!line.empty()) region["snippet"] = text(printable(line, most_name_bytes));
  }
  physical["region"] = std::move(region);
  json out = {{"physicalLocation", std::move(physical)}};
  if (frame) out["logicalLocations"] = {{{"fullyQualifiedName", frame_name(*frame)}, {"kind", "function"}}};
  if (!message.empty()) out["message"] = text(message);
  return out;
}

json step(const std::vector<stack_frame>& stack, const report_data& data, const std::string& message) {
  return {{"location", location(best_frame(stack), data, message)}};
}

// How it came to the finding: the capture begins, memory comes and goes, the call.
json flow(const finding& found, const report_data& data) {
  json steps = json::array();
  if (found.capture && !found.capture->began_at.empty()) {
    steps.push_back(step(found.capture->began_at, data, fmt::format("capture {} begins", found.capture->id)));
  }
  for (const pointer_ref& pointer : found.pointers) {
    if (steps.size() + 3 > most_steps) break;
    const std::string what = fmt::format("{:#x}, {} bytes", pointer.allocation, pointer.allocation_bytes);
    if (!pointer.allocated_at.empty()) steps.push_back(step(pointer.allocated_at, data, "allocates " + what));
    if (!pointer.freed_at.empty()) steps.push_back(step(pointer.freed_at, data, "frees " + what));
  }
  const stack_frame* here = best_frame(found, data.root);
  if (steps.empty() || !here) return json::array();
  steps.push_back({{"location", location(here, data, message_of(found))}});
  return json::array({{{"threadFlows", {{{"locations", std::move(steps)}}}}}});
}

json stacks(const finding& found, const report_data& data) {
  json out = json::array();
  for (const auto& [title, stack] : {std::pair("Python stack", &found.python), std::pair("stack", &found.stack)}) {
    if (stack->empty()) continue;
    json frames = json::array();
    for (std::size_t i = 0; i < std::min(stack->size(), most_frames); ++i) {
      frames.push_back({{"location", location(&(*stack)[i], data, "")}});
    }
    out.push_back({{"message", text(title)}, {"frames", std::move(frames)}});
  }
  return out;
}

std::string full_message(const finding& found) {
  std::string message = message_of(found);
  if (found.count > 1) message += fmt::format(" ({} times)", found.count);
  if (const std::string fix = fix_of(found); !fix.empty()) message += "\nFix: " + fix;
  return message;
}

json result_of(const finding& found, std::size_t rule, const report_data& data) {
  json out = {{"ruleId", printable(found.rule, most_name_bytes)},
              {"ruleIndex", rule},
              {"level", level_of(found.conf == confidence::suspected ? severity::note : found.sev)},
              {"message", text(full_message(found))},
              {"locations", json::array({location(best_frame(found, data.root), data, "")})},
              {"partialFingerprints", {{fingerprint_key, printable(found.fingerprint, most_name_bytes)}}},
              {"occurrenceCount", std::max<std::uint64_t>(found.count, 1)}};
  if (json stack = stacks(found, data); !stack.empty()) out["stacks"] = std::move(stack);
  if (json flows = flow(found, data); !flows.empty()) out["codeFlows"] = std::move(flows);
  json properties = {{"confidence", name_of(found.conf)}};
  if (!found.api.empty()) properties["api"] = printable(found.api, most_name_bytes);
  if (!found.result_name.empty()) properties["result"] = printable(found.result_name, most_name_bytes);
  if (found.capture) properties["capture"] = found.capture->id;
  if (found.graph) properties["graph"] = found.graph->id;
  out["properties"] = std::move(properties);
  return out;
}

json rule_of(const rule_status& rule) {
  const std::string id = printable(rule.id, most_name_bytes), name = printable(rule.name, most_name_bytes);
  const std::string description = printable(rule.description, most_message_bytes);
  const std::string fix = printable(rule.remediation, most_message_bytes);
  json out = {{"id", id}, {"name", name}, {"shortDescription", text(name.empty() ? id : name)}};
  out["fullDescription"] = text(description.empty() ? (name.empty() ? id : name) : description);
  std::string help = description;
  if (!fix.empty()) help += (help.empty() ? "" : "\n\n") + std::string("Fix: ") + fix;
  if (!rule.doc.empty())
    help += (help.empty() ? "" : "\n\n") + std::string("See ") + printable(rule.doc, most_name_bytes);
  out["help"] = text(help.empty() ? id : help);
  out["defaultConfiguration"] = {{"level", level_of(rule.sev)}};
  json tags = json::array(); // SARIF wants each once
  for (const std::string& tag : std::set<std::string>(rule.tags.begin(), rule.tags.end())) {
    const std::string shown = printable(tag, most_name_bytes);
    if (tags.size() < most_tags && std::find(tags.begin(), tags.end(), shown) == tags.end()) tags.push_back(shown);
  }
  out["properties"] = {{"tags", std::move(tags)}};
  return out;
}

// Every rule that was loaded, so that an alert can close; and those of findings, should one not be among them.
struct rule_table {
  json list = json::array();
  std::map<std::string, std::size_t> index;

  std::size_t add(const rule_status& rule) {
    const auto [at, fresh] = index.try_emplace(rule.id, list.size());
    if (fresh) list.push_back(rule_of(rule));
    return at->second;
  }
  std::size_t of(const finding& found) {
    rule_status rule;
    rule.id = found.rule;
    rule.name = found.name;
    rule.sev = found.sev;
    return add(rule);
  }
};

class notices {
 public:
  void add(severity level, std::string_view what) {
    if (list_.size() == most_notifications) {
      ++more_;
      return;
    }
    list_.push_back({{"level", level_of(level)}, {"message", text(printable(what, most_message_bytes))}});
  }
  json take() {
    if (more_) list_.push_back({{"level", "note"}, {"message", text(fmt::format("{} more notifications", more_))}});
    return std::move(list_);
  }

 private:
  json list_ = json::array();
  std::size_t more_ = 0;
};

json notifications(const report_data& data, std::size_t cut) {
  notices list;
  const audit_summary& summary = data.summary;
  list.add(severity::note, last_line(data));
  if (cut)
    list.add(severity::warning, fmt::format("{} findings were cut: this file holds the worst {}", cut, most_results));
  if (summary.dropped) list.add(severity::warning, fmt::format("{} records were dropped", summary.dropped));
  if (summary.events == 0) list.add(severity::warning, "nothing was captured");
  if (data.running) list.add(severity::warning, "the program was still running when this was written");
  for (const uncovered_process& process : data.uncovered) {
    list.add(severity::warning, fmt::format("process {} was not covered: {}", process.pid, process.command));
  }
  for (const std::string& reason : data.unreadable) list.add(severity::warning, "not read: " + reason);
  for (const rule_status& rule : summary.rules) {
    if (!rule.evaluated) list.add(severity::note, fmt::format("{} was not evaluated: {}", rule.id, rule.why_not));
  }
  for (const auto* notes : {&summary.notes, &data.remarks}) {
    for (const std::string& note : *notes) list.add(severity::note, note);
  }
  return list.take();
}

} // namespace

std::string write_sarif(const report_data& data, const report_style&) {
  rule_table rules;
  for (const rule_status& rule : data.summary.rules) rules.add(rule);
  const std::vector<const finding*> findings = shown_findings(data);
  const std::size_t count = std::min(findings.size(), most_results);
  json results = json::array();
  for (std::size_t i = 0; i < count; ++i) results.push_back(result_of(*findings[i], rules.of(*findings[i]), data));

  const verdict state = verdict_of(data);
  const bool whole =
      state != verdict::incomplete && state != verdict::nothing_captured && data.exit_reason != "internal-error";
  json run = {{"tool",
               {{"driver",
                 {{"name", "CaptureSan"},
                  {"version", CAPTURESAN_VERSION},
                  {"semanticVersion", CAPTURESAN_VERSION},
                  {"rules", std::move(rules.list)}}}}},
              {"invocations",
               {{{"executionSuccessful", whole},
                 {"toolExecutionNotifications", notifications(data, findings.size() - count)}}}},
              {"columnKind", "unicodeCodePoints"},
              {"results", std::move(results)}};
  run["properties"] = {{"driver", driver_kind(data)}};
  const json out = {
      {"$schema", "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"},
      {"version", "2.1.0"},
      {"runs", json::array({std::move(run)})}};
  return json_text(out);
}

} // namespace capturesan
