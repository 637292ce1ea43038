// Where a finding is, in the words of reports: shared by the formats.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/report.h"

namespace capturesan {

// What reports cut names and messages to, in bytes; json cuts nothing.
inline constexpr std::size_t most_name_bytes = 512, most_message_bytes = 2048;

// The first frame that says more than an address: where a person would look. Null for an empty stack.
const stack_frame* best_frame(const std::vector<stack_frame>& stack);

// The frame a reader should be sent to: in the user's own source if there is any, else the best there is. Null if
// nothing is known.
const stack_frame* best_frame(const finding& found, const report_data& data);

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
