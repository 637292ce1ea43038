#include "analyzer/signature.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <string>

#include <cxxabi.h>

namespace capturesan {

namespace {

constexpr std::string_view openers = "(<[{", closers = ")>]}";

std::string_view trim(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

// What stands between the last parenthesis and its partner; empty if there is none.
std::string_view parameter_list(std::string_view name) {
  if (!name.ends_with(')')) return {};
  int depth = 0;
  for (std::size_t i = name.size(); i-- > 0;) {
    if (closers.find(name[i]) != std::string_view::npos) ++depth;
    if (openers.find(name[i]) != std::string_view::npos && --depth == 0) return name.substr(i + 1, name.size() - i - 2);
  }
  return {};
}

std::vector<std::string_view> split(std::string_view list) {
  std::vector<std::string_view> out;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (openers.find(list[i]) != std::string_view::npos) ++depth;
    if (closers.find(list[i]) != std::string_view::npos) --depth;
    if (list[i] != ',' || depth != 0) continue;
    out.push_back(trim(list.substr(begin, i - begin)));
    begin = i + 1;
  }
  if (const auto last = trim(list.substr(begin)); !last.empty()) out.push_back(last);
  return out;
}

bool is_address(std::string_view type) {
  for (const std::string_view qualifier : {"const", "volatile", "__restrict__", "__restrict"}) {
    if (type.ends_with(qualifier)) type = trim(type.substr(0, type.size() - qualifier.size()));
  }
  return type.ends_with('*');
}

bool is_number(std::string_view type) {
  static constexpr std::array<std::string_view, 6> numbers = {"long",      "unsigned long",      "double",
                                                              "long long", "unsigned long long", "std::complex<float>"};
  return std::find(numbers.begin(), numbers.end(), type) != numbers.end();
}

// std::array<char*, 3ul>: so many addresses and nothing else.
bool is_address_array(std::string_view type, std::size_t bytes) {
  const auto angle = type.find('<');
  if (angle == std::string_view::npos || !type.ends_with('>')) return false;
  const std::string_view head = type.substr(0, angle);
  if (head != "std::array" && head != "at::detail::Array" && head != "cuda::std::array") return false;
  const auto inside = split(type.substr(angle + 1, type.size() - angle - 2));
  if (inside.size() != 2 || !is_address(inside[0])) return false;
  std::size_t count = 0;
  std::from_chars(inside[1].data(), inside[1].data() + inside[1].size(), count);
  return count != 0 && count * 8 == bytes;
}

} // namespace

std::vector<parameter_shape> shapes_of(std::string_view mangled_name,
                                       const std::vector<std::pair<std::uint16_t, std::uint16_t>>& layout) {
  if (!mangled_name.starts_with("_Z")) return {};
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(std::string(mangled_name).c_str(), nullptr, nullptr, &status), std::free);
  if (name == nullptr || status != 0) return {};
  const auto types = split(parameter_list(name.get()));
  if (types.size() != layout.size()) return {};
  std::vector<parameter_shape> out;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const std::size_t bytes = layout[i].second;
    if (is_address(types[i])) {
      if (bytes != 8) return {}; // read wrongly
      out.push_back(parameter_shape::pointer);
    } else if (bytes == 8 && is_number(types[i])) {
      out.push_back(parameter_shape::number);
    } else if (is_address_array(types[i], bytes)) {
      out.push_back(parameter_shape::pointers);
    } else {
      out.push_back(parameter_shape::unknown);
    }
  }
  return out;
}

} // namespace capturesan
