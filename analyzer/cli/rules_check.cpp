// `rules lint` and `rules test`.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fmt/format.h>

#include "analyzer/cli/exit_code.h"
#include "analyzer/cli/installation.h"
#include "analyzer/cli/rules.h"
#include "analyzer/cli/terminal.h"

namespace capturesan::cli {

namespace {

namespace fs = std::filesystem;

bool is_error(const problem& p) { return !p.code.starts_with("CGW"); }

std::string counted(std::size_t n, std::string_view what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

bool names_file(const rule_words& words, const std::string& file) {
  return words.files.empty() || std::find(words.files.begin(), words.files.end(), file) != words.files.end();
}

bool names_rule(const rule_words& words, const std::string& id) {
  return words.ids.empty() ||
         std::any_of(words.ids.begin(), words.ids.end(), [&](const std::string& typed) { return same_id(id, typed); });
}

// Ids of shipped rules are not for others: the next release may bring one of the same name.
void check_reserved(const rule_set& rules, const rule_info& rule, std::vector<problem>& problems) {
  if (rule.id.size() < 3 || !rule.id.starts_with("CS") || !std::isdigit(static_cast<unsigned char>(rule.id[2]))) return;
  std::error_code ignored;
  if (fs::equivalent(fs::absolute(rule.at.file).parent_path(), installed().rules, ignored)) return;
  problems.push_back(
      rules.about(rule.id, "CGW004", "ids that begin with CS are for shipped rules", "choose other letters"));
}

// Prints what concerns the files asked about; true if there is an error among it.
bool show_problems(const std::vector<problem>& problems, const rule_words& words, std::size_t& errors,
                   std::size_t& warnings) {
  std::string text;
  for (const problem& p : problems) {
    if (!is_error(p) && !names_file(words, p.at.file)) continue;
    ++(is_error(p) ? errors : warnings);
    text += shown(p);
  }
  print(text);
  return errors > 0;
}

} // namespace

rule_words split_words(const std::vector<std::string>& arguments) {
  rule_words out;
  for (const std::string& word : arguments) {
    std::error_code ignored;
    const bool plain = std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isalnum(c) != 0; });
    (plain && !fs::exists(word, ignored) ? out.ids : out.files).push_back(word);
  }
  return out;
}

int rules_lint(const result<rule_set>& rules, const rule_words& words) {
  std::vector<problem> problems;
  std::size_t errors = 0, warnings = 0, looked_at = 0;
  if (rules) {
    problems = rules.value().lint();
    for (const rule_info& rule : rules.value().list()) {
      if (!names_file(words, rule.at.file)) continue;
      ++looked_at;
      check_reserved(rules.value(), rule, problems);
    }
  } else {
    problems = rules.problems();
  }
  show_problems(problems, words, errors, warnings);
  const std::string found = errors + warnings == 0
                                ? "no problem"
                                : fmt::format("{}, {}", counted(errors, "error"), counted(warnings, "warning"));
  const int printed = put(rules ? fmt::format("{}: {}\n", counted(looked_at, "rule"), found) : found + "\n");
  return errors > 0 ? exit_usage : printed;
}

int rules_test(const rule_set& rules, const rule_words& words) {
  std::size_t errors = 0, warnings = 0;
  if (show_problems(rules.lint(), words, errors, warnings)) {
    put(fmt::format("{} in the rules; no test was run\n", counted(errors, "error")));
    return exit_usage;
  }
  std::vector<std::string> ids;
  for (const rule_info& rule : rules.list()) ids.push_back(rule.id);
  for (const std::string& typed : words.ids)
    if (std::none_of(ids.begin(), ids.end(), [&](const std::string& id) { return same_id(id, typed); }))
      return refuse_rules(fmt::format("no rule {}", typed), near_id(typed, ids));
  std::size_t passed = 0, failed = 0, todo = 0;
  std::string text;
  for (const rule_info& rule : rules.list()) {
    if (!names_file(words, rule.at.file) || !names_rule(words, rule.id)) continue;
    for (const rule_test_result& one : rules.test(rule.id)) {
      // An announced failure that passes is news as well: the announcement is out of date.
      ++(!one.passed ? failed : one.todo ? todo : passed);
      if (one.passed) continue;
      text += fmt::format("{}:{}:{}: {} '{}'{}\n  expected: {}\n  found:    {}\n", one.at.file, one.at.line,
                          one.at.column, one.rule, one.test, one.todo ? " was expected to fail and does not" : "",
                          one.expected, one.found);
    }
  }
  text += fmt::format("{} passed, {} failed, {} expected to fail\n", passed, failed, todo);
  const int printed = put(text);
  return failed ? exit_findings : printed;
}

} // namespace capturesan::cli
