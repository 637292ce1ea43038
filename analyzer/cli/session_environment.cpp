#include "analyzer/cli/session_environment.h"

#include <algorithm>
#include <fmt/format.h>

#include "analyzer/cli/installation.h"

namespace capturesan::cli {

namespace {

// LD_PRELOAD is split at colons and spaces and knows no quotes.
std::vector<std::string> split_preload(const std::string& text) {
  std::vector<std::string> items;
  std::string item;
  for (const char c : text + ":") {
    if (c != ':' && c != ' ') {
      item += c;
    } else if (!item.empty()) {
      items.push_back(std::move(item));
      item.clear();
    }
  }
  return items;
}

bool is_sanitizer(const std::string& library) {
  const auto slash = library.rfind('/');
  const std::string_view name = std::string_view(library).substr(slash == std::string::npos ? 0 : slash + 1);
  return name.starts_with("libasan.so") || name.starts_with("libclang_rt.asan");
}

std::string preload_list(const session_request& request, const std::string& shim) {
  std::vector<std::string> first, rest;
  if (!request.sanitizer.empty()) first.push_back(request.sanitizer);
  for (const std::string& item : split_preload(request.preload)) {
    if (item == shim || item == request.sanitizer) continue;
    (is_sanitizer(item) ? first : rest).push_back(item);
  }
  first.push_back(shim);
  first.insert(first.end(), rest.begin(), rest.end());
  std::string list;
  for (const std::string& item : first) list += (list.empty() ? "" : ":") + item;
  return list;
}

std::string shim_value(const option_info& option, const option_values& options) {
  switch (option.type) {
  case option_type::bytes:
    return std::to_string(options.bytes(option.name));
  case option_type::flag:
    return options.flag(option.name) ? "1" : "0";
  default:
    return options.text(option.name);
  }
}

} // namespace

result<variables> session_environment(const session_request& request, const option_values& options) {
  const installation& where = installed();
  problem p;
  if (!where.has_shim()) {
    p.message = fmt::format("{} is missing", where.shim);
    p.hint = "the installation is incomplete";
    return p;
  }
  if (where.shim.find_first_of(": ") != std::string::npos) {
    p.message = fmt::format("{} has a space or a colon in its path, which LD_PRELOAD cannot hold", where.shim);
    p.hint = "install capturesan elsewhere";
    return p;
  }
  variables set = {{"LD_PRELOAD", preload_list(request, where.shim)}};
  if (request.simulated) {
    if (where.sim_folder.find_first_of(":;") != std::string::npos) {
      p.message = fmt::format("{} has a colon in its path, which LD_LIBRARY_PATH cannot hold", where.sim_folder);
      return p;
    }
    // An empty entry would mean the working directory.
    set.emplace_back("LD_LIBRARY_PATH", where.sim_folder + (request.libraries.empty() ? "" : ":" + request.libraries));
  }
  for (const option_info& option : all_options()) {
    if (option.reader == option_reader::cli) continue;
    const std::string value = option.name == "output" ? request.folder : shim_value(option, options);
    set.emplace_back(environment_name(option.name), value);
  }
  set.emplace_back("CAPTURESAN_SESSION", request.session);
  return set;
}

std::vector<std::string> with_variables(const char* const* environment, const variables& set) {
  std::vector<std::string> all;
  for (auto entry = environment; *entry; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    const bool replaced = std::any_of(set.begin(), set.end(), [&](const auto& v) { return v.first == name; });
    if (!replaced) all.emplace_back(text);
  }
  for (const auto& [name, value] : set) all.push_back(fmt::format("{}={}", name, value));
  return all;
}

} // namespace capturesan::cli
