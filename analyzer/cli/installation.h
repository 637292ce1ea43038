// Where the parts of CaptureSan are, seen from the running command: built or installed, the layout is the same.
#pragma once

#include <string>
#include <vector>

#include "analyzer/result.h"

namespace capturesan::cli {

struct installation {
  std::string command;    // bin/capturesan, absolute
  std::string shim;       // lib/libcapturesan.so
  std::string sim_folder; // lib/sim, holds libcuda.so.1
  std::string rules;      // share/capturesan/rules

  bool has_shim() const;
  bool has_sim() const;
};

const installation& installed();

// The shipped packs in order of name, then the user's files in the order given. Fails if the folder of the packs is
// missing.
result<std::vector<std::string>> rule_files(const std::vector<std::string>& own);

} // namespace capturesan::cli
