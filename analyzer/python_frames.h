// Python frames as CPython's fault handler prints them, which is how the trace carries them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/finding.h"

namespace capturesan {

// Innermost first. Lines of another form, or cut off, are left out.
std::vector<stack_frame> python_frames(std::string_view text);

// "file.py:12": the innermost frame that belongs to the program, not to the framework that captures for it; empty if
// there is none.
std::string python_place(std::string_view text);

} // namespace capturesan
