// The command line. The only file that knows Boost.Program_options; its exceptions end here.
#include <algorithm>
#include <boost/program_options.hpp>
#include <fmt/format.h>

#include "analyzer/cli/options.h"

namespace capturesan::cli {

namespace po = boost::program_options;

namespace {

problem usage(std::string message, std::string hint = {}) {
  problem p;
  p.message = std::move(message);
  p.hint = std::move(hint);
  return p;
}

po::options_description describe(const option_set& accepted) {
  po::options_description all;
  all.add_options()("help,h", po::value<std::string>()->zero_tokens(), "");
  for (const std::string_view name : accepted.names) {
    const option_info* option = find_option(name);
    if (!option) continue;
    auto* value = po::value<std::string>();
    if (option->type == option_type::flag) value->zero_tokens();
    const std::string spelling = name == "output" ? "output,o" : std::string(name);
    all.add_options()(spelling.c_str(), value, "");
  }
  return all;
}

// Splits the words; every option is one entry, in order.
result<std::vector<po::option>> split(const option_set& accepted, const std::vector<std::string>& words) {
  namespace style = po::command_line_style;
  // Guessing would make every new option a change of meaning for someone's script.
  const int exact = style::unix_style & ~style::allow_guessing;
  try {
    const po::options_description all = describe(accepted);
    return po::command_line_parser(words).options(all).style(exact).run().options;
  } catch (const po::unknown_option& error) {
    std::string name = error.get_option_name();
    name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
    const std::string near = did_you_mean(name, accepted.names);
    std::string hint = near.empty() ? std::string("see --help") : fmt::format("did you mean --{}?", near);
    if (find_option(name)) hint = "it is an option of other commands";
    return usage(fmt::format("unknown option {}{}", name.size() == 1 ? "-" : "--", name), hint);
  } catch (const po::error& error) {
    return usage(error.what(), "see --help");
  }
}

// One option of the line, checked, into the values gathered so far.
std::vector<problem> take(const po::option& word, std::map<std::string, std::vector<std::string>>& gathered) {
  const option_info* option = find_option(word.string_key);
  if (!option) return {};
  std::vector<std::string>& values = gathered[word.string_key];
  if (!values.empty() && option->type != option_type::list) {
    return {usage(fmt::format("--{} is given twice", option->name))};
  }
  const std::string text = option->type == option_type::flag ? "true" : word.value.empty() ? "" : word.value.front();
  const std::string wrong = check_value(*option, text);
  if (!wrong.empty()) return {usage(fmt::format("--{}: {}", option->name, wrong))};
  values.push_back(text);
  return {};
}

} // namespace

result<invocation> read_line(const option_set& accepted, const std::vector<std::string>& words) {
  invocation in;
  // The program's own words must never meet the parser, which would take its options for ours.
  const auto cut = std::find(words.begin(), words.end(), "--");
  in.has_program = cut != words.end();
  if (in.has_program) in.program.assign(cut + 1, words.end());
  result<std::vector<po::option>> parsed = split(accepted, {words.begin(), cut});
  if (!parsed) return parsed.problems();

  std::map<std::string, std::vector<std::string>> gathered;
  for (const po::option& word : parsed.value()) {
    if (word.string_key == "help") in.help = true;
    if (word.position_key >= 0) {
      in.arguments.insert(in.arguments.end(), word.value.begin(), word.value.end());
      continue;
    }
    std::vector<problem> problems = take(word, gathered);
    if (!problems.empty()) return problems;
  }
  for (const auto& [name, values] : gathered) in.options.set(name, values);
  if (!accepted.takes_program) {
    in.arguments.insert(in.arguments.end(), in.program.begin(), in.program.end());
    in.program.clear();
    in.has_program = false;
  }
  if (!in.help && in.arguments.size() > accepted.most_arguments) {
    const std::string& extra = in.arguments[accepted.most_arguments];
    return usage(fmt::format("unexpected argument '{}'", extra),
                 accepted.takes_program ? "write -- before the program" : "see --help");
  }
  return in;
}

} // namespace capturesan::cli
