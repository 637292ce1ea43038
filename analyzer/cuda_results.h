// Names of CUresult values, as in cuda.h of CUDA 13.0.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capturesan {

// CUDA_ERROR_...; the number in words if this build does not know it.
std::string result_name(int result);
std::optional<int> result_by_name(std::string_view name);
std::vector<std::string_view> result_names();

} // namespace capturesan
