// GitHub Actions: annotations, which the runner reads from the log of a step, and the page beside the job.
#include <algorithm>
#include <fmt/format.h>

#include "analyzer/report_places.h"

namespace capturesan {

namespace {

// GitHub shows this many annotations of a kind for a step and drops the rest without a word.
constexpr std::size_t most_of_a_kind = 10;
constexpr std::size_t most_summary_rows = 200; // GitHub refuses summaries beyond 1 MiB

std::string escaped(std::string_view text, bool property) {
  std::string out;
  for (const char c : text) {
    const bool mark = c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','));
    if (mark) {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

std::string_view command_for(severity value) {
  if (value == severity::note) return "notice";
  return name_of(value);
}

std::string annotation(const finding& found, const report_data& data) {
  const stack_frame* frame = best_frame(found, data.root);
  const source_place place = place_of(frame, data);
  std::string properties;
  // A file outside the repository cannot be shown, and a wrong one would mislead.
  const bool relative = !place.path.starts_with('/');
  if (frame && frame->line > 0 && relative) {
    properties = fmt::format("file={},line={},", escaped(printable(place.path), true), place.line);
  }
  const std::string title = fmt::format("{} {}", printable(found.rule, most_name_bytes), //
                                        printable(found.name, most_name_bytes));
  std::string text = message_of(found);
  if (frame) text += fmt::format("\nin {}", frame_name(*frame));
  if (const std::string fix = fix_of(found); !fix.empty()) text += "\nfix: " + fix;
  return fmt::format("::{} {}title={}::{}\n", command_for(found.sev), properties, escaped(title, true),
                     escaped(text, false));
}

// For a cell of a Markdown table: no markup of the trace's own takes effect.
std::string cell(std::string_view text) {
  constexpr std::string_view special = "\\`*_{}[]()#+!|~<>&@";
  std::string out;
  for (const char c : text) {
    if (special.find(c) == std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("&#{};", static_cast<unsigned>(c));
    }
  }
  return out;
}

} // namespace

std::string write_github(const report_data& data, const report_style&) {
  std::string out;
  std::size_t shown[3] = {}, more = 0;
  for (const finding* found : shown_findings(data)) {
    // One of the ten is kept for the line that says how many are missing.
    const auto kind = static_cast<std::size_t>(found->sev);
    if (shown[kind] + (found->sev == severity::note ? 1 : 0) >= most_of_a_kind) {
      ++more;
      continue;
    }
    ++shown[kind];
    out += annotation(*found, data);
  }
  if (more) {
    out += fmt::format("::notice title=CaptureSan::{} more finding{} than GitHub shows; all are in the step summary\n",
                       more, more == 1 ? "" : "s");
  }
  if (verdict_of(data) == verdict::incomplete || verdict_of(data) == verdict::nothing_captured) {
    out += fmt::format("::warning title=CaptureSan::{}\n", escaped(last_line(data), false));
  }
  return out;
}

std::string github_summary(const report_data& data) {
  std::string out = fmt::format("### CaptureSan\n\n{}\n\n", cell(last_line(data)));
  const std::vector<const finding*> findings = shown_findings(data);
  if (!findings.empty()) out += "| | rule | where | what |\n|---|---|---|---|\n";
  for (std::size_t i = 0; i < std::min(findings.size(), most_summary_rows); ++i) {
    const finding& found = *findings[i];
    const stack_frame* frame = best_frame(found, data.root);
    const source_place place = place_of(frame, data);
    std::string where = frame ? frame_name(*frame) : "";
    if (frame && frame->line > 0) where = fmt::format("{}:{}", printable(place.path), place.line);
    std::string what = message_of(found);
    if (found.count > 1) what += fmt::format(" ({} times)", found.count);
    out += fmt::format("| {} | {} | {} | {} |\n", name_of(found.sev), cell(printable(found.rule, most_name_bytes)),
                       cell(where), cell(what));
  }
  if (findings.size() > most_summary_rows) {
    out += fmt::format("\n{} more findings are not listed here.\n", findings.size() - most_summary_rows);
  }
  for (const rule_status& rule : data.summary.rules) {
    if (!rule.evaluated)
      out += fmt::format("\n{} was not evaluated: {}\n", cell(printable(rule.id)), cell(printable(rule.why_not)));
  }
  return out + "\n";
}

} // namespace capturesan
