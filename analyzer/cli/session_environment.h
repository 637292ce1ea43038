// The environment that puts the shim (and the simulated driver) into a program. What `run` sets and `env` prints.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analyzer/cli/options.h"
#include "analyzer/result.h"

namespace capturesan::cli {

using variables = std::vector<std::pair<std::string, std::string>>;

struct session_request {
  std::string session; // id
  std::string folder;  // of the trace, absolute
  bool simulated = false;
  std::string sanitizer; // library that must come first; empty = none
  std::string preload;   // LD_PRELOAD as it was
  std::string libraries; // LD_LIBRARY_PATH as it was
};

// Fails if a path cannot be said in LD_PRELOAD or LD_LIBRARY_PATH.
result<variables> session_environment(const session_request& request, const option_values& options);

// A copy of `environment` ("NAME=value" strings) with the variables set.
std::vector<std::string> with_variables(const char* const* environment, const variables& set);

} // namespace capturesan::cli
