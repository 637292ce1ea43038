// session.json of a trace folder: what `run` knows and a trace file cannot.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzer/report.h"

namespace capturesan::cli {

struct session_record {
  std::string session, directory; // id, working directory
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> options; // that were given, by name
  bool simulated = false;
  std::optional<int> child_exit; // none: has not ended, or `run` did not see its end
  int child_signal = 0;
  std::vector<uncovered_process> uncovered;
};

// False if the file could not be written.
bool write_session(const std::string& folder, const session_record& record);

// Empty if there is none or it cannot be understood: a trace without it is as good.
std::optional<session_record> read_session(const std::string& folder);

} // namespace capturesan::cli
