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
#include "analyzer/cli/report_files.h"
#include "analyzer/report.h"

namespace capturesan::cli {

enum class reading : std::uint8_t {
  saved,   // nobody writes it any more
  watched, // written by the program that is being run for it
  beside,  // written for somebody else, who is reading it too
};

// Fails with the problems of the rule files, suppressions and baseline. Findings too weak to be shown are not passed
// on. `with_baseline`: false for the command that writes one.
result<std::unique_ptr<audit>> make_audit(const option_values& options, reading how,
                                          std::function<void(const finding&)> on_new_finding,
                                          bool with_baseline = true);

// The report data that follows from audit and options; the rest is the caller's.
report_data describe(const audit& judged, const option_values& options);

// Fills in exit code and reason.
void conclude(report_data& data, const option_values& options);

} // namespace capturesan::cli
