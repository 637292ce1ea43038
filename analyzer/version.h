// The version of the rule engine: raised when fields or keys are added. Rule files ask for it with `requires`.
#pragma once

#include <string_view>

namespace capturesan {

inline constexpr std::string_view engine_version = "0.1";

} // namespace capturesan
