// Small files of the user's: options, suppressions, baselines, sources.
#pragma once

#include <cstddef>
#include <string>

#include "analyzer/result.h"

namespace capturesan::cli {

// Reads a regular file of at most `most` bytes. Fails with the file as place; never waits, as a pipe would make it.
result<std::string> read_text_file(const std::string& path, std::size_t most);

} // namespace capturesan::cli
