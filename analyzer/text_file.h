// Reads a small file that a user named (rules, options, suppressions, sources): never waits, never reads more than
// asked for.
#pragma once

#include <cstddef>
#include <string>

#include "analyzer/result.h"

namespace capturesan {

// The whole file. Fails, with the file as place and `code` where there is one, if it cannot be read, is no regular file
// (a pipe would be waited for) or is larger than `most_bytes`.
result<std::string> read_text_file(const std::string& path, std::size_t most_bytes, const std::string& code = {});

} // namespace capturesan
