// The report for people: grouped by rule and capture, the worst first, the last line last.
#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <map>

#include "analyzer/report_places.h"

namespace capturesan {

namespace {

constexpr std::size_t frames_shown = 24;
constexpr std::size_t pointers_shown = 4;
constexpr std::size_t kernels_shown = 5; // that no address is known of
constexpr std::size_t most_source_bytes = 160;

std::string shown(std::string_view text) { return printable(text, most_name_bytes); }

enum class ink : std::uint8_t { plain, bold, dim, red, yellow, cyan };

// Collects the text; every foreign string passes through shown().
class page {
 public:
  explicit page(const report_style& style, const report_data* data = nullptr) : colour_(style.colour), data_(data) {}

  std::string paint(ink colour, std::string_view text) const {
    static constexpr std::string_view codes[] = {"0", "1", "2", "1;31", "1;33", "1;36"};
    if (!colour_ || colour == ink::plain) return std::string(text);
    return fmt::format("\x1b[{}m{}\x1b[0m", codes[static_cast<std::size_t>(colour)], text);
  }
  void line(int indent, std::string_view text) {
    fmt::format_to(std::back_inserter(out_), "{:{}}{}\n", "", indent, text);
  }
  // The line of the source file, if it can be had. Says whether.
  bool source(int indent, const stack_frame& frame) {
    if (!data_ || !data_->source_line || frame.file.empty() || frame.line <= 0) return false;
    const std::string text = data_->source_line(frame.file, frame.line);
    const auto begin = text.find_first_not_of(" \t");
    if (begin == std::string::npos) return false;
    const std::string number = std::to_string(frame.line);
    line(indent, paint(ink::dim, fmt::format("{:>6} | ", number)) +
                     printable(std::string_view(text).substr(begin), most_source_bytes));
    return true;
  }
  void gap() { out_ += '\n'; }
  std::string& text() { return out_; }

