// What a program prints, with a limit on its time.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace capturesan {

// Nothing if it cannot be started, fails, takes longer or prints too much. `inherited`: a file descriptor that it gets
// under the same number; -1 = none.
std::optional<std::string> tool_output(const std::vector<std::string>& arguments, int inherited,
                                       std::chrono::nanoseconds most);

} // namespace capturesan
