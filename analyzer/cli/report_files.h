// The --report options and the way each report takes: to stdout, stderr or a file.
#pragma once

#include <string>
#include <vector>

#include "analyzer/cli/options.h"
#include "analyzer/report.h"

namespace capturesan::cli {

struct report_target {
  const report_format* format = nullptr;
  std::string file; // empty: stdout or stderr, as the command sees fit
};

// The --report options. Fails on an unknown format, on a file that cannot be written and on two reports in one file.
result<std::vector<report_target>> report_targets(const option_values& options);

// Replaces the file by the text. Says on stderr why it could not.
bool write_file(const std::string& file, const std::string& text);

// Writes one report into its file. Says on stderr why it could not.
bool write_report_file(const report_target& target, const report_data& data);

// What goes with a report whatever its file: the page beside a GitHub job. False if it could not be written.
bool write_companions(const std::vector<report_target>& targets, const report_data& data);

// Reads lines of source files, a file once; nothing but regular files of moderate size. For report_data::source_line.
std::function<std::string(const std::string&, int)> source_reader();

} // namespace capturesan::cli
