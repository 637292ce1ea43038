// The exit code of `run` and `check`, decided in one place.
#pragma once

#include <optional>
#include <string_view>

namespace capturesan::cli {

inline constexpr int exit_ok = 0, exit_findings = 1, exit_usage = 2, exit_incomplete = 3, exit_nothing = 4,
                     exit_internal = 5;

struct outcome {
  bool internal_error = false;   // a report could not be written, a trace could not be read
  bool findings = false;         // at or above --fail-on
  bool incomplete = false;       // dropped, cut off, or a process not covered
  bool strict = false;           // --strict
  std::optional<int> child_exit; // 128 + signal if it was killed
  bool nothing_captured = false; // neither a capture nor a graph was seen
  bool allow_empty = false;      // --allow-empty
};

struct exit_status {
  int code = exit_ok;
  std::string_view reason; // a word for reports
};

// The first that applies. Usage and rule errors (2) end a command before there is an outcome.
constexpr exit_status decide_exit(const outcome& o) {
  if (o.internal_error) return {exit_internal, "internal-error"};
  if (o.findings) return {exit_findings, "findings"};
  if (o.incomplete && o.strict) return {exit_incomplete, "incomplete"};
  if (o.child_exit.value_or(0) != 0) return {*o.child_exit, "child"};
  if (o.nothing_captured && !o.allow_empty) return {exit_nothing, "nothing-captured"};
  return {exit_ok, "ok"};
}

} // namespace capturesan::cli
