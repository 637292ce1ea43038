// CAPTURESAN_ variables.
#include <fmt/format.h>

#include "analyzer/cli/options.h"

namespace capturesan::cli {

namespace {

constexpr std::string_view prefix = "CAPTURESAN_";

// Variables that are no options: set by `run` for the shim, or read by the simulated driver.
bool known_otherwise(std::string_view name) {
  return name == "CAPTURESAN_SESSION" || name.starts_with("CAPTURESAN_SIM_");
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const auto comma = text.find(',');
    if (comma != 0) items.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return items;
}

std::string warn_unknown(const std::string& name) {
  std::vector<std::string> names;
  for (const option_info& option : all_options()) names.push_back(environment_name(option.name));
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string near = did_you_mean(name, views);
  return fmt::format("{} is no variable of capturesan{}", name,
                     near.empty() ? "" : fmt::format("; did you mean {}?", near));
}

} // namespace

std::vector<problem> read_environment(const char* const* environment, option_values& values,
                                      std::vector<std::string>& warnings) {
  std::vector<problem> problems;
  bool nested = false;
  for (auto entry = environment; *entry; ++entry) nested |= std::string_view(*entry).starts_with("CAPTURESAN_SESSION=");
  for (auto entry = environment; *entry; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (!text.starts_with(prefix) || equals == std::string_view::npos) continue;
    const std::string name(text.substr(0, equals)), value(text.substr(equals + 1));
    if (known_otherwise(name)) continue;
    const option_info* option = nullptr;
    for (const option_info& candidate : all_options()) {
      if (environment_name(candidate.name) == name) option = &candidate;
    }
    if (!option) {
      warnings.push_back(warn_unknown(name));
      continue;
    }
    // Inside a session the folder of that session is no wish for this one. An empty variable counts as unset.
    if (value.empty() || (nested && option->name == "output")) continue;
    const std::vector<std::string> items =
        option->type == option_type::list ? split_list(value) : std::vector<std::string>{value};
    bool good = true;
    for (const std::string& item : items) {
      const std::string wrong = check_value(*option, item);
      if (wrong.empty()) continue;
      problem p;
      p.message = fmt::format("{}: {}", name, wrong);
      problems.push_back(std::move(p));
      good = false;
    }
    if (good && !items.empty()) values.set(option->name, items);
  }
  return problems;
}

} // namespace capturesan::cli
