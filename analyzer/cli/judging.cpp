#include "analyzer/cli/judging.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "analyzer/cli/installation.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/symbols.h"

namespace capturesan::cli {

namespace {

confidence least_confidence(const option_values& options) {
  return options.text("show") == "suspected" ? confidence::suspected : confidence::likely;
}

severity fail_severity(const option_values& options) {
  const std::string text = options.text("fail-on");
  if (text == "note") return severity::note;
  return text == "warning" ? severity::warning : severity::error;
}

problem failure(std::string message, std::string hint = {}) {
  problem p;
  p.message = std::move(message);
  p.hint = std::move(hint);
  return p;
}

result<report_target> parse_target(const std::string& text) {
  const auto equals = text.find('=');
  const std::string name = text.substr(0, equals);
  report_target target{find_format(name), {}};
  if (!target.format) {
    std::string known;
    std::vector<std::string_view> names;
    for (const report_format& format : report_formats) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", format.name);
      names.push_back(format.name);
    }
    const std::string near = did_you_mean(name, names);
    return failure(fmt::format("--report: unknown format '{}'", name),
                   near.empty() ? "there are " + known : fmt::format("did you mean {}?", near));
  }
  if (equals == std::string::npos) return target;
  target.file = text.substr(equals + 1);
  if (target.file.empty()) return failure(fmt::format("--report {}: no file after the =", text));
  // Better now than after hours of a run.
  const int fd = ::open(target.file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (fd < 0 && errno != ENXIO) { // ENXIO: a pipe nobody reads yet
    return failure(fmt::format("--report: {} cannot be written: {}", target.file, std::strerror(errno)));
  }
  if (fd >= 0) ::close(fd);
  return target;
}

} // namespace

result<std::vector<report_target>> report_targets(const option_values& options) {
  std::vector<report_target> targets;
  for (const std::string& text : options.list("report")) {
    result<report_target> target = parse_target(text);
    if (!target) return target.problems();
    targets.push_back(target.value());
  }
  return targets;
}

result<std::unique_ptr<audit>> make_audit(const option_values& options, reading way,
                                          std::function<void(const finding&)> on_new_finding) {
  audit_options how;
  result<std::vector<std::string>> files = rule_files(options.list("rules"));
  if (!files) return files.problems();
  how.rule_files = std::move(files.value());
  how.follow = way != reading::saved;
  how.keep = way == reading::beside;
  how.symbols = std::make_shared<symbols>();
  if (on_new_finding) {
    how.on_new_finding = [least = least_confidence(options), tell = std::move(on_new_finding)](const finding& found) {
      if (found.conf >= least && !found.suppressed) tell(found);
    };
  }
  return audit::create(std::move(how));
}

report_data describe(const audit& judged, const option_values& options) {
  report_data data{judged.findings(), judged.summary()};
  data.least_confidence = least_confidence(options);
  return data;
}

void conclude(report_data& data, const option_values& options) {
  const severity fail_on = fail_severity(options);
  outcome o;
  // A suspicion may be shown, but no build may turn red by it.
  o.findings = std::any_of(data.findings.begin(), data.findings.end(), [&](const finding& found) {
    return !found.suppressed && found.conf > confidence::suspected && found.sev >= fail_on;
  });
  o.incomplete = verdict_of(data) == verdict::incomplete;
  o.strict = options.flag("strict");
  o.child_exit = data.child_exit;
  o.nothing_captured = data.summary.events == 0;
  o.allow_empty = options.flag("allow-empty");
  const exit_status status = decide_exit(o);
  data.exit_code = status.code;
  data.exit_reason = status.reason;
}

bool write_report_file(const report_target& target, const report_data& data) {
  const std::string text = target.format->write(data, {});
  const int fd = ::open(target.file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  const bool written = fd >= 0 && write_all(fd, text);
  const int error = errno;
  const bool closed = fd < 0 || ::close(fd) == 0;
  if (!written || !closed) say(fmt::format("{} could not be written: {}", target.file, std::strerror(error)));
  return written && closed;
}

} // namespace capturesan::cli
