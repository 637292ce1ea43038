// The options of every command, from trace/options.def: their table, their values and where each value came from.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/result.h"

namespace capturesan::cli {

enum class option_type : std::uint8_t { flag, text, list, number, bytes, choice };
enum class option_reader : std::uint8_t { cli, shim, both };

struct option_info {
  std::string_view name; // as on the command line, without dashes
  option_type type;
  std::vector<std::string> choices;
  std::string_view default_text;
  option_reader reader;
  std::string_view help;
};

std::span<const option_info> all_options();
const option_info* find_option(std::string_view name); // null if there is none

std::string environment_name(std::string_view option); // "max-trace" -> "CAPTURESAN_MAX_TRACE"
std::string file_key(std::string_view option);         // "max-trace" -> "max_trace"

// The values in force. Every value has passed check_value(), so that reading one cannot fail.
class option_values {
 public:
  bool flag(std::string_view name) const;
  std::string text(std::string_view name) const; // also of a choice
  std::vector<std::string> list(std::string_view name) const;
  double number(std::string_view name) const;
  std::uint64_t bytes(std::string_view name) const;
  bool given(std::string_view name) const { return values_.count(std::string(name)) != 0; }

  // The first source that names an option wins; later ones are ignored.
  void set(std::string_view name, const std::vector<std::string>& values);

 private:
  std::map<std::string, std::vector<std::string>> values_;
};

// Empty if the text is a value of the option, else what is wrong with it.
std::string check_value(const option_info& option, const std::string& text);

std::uint64_t parse_bytes(std::string_view text, bool& ok); // "64MiB", "1000000"

// "capturesan run --help" and such: one paragraph for the option.
std::string option_help(const option_info& option, std::string_view command);

// The name in `names` that `wrong` was probably meant to be; empty if none is near.
std::string did_you_mean(std::string_view wrong, std::span<const std::string_view> names);

struct invocation {
  option_values options;
  std::vector<std::string> arguments; // before `--`
  std::vector<std::string> program;   // after `--`
  std::vector<std::string> warnings;
  bool has_program = false; // `--` was there
  bool help = false;
};

// What a command accepts.
struct option_set {
  std::vector<std::string_view> names;
  std::size_t most_arguments = 0;
  bool takes_program = false; // else what follows `--` are arguments
};

// Command line, then environment, then capturesan.yaml in the working directory.
result<invocation> read_options(const option_set& accepted, const std::vector<std::string>& words);

// For tests and for read_options(): the same from given sources.
result<invocation> read_line(const option_set& accepted, const std::vector<std::string>& words);
std::vector<problem> read_environment(const char* const* environment, option_values& values,
                                      std::vector<std::string>& warnings);
std::vector<problem> read_file(const std::string& path, option_values& values); // a missing file is no problem

} // namespace capturesan::cli