 private:
  bool colour_;
  const report_data* data_;
  std::string out_;
};

ink ink_of(severity value) {
  if (value == severity::error) return ink::red;
  return value == severity::warning ? ink::yellow : ink::cyan;
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::string_view units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (unit + 1 < std::size(units) && bytes >= 1024 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  if (unit + 1 < std::size(units) && bytes >= 1024ull * 1024) {
    return fmt::format("{:.1f} {}", static_cast<double>(bytes) / 1024, units[unit + 1]);
  }
  return fmt::format("{} {}", bytes, units[unit]);
}

std::string thread_text(const thread_ref& thread) {
  std::string text = fmt::format("thread {}", thread.index);
  if (!thread.name.empty()) text += fmt::format(" \"{}\"", shown(thread.name));
  return text + fmt::format(" (pid {}, tid {})", thread.pid, thread.tid);
}

std::string place(const stack_frame& frame) {
  if (frame.file.empty()) return {};
  return frame.line > 0 ? fmt::format("{}:{}", shown(frame.file), frame.line) : shown(frame.file);
}

std::string frame_text(const stack_frame& frame) {
  std::string text = frame.symbol.empty() ? std::string("??") : shown(frame.symbol);
  if (const std::string where = place(frame); !where.empty()) return text + "  " + where;
  // The offset belongs to what stands before it: to the function, if its name is known.
  if (!frame.module.empty() && frame.symbol.empty())
    return text + fmt::format("  ({}+{:#x})", shown(frame.module), frame.offset);
  if (!frame.module.empty()) return fmt::format("{}+{:#x}  ({})", text, frame.offset, shown(frame.module));
  if (frame.address) text += fmt::format("  [{:#x}]", frame.address);
  return text;
}

void write_stack(page& out, int indent, std::string_view title, const std::vector<stack_frame>& stack) {
  if (stack.empty()) return;
  out.line(indent, title);
  const std::size_t count = std::min(stack.size(), frames_shown);
  bool quoted = false;
  for (std::size_t i = 0; i < count; ++i) {
    out.line(indent + 2, fmt::format("{} {}", out.paint(ink::dim, fmt::format("#{}", i)), frame_text(stack[i])));
    quoted = quoted || out.source(indent + 2, stack[i]);
  }
  if (count < stack.size()) out.line(indent + 2, fmt::format("... {} more", stack.size() - count));
}

std::string capture_text(const capture_ref& capture) {
  std::string text = fmt::format("capture {} ({} mode, {}), begun by {}", capture.id, shown(capture.mode),
                                 shown(capture.stream), thread_text(capture.origin_thread));
  if (const stack_frame* frame = best_frame(capture.began_at)) text += " in " + frame_text(*frame);
  return text;
}

std::string use_text(const pointer_ref& pointer) {
  std::string text = fmt::format("{:#x} in node {} ({})", pointer.address, pointer.node, shown(pointer.node_type));
  if (!pointer.kernel.empty()) text += fmt::format(", kernel {}", shown(pointer.kernel));
  if (pointer.parameter >= 0) return text + fmt::format(", parameter {} at byte {}", pointer.parameter, pointer.offset);
  if (!pointer.operand.empty() && pointer.operand != "parameter") text += ", its " + shown(pointer.operand);
  return text;
}

void write_pointer(page& out, const pointer_ref& pointer) {
  out.line(4, use_text(pointer));
  if (pointer.allocation_bytes) {
    out.line(6, fmt::format("byte {} of the {} at {:#x}", pointer.allocation_offset,
                            size_text(pointer.allocation_bytes), pointer.allocation));
  }
  write_stack(out, 6, "allocated", pointer.allocated_at);
  write_stack(out, 6, "freed", pointer.freed_at);
  if (!pointer.owner_now.empty()) out.line(6, "now owned by " + shown(pointer.owner_now));
}

std::string some(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// The first in full, a few in a line each, the others as numbers.
void write_pointers(page& out, const finding& found) {
  if (found.pointers.empty()) return;
  out.line(2, found.pointers.size() == 1 ? "pointer" : "pointers");
  write_pointer(out, found.pointers.front());
  const std::size_t lines = std::min(found.pointers.size(), pointers_shown);
  for (std::size_t i = 1; i < lines; ++i) {
    const pointer_ref& p = found.pointers[i];
    const bool elsewhere = found.graph && p.graph != 0 && p.graph != found.graph->id;
    out.line(4, use_text(p) + (elsewhere ? fmt::format(", of graph {}", p.graph) : ""));
  }
  const std::uint64_t all = std::max<std::uint64_t>(found.uses, found.pointers.size());
  if (all <= lines) return;
  std::string text = fmt::format("and {}", some(all - lines, "more use"));
  if (found.nodes > 0) text += fmt::format("; {} of {} in all", some(found.nodes, "node"), some(found.graphs, "graph"));
  out.line(4, text);
}

void write_cascade(page& out, const std::vector<cascade_call>& cascade) {
  if (cascade.empty()) return;
  std::map<std::pair<std::string, int>, std::uint64_t> calls;
  for (const cascade_call& call : cascade) ++calls[{call.api, call.result}];
  out.line(2, fmt::format("{} later call{} failed because of this:", cascade.size(), cascade.size() == 1 ? "" : "s"));
  for (const auto& [call, count] : calls) {
    out.line(4, fmt::format("{} -> {}{}", shown(call.first), call.second,
                            count > 1 ? fmt::format(" ({} times)", count) : ""));
  }
}

std::string call_text(const finding& found) {
  std::string text = shown(found.api);
  if (!found.symbol.empty() && found.symbol != found.api) text += fmt::format(" [{}]", shown(found.symbol));
  if (!found.runtime_api.empty()) text += fmt::format(", called by {}", shown(found.runtime_api));
  if (!found.returned) return text + " had not returned when the trace ended";
  text += fmt::format(" returned {}", found.result);
  if (!found.result_name.empty()) text += fmt::format(" ({})", shown(found.result_name));
  return text;
}

void write_finding(page& out, const finding& found, const report_data& data) {
  std::string title = out.paint(ink_of(found.sev), name_of(found.sev)) + ": " + message_of(found);
  if (found.count > 1) title += fmt::format(" ({} times)", found.count);
  out.line(0, title);
  if (!found.api.empty()) out.line(2, fmt::format("{}, on {}", call_text(found), thread_text(found.thread)));
  if (found.graph) {
    std::string text = fmt::format("graph {} ({} nodes)", found.graph->id, found.graph->nodes);
    if (!found.graph->place.empty()) text += ", captured at " + shown(found.graph->place);
    if (found.graph->replay) text += fmt::format(", replay {}", found.graph->replay);
    out.line(2, text);
  }
  write_stack(out, 2, "stack", found.stack);
  write_stack(out, 2, "python", found.python);
  write_pointers(out, found);
  write_cascade(out, found.cascade);
  if (!found.after.empty()) {
    std::string first = "after: " + shown(found.after);
    for (const finding& other : data.findings) {
      if (other.fingerprint != found.after) continue;
      first = fmt::format("after: {} {}, which came first in this capture", shown(other.rule), shown(other.api));
    }
    out.line(2, first);
  }
  if (found.not_listed > 0)
    out.line(2, fmt::format("{} more like this {} not listed", found.not_listed, found.not_listed == 1 ? "is" : "are"));
  if (!found.remediation.empty())
    out.line(2, out.paint(ink::bold, "fix") + ": " + printable(found.remediation, most_message_bytes));
  if (!found.doc.empty()) out.line(2, "see: " + shown(found.doc));
  out.line(2, out.paint(ink::dim, fmt::format("{}, fingerprint {}", name_of(found.conf), shown(found.fingerprint))));
}

void write_findings(page& out, const report_data& data) {
  const finding* before = nullptr;
  const auto capture_id = [](const finding& f) { return f.capture ? f.capture->id : 0; };
  for (const finding* found : shown_findings(data)) {
    const bool same_group = before && before->rule == found->rule && capture_id(*before) == capture_id(*found);
    if (before) out.gap();
    if (!same_group) {
      out.line(0, out.paint(ink::bold, fmt::format("== {} {}", shown(found->rule), shown(found->name))));
      if (found->capture) out.line(3, capture_text(*found->capture));
    }
    write_finding(out, *found, data);
    before = found;
  }
  if (before) out.gap();
}

// Which process of a distributed job is which.
void write_ranks(page& out, const report_data& data) {
  std::map<std::uint32_t, std::string> of_process;
  for (const rank_summary& rank : data.summary.ranks) {
    std::string& words = of_process[rank.pid];
    words += fmt::format("{}{}={}", words.empty() ? "" : " ", shown(rank.variable), rank.rank);
  }
  for (const auto& [pid, words] : of_process) out.line(0, fmt::format("process {}: {}", pid, words));
}

// How many kernel nodes of all graphs have an address that is known; the others cannot be found to use freed memory.
void write_pointer_coverage(page& out, const report_data& data) {
  std::uint64_t kernels = 0, resolved = 0;
  std::map<std::pair<std::string, std::string>, std::uint64_t> missing; // kernel, why -> nodes
  for (const graph_summary& graph : data.summary.graphs) {
    kernels += graph.kernel_nodes;
    resolved += graph.kernel_nodes_resolved;
    for (const uncovered_kernel& u : graph.unresolved) missing[{u.kernel, u.why}] += u.nodes;
  }
  if (kernels == 0) return;
  out.line(0, fmt::format("pointer coverage: {} of {} kernel nodes have a known address", resolved, kernels));
  std::size_t lines = 0;
  for (const auto& [what, nodes] : missing) {
    if (lines++ == kernels_shown) {
      out.line(2, fmt::format("... {} more kernels", missing.size() - kernels_shown));
      break;
    }
    const std::string name = what.first.empty() ? "a kernel without a name" : shown(what.first);
    out.line(2, fmt::format("{} ({} node{}): {}", name, nodes, nodes == 1 ? "" : "s", what.second));
  }
}

void write_missed(page& out, const report_data& data) {
  const audit_summary& summary = data.summary;
  std::map<std::string, std::string> skipped; // reason -> rules
  for (const rule_status& rule : summary.rules) {
    if (rule.evaluated || summary.events == 0) continue;
    std::string& ids = skipped[rule.why_not];
    ids += (ids.empty() ? "" : ", ") + rule.id;
  }
  for (const auto& [reason, ids] : skipped) {
    out.line(0, fmt::format("not evaluated: {} ({})", shown(ids), shown(reason)));
  }
  for (const auto& [name, counts] : summary.coverage) {
    if (counts.first == counts.second) continue;
    out.line(
        0, fmt::format("coverage: {} was hooked {} times, CUPTI counted {}", shown(name), counts.first, counts.second));
  }
  for (const uncovered_process& process : data.uncovered) {
    out.line(0, fmt::format("not covered: pid {} uses the driver without the shim: {}", process.pid,
                            shown(process.command)));
  }
  for (const std::string& reason : data.unreadable) out.line(0, "not read: " + shown(reason));
  for (const auto* notes : {&summary.notes, &data.remarks}) {
    for (const std::string& note : *notes) out.line(0, "note: " + printable(note, most_message_bytes));
  }
  if (data.running) out.line(0, "note: the program is still running; this is what was recorded so far");
}

} // namespace

std::string headline(const finding& found, const report_style& style) {
  const page out(style);
  std::string text = fmt::format("capturesan: {}: {} {}: {}", out.paint(ink_of(found.sev), name_of(found.sev)),
                                 shown(found.rule), shown(found.name), message_of(found));
  const stack_frame* frame = best_frame(found, {});
  if (frame) text += fmt::format(" [{}]", frame_text(*frame));
  return text;
}

std::string write_text(const report_data& data, const report_style& style) {
  page out(style, &data);
  if (!style.brief || verdict_of(data) != verdict::clean) {
    write_findings(out, data);
    write_ranks(out, data);
    write_pointer_coverage(out, data);
    write_missed(out, data);
  }
  out.line(0, last_line(data));
  return std::move(out.text());
}

} // namespace capturesan
