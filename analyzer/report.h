// Reports: what an audit found, as text for people and as files for tools. One file per format, one table of formats.
// Pure functions of their input: nothing here opens a file, asks the terminal or throws.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/finding.h"

namespace capturesan {

// A process that loaded the driver without the shim.
struct uncovered_process {
  std::uint32_t pid = 0;
  std::string command; // its arguments, joined by spaces
};

// Everything a report may speak of. References stay with the caller.
struct report_data {
  const std::vector<finding>& findings;
  const audit_summary& summary;
  std::vector<uncovered_process> uncovered = {};
  std::vector<std::string> command = {};        // of the program, if known
  std::optional<int> child_exit = std::nullopt; // as a shell would show it: 128 + signal if it was killed
  std::string trace = {};                       // file or folder
  std::string exit_reason = {};                 // why the exit code is what it is (exit_code.h)
  int exit_code = 0;
  confidence least_confidence = confidence::likely; // what is below is not shown and does not count
  bool simulated = false;                           // the program was given the simulated driver
  bool running = false;                             // a process had not ended when this was written
  std::vector<std::string> unreadable = {};         // why files of the trace could not be read; makes it incomplete
  severity fail_on = severity::error;               // the least that turns a pipeline red
  std::vector<std::string> remarks = {};            // of the command, beside the audit's own notes
  std::string root = {};                            // source files below this folder are named relative to it
  // A line of a source file without its newline; empty if it cannot be had. May be empty itself.
  std::function<std::string(const std::string& file, int line)> source_line = {};
};

struct report_style {
  bool colour = false;
  // Says nothing but the last line if there is nothing to say: no finding, nothing missed.
  bool brief = false;
};

struct report_counts {
  std::uint64_t errors = 0, warnings = 0, notes = 0, suppressed = 0; // different findings, not how often they occurred
  std::uint64_t suspected = 0;                                       // of those that are shown; in none of the others
};

// real | simulated | unknown
std::string_view driver_kind(const report_data& data);

// The findings a report shows: confident enough and not suppressed; the worst first, then in order of rule and capture.
std::vector<const finding*> shown_findings(const report_data& data);
report_counts count_findings(const report_data& data);

enum class verdict : std::uint8_t { clean, findings, incomplete, nothing_captured };
// `incomplete` as soon as something was lost, cut off, not covered or is still to come, whatever was found.
verdict verdict_of(const report_data& data);

// "capturesan: 2 errors, 1 warning, ...; driver 580.159 (H200)", without a newline.
std::string last_line(const report_data& data);

// One line for a finding as it happens, without a newline.
std::string headline(const finding& found, const report_style& style);

// One function for each format, each in a file of its own. What is too long for a format's readers is cut, and the
// report says so; only json holds everything.
std::string write_text(const report_data& data, const report_style& style);
std::string write_json(const report_data& data, const report_style& style);
std::string write_sarif(const report_data& data, const report_style& style);
std::string write_junit(const report_data& data, const report_style& style);
std::string write_github(const report_data& data, const report_style& style);
std::string write_gitlab(const report_data& data, const report_style& style);
std::string write_dot(const report_data& data, const report_style& style);

// Markdown for the page that GitHub shows beside a job: goes with write_github().
std::string github_summary(const report_data& data);

struct report_format {
  std::string_view name;
  std::string_view file; // where `run` puts it in the trace folder; empty: on stderr
  std::string_view summary;
  std::string (*write)(const report_data&, const report_style&);
};

inline constexpr report_format report_formats[] = {
    {"text", "", "for people; the only one that may have colours", write_text},
    {"json", "report.json", "everything that is known, for programs", write_json},
    {"sarif", "report.sarif", "SARIF 2.1.0, for code scanning", write_sarif},
    {"junit", "junit.xml", "one test case a rule, for test overviews", write_junit},
    {"github", "", "annotations in a GitHub Actions log, and the step summary", write_github},
    {"gitlab", "gitlab.json", "GitLab code quality", write_gitlab},
    {"dot", "graphs.dot", "the graphs, findings in red, for Graphviz", write_dot},
};

// Null if there is no such format.
const report_format* find_format(std::string_view name);

std::string_view name_of(severity value);
std::string_view name_of(confidence value);

// Control characters as \xNN, characters that turn the writing direction as \u{NNNN}, and bytes that are not UTF-8 as
// U+FFFD, so that no text of a trace can drive a terminal or read as something else.
std::string printable(std::string_view text);

// The same, at most about `most` bytes long; what is cut off is counted at the end.
std::string printable(std::string_view text, std::size_t most);

} // namespace capturesan
