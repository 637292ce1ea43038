#include "analyzer/cli/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

namespace capturesan::cli {

namespace {

option_info make_option(std::string_view name, std::string_view type, std::string_view default_text,
                        option_reader reader, std::string_view help) {
  option_info info{name, option_type::text, {}, default_text, reader, help};
  if (type.starts_with('"')) type = type.substr(1, type.size() - 2);
  if (type == "flag") info.type = option_type::flag;
  if (type == "list") info.type = option_type::list;
  if (type == "number") info.type = option_type::number;
  if (type == "bytes") info.type = option_type::bytes;
  if (type.starts_with("choice<")) {
    info.type = option_type::choice;
    type = type.substr(7, type.size() - 8);
    while (true) {
      const auto bar = type.find('|');
      info.choices.emplace_back(type.substr(0, bar));
      if (bar == std::string_view::npos) break;
      type.remove_prefix(bar + 1);
    }
  }
  return info;
}

const std::vector<option_info>& table() {
  static const std::vector<option_info> options = {
#define OPTION(name, type, default_text, reader, help)                                                                 \
  make_option(#name, #type, default_text, option_reader::reader, help),
#include "trace/options.def"
  };
  return options;
}

bool parse_number(const std::string& text, double& value) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  return error == std::errc{} && rest == end && std::isfinite(value) && value >= 0 && value <= 1e9;
}

bool parse_flag(const std::string& text, bool& value) {
  static constexpr std::string_view on[] = {"1", "true", "on", "yes"}, off[] = {"0", "false", "off", "no", ""};
  value = std::find(std::begin(on), std::end(on), text) != std::end(on);
  return value || std::find(std::begin(off), std::end(off), text) != std::end(off);
}

// Letters to insert, remove, replace or swap to make one word of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      const std::size_t differs = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + differs});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

} // namespace

std::span<const option_info> all_options() { return table(); }

const option_info* find_option(std::string_view name) {
  for (const option_info& option : table()) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

std::string file_key(std::string_view option) {
  std::string key(option);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

std::string environment_name(std::string_view option) {
  std::string name = "CAPTURESAN_" + file_key(option);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return name;
}

std::uint64_t parse_bytes(std::string_view text, bool& ok) {
  struct unit {
    std::string_view name;
    std::uint64_t bytes;
  };
  static constexpr unit units[] = {{"", 1},
                                   {"B", 1},
                                   {"KiB", 1ull << 10},
                                   {"MiB", 1ull << 20},
                                   {"GiB", 1ull << 30},
                                   {"TiB", 1ull << 40},
                                   {"kB", 1000},
                                   {"KB", 1000},
                                   {"MB", 1000'000},
                                   {"GB", 1000'000'000},
                                   // As ulimit, docker and df mean them.
                                   {"K", 1ull << 10},
                                   {"M", 1ull << 20},
                                   {"G", 1ull << 30},
                                   {"T", 1ull << 40}};
  std::uint64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view name(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  ok = false;
  if (error != std::errc{}) return 0;
  for (const unit& u : units) {
    if (u.name == name && value <= (UINT64_MAX >> 1) / u.bytes) {
      ok = true;
      return value * u.bytes;
    }
  }
  return 0;
}

std::string check_value(const option_info& option, const std::string& text) {
  bool ok = true, on = false;
  double number = 0;
  switch (option.type) {
  case option_type::flag:
    return parse_flag(text, on) ? "" : fmt::format("'{}' is neither true nor false", text);
  case option_type::number:
    return parse_number(text, number) ? "" : fmt::format("'{}' is not a number >= 0", text);
  case option_type::bytes:
    parse_bytes(text, ok);
    return ok ? "" : fmt::format("'{}' is not a size such as 64MiB, 10G or 1000000", text);
  case option_type::choice:
    if (std::find(option.choices.begin(), option.choices.end(), text) != option.choices.end()) return "";
    return fmt::format("'{}' is not one of {}", text, fmt::join(option.choices, ", "));
  case option_type::text:
  case option_type::list:
    break;
  }
  return text.empty() ? "the value is empty" : "";
}

void option_values::set(std::string_view name, const std::vector<std::string>& values) {
  values_.try_emplace(std::string(name), values);
}

std::string option_values::text(std::string_view name) const {
  const auto found = values_.find(std::string(name));
  if (found != values_.end() && !found->second.empty()) return found->second.back();
  const option_info* option = find_option(name);
  return option ? std::string(option->default_text) : std::string();
}

std::vector<std::string> option_values::list(std::string_view name) const {
  const auto found = values_.find(std::string(name));
  if (found != values_.end()) return found->second;
  const std::string only = text(name);
  return only.empty() ? std::vector<std::string>{} : std::vector<std::string>{only};
}

bool option_values::flag(std::string_view name) const {
  bool on = false;
  return parse_flag(text(name), on) && on;
}

double option_values::number(std::string_view name) const {
  double value = 0;
  return parse_number(text(name), value) ? value : 0;
}

std::uint64_t option_values::bytes(std::string_view name) const {
  bool ok = false;
  return parse_bytes(text(name), ok);
}

namespace {

// What the option means for that command.
std::string_view meaning_for(const option_info& option, std::string_view command) {
  static constexpr std::string_view others[][3] = {
#define OPTION(name, type, default_text, reader, help)
#define OPTION_FOR(name, command, help) {#name, #command, help},
#include "trace/options.def"
  };
  for (const auto& [name, of, help] : others)
    if (name == option.name && of == command) return help;
  return option.help;
}

} // namespace

std::string option_help(const option_info& option, std::string_view command) {
  static constexpr std::string_view placeholders[] = {"", " TEXT", " ITEM", " N", " SIZE", ""};
  std::string head = fmt::format("--{}", option.name);
  if (option.name == "output") head = "-o, --output";
  head += option.choices.empty() ? std::string(placeholders[static_cast<std::size_t>(option.type)])
                                 : fmt::format(" {}", fmt::join(option.choices, "|"));
  std::string text = fmt::format("  {}\n      {}", head, meaning_for(option, command));
  if (!option.default_text.empty()) text += fmt::format(" [{}]", option.default_text);
  return text + "\n";
}

std::string did_you_mean(std::string_view wrong, std::span<const std::string_view> names) {
  std::string_view best;
  std::size_t least = std::max<std::size_t>(1, wrong.size() / 3) + 1;
  for (const std::string_view name : names) {
    const std::size_t d = distance(wrong, name);
    if (d < least) {
      least = d;
      best = name;
    }
  }
  return std::string(best);
}

result<invocation> read_options(const option_set& accepted, const std::vector<std::string>& words) {
  result<invocation> line = read_line(accepted, words);
  if (!line || line.value().help) return line;
  invocation& in = line.value();
  std::vector<problem> problems = read_environment(environ, in.options, in.warnings);
  std::vector<problem> more = read_file("capturesan.yaml", in.options);
  problems.insert(problems.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  if (!problems.empty()) return problems;
  return line;
}

} // namespace capturesan::cli
