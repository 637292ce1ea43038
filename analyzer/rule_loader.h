// Rule files to compiled rules. All problems of all files in one pass.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analyzer/rule.h"

namespace capturesan {

// `files` holds name and text of each file, in order. `today` is YYYY-MM-DD, for exceptions that expire.
result<std::unique_ptr<compiled_rules>> compile_rules(std::vector<std::pair<std::string, std::string>> files,
                                                      const std::string& today);

} // namespace capturesan
