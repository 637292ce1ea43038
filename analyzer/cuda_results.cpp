#include "analyzer/cuda_results.h"

namespace capturesan {

namespace {

struct entry {
  std::string_view name;
  int value;
};
constexpr entry table[] = {
#define CUDA_RESULT(name, value) {#name, value},
#include "analyzer/cuda_results.def"
};

} // namespace

std::string result_name(int result) {
  for (const entry& e : table)
    if (e.value == result) return std::string(e.name);
  return "CUresult " + std::to_string(result);
}

std::vector<std::string_view> result_names() {
  std::vector<std::string_view> out;
  for (const entry& e : table) out.push_back(e.name);
  return out;
}

std::optional<int> result_by_name(std::string_view name) {
  for (const entry& e : table)
    if (e.name == name) return e.value;
  return std::nullopt;
}

} // namespace capturesan
