#include "analyzer/cli/judging.h"

#include <algorithm>
#include <filesystem>

#include "analyzer/cli/installation.h"
#include "analyzer/cli/known_findings.h"
#include "analyzer/disassembler.h"
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

} // namespace

result<std::unique_ptr<audit>> make_audit(const option_values& options, reading way,
                                          std::function<void(const finding&)> on_new_finding, bool with_baseline) {
  audit_options how;
  result<std::vector<std::string>> files = rule_files(options.list("rules"));
  if (!files) return files.problems();
  how.rule_files = std::move(files.value());
  result<std::shared_ptr<known_findings>> known = known_findings::load(options, with_baseline);
  if (!known) return known.problems();
  how.suppress = [known = known.value()](finding& found) { known->apply(found); };
  how.close = [known = known.value()](const audit_summary& summary) { return known->close(summary); };
  how.follow = way != reading::saved;
  how.keep = way == reading::beside;
  how.symbols = std::make_shared<symbols>();
  if (const std::string tool = find_disassembler(options.text("disassembler")); !tool.empty())
    how.code = std::make_shared<disassembler>(tool);
  const std::vector<std::string> reports = options.list("report");
  how.list_nodes =
      std::any_of(reports.begin(), reports.end(), [](const std::string& r) { return r.starts_with("dot"); });
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
  data.fail_on = fail_severity(options);
  std::error_code error;
  data.root = std::filesystem::current_path(error).string();
  data.source_line = source_reader();
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
  // What is missing or still to come may be a capture.
  o.nothing_captured = data.summary.events == 0 || verdict_of(data) == verdict::nothing_captured;
  o.allow_empty = options.flag("allow-empty");
  const exit_status status = decide_exit(o);
  data.exit_code = status.code;
  data.exit_reason = status.reason;
}

} // namespace capturesan::cli
