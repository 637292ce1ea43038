// Where a finding is, in the words of reports: shared by the formats.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/report.h"

namespace capturesan {

// What reports cut names and messages to, in bytes; json cuts nothing.
inline constexpr std::size_t most_name_bytes = 512, most_message_bytes = 2048;

// Where a person would look: the first frame in source that is not the system's, else the best there is. Null for an
// empty stack.
const stack_frame* best_frame(const std::vector<stack_frame>& stack);

// The same of a finding's Python and native stack; best of all is source below the root. Null if nothing is known.
const stack_frame* best_frame(const finding& found, const std::string& root);

struct source_place {
  std::string path; // relative to the root where it lies below it; never empty
  int line = 0;     // from 1; 0 = unknown
  bool below_root = false;
};

// Without a source file: the program itself.
source_place place_of(const stack_frame* frame, const report_data& data);

std::string frame_name(const stack_frame& frame); // module!symbol, cut and printable

// Percent-encodes all but what RFC 3986 leaves alone in a path: a reference that is valid whatever the file's name.
std::string uri_of(const source_place& place);

std::string fix_of(const finding& found);     // remediation and where to read on; may be empty
std::string message_of(const finding& found); // cut and printable

} // namespace capturesan
