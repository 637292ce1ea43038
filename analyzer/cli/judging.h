// What `run`, `check` and `report` share: an audit with the shipped rules and the symboliser, and the way its reports
// take.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "analyzer/audit.h"
#include "analyzer/cli/exit_code.h"
#include "analyzer/cli/options.h"
#include "analyzer/report.h"

namespace capturesan::cli {

struct report_target {
  const report_format* format = nullptr;
  std::string file; // empty: stdout or stderr, as the command sees fit
};

// The --report options. Fails on an unknown format and on a file that cannot be written.
result<std::vector<report_target>> report_targets(const option_values& options);

enum class reading : std::uint8_t {
  saved,   // nobody writes it any more
  watched, // written by the program that is being run for it
  beside,  // written for somebody else, who is reading it too
};

// Fails with the problems of the rule files. Findings too weak to be shown are not passed on.
result<std::unique_ptr<audit>> make_audit(const option_values& options, reading how,
                                          std::function<void(const finding&)> on_new_finding);

// The report data that follows from audit and options; the rest is the caller's.
report_data describe(const audit& judged, const option_values& options);

// Fills in exit code and reason.
void conclude(report_data& data, const option_values& options);

// Writes one report into its file. Says on stderr why it could not.
bool write_report_file(const report_target& target, const report_data& data);

} // namespace capturesan::cli
