// What is known already: --suppress and --baseline, as an audit uses them.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "analyzer/audit.h"
#include "analyzer/cli/options.h"
#include "analyzer/report.h"
#include "analyzer/suppressions.h"

namespace capturesan::cli {

class known_findings {
 public:
  // Reads the files the options name. Fails with their problems.
  static result<std::shared_ptr<known_findings>> load(const option_values& options, bool with_baseline);

  void apply(finding& found);
  closing_notes close(const audit_summary& summary) const;

 private:
  suppression_list suppressions_;
  std::string baseline_file_;
  std::set<std::string> baseline_, seen_; // fingerprints
  std::set<std::string> more_;            // found more often than the baseline knows, without the number behind
};

// The findings that would be shown, as a baseline: sorted and free of what changes from run to run. Findings about the
// tool itself are never part of it.
std::string baseline_text(const report_data& data);

// Fingerprints of a baseline. Fails if the file is none.
result<std::set<std::string>> read_baseline(const std::string& file);

} // namespace capturesan::cli
