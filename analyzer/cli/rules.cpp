#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "analyzer/cli/command.h"
#include "analyzer/cli/exit_code.h"
#include "analyzer/cli/installation.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/report.h"
#include "analyzer/rule_set.h"

namespace capturesan::cli {

namespace {

int refuse(std::string message, std::string hint) {
  problem p;
  p.message = "rules: " + std::move(message);
  p.hint = std::move(hint);
  complain({p});
  return exit_usage;
}

int list(const rule_set& rules) {
  std::string text;
  for (const rule_info& rule : rules.list()) {
    text += fmt::format("{:<8}{:<32}{:<9}{:<11}{}{}\n", rule.id, rule.name, name_of(rule.sev), name_of(rule.conf),
                        rule.level == "full" ? "needs level full" : "", rule.enabled ? "" : "  off by default");
  }
  print(text);
  return exit_ok;
}

int show(const rule_set& rules, const std::string& id) {
  std::vector<std::string> ids;
  for (const rule_info& rule : rules.list()) {
    ids.push_back(rule.id);
    if (rule.id != id && rule.name != id) continue;
    std::string text = fmt::format("{} {}: {}, {}{}\n", rule.id, rule.name, name_of(rule.sev), name_of(rule.conf),
                                   rule.enabled ? "" : ", off by default");
    const auto add = [&](std::string_view title, const std::string& value) {
      if (!value.empty()) text += fmt::format("  {:<10} {}\n", title, value);
    };
    if (!rule.description.empty()) text += fmt::format("\n{}\n\n", rule.description);
    add("events", fmt::format("{}", fmt::join(rule.events, ", ")));
    add("for each", rule.each);
    add("when", rule.when);
    add("level", rule.level);
    add("message", rule.message);
    add("fix", rule.remediation);
    add("grouped by", fmt::format("{}", fmt::join(rule.group_by, ", ")));
    add("tags", fmt::format("{}", fmt::join(rule.tags, ", ")));
    add("since", rule.since);
    add("see", rule.doc);
    add("tests", std::to_string(rule.tests));
    add("defined", fmt::format("{}:{}", rule.at.file, rule.at.line));
    print(text);
    return exit_ok;
  }
  const std::string near = did_you_mean(id, std::vector<std::string_view>(ids.begin(), ids.end()));
  return refuse(fmt::format("no rule {}", id),
                near.empty() ? "see capturesan rules list" : fmt::format("did you mean {}?", near));
}

int test(const rule_set& rules) {
  std::size_t passed = 0, failed = 0, todo = 0;
  std::string text;
  for (const rule_test_result& one : rules.test()) {
    ++(one.todo ? todo : one.passed ? passed : failed);
    // An announced failure that passes is news as well: the announcement is out of date.
    if (one.passed) continue;
    text += fmt::format("{}:{}: {} '{}': expected {}, found {}\n", one.at.file, one.at.line, one.rule, one.test,
                        one.expected, one.found);
    if (one.todo) ++failed;
  }
  for (const rule_info& rule : rules.list()) {
    if (rule.tests == 0) text += fmt::format("{}:{}: warning: {} has no test\n", rule.at.file, rule.at.line, rule.id);
  }
  text += fmt::format("{} passed, {} failed, {} expected to fail\n", passed, failed, todo);
  print(text);
  return failed ? exit_findings : exit_ok;
}

} // namespace

int rules_command(const invocation& in) {
  if (in.arguments.empty()) return refuse("list, show or test?", "see --help");
  const std::string& action = in.arguments[0];
  const std::vector<std::string> rest(in.arguments.begin() + 1, in.arguments.end());
  static constexpr std::string_view actions[] = {"list", "show", "test"};
  if (std::find(std::begin(actions), std::end(actions), action) == std::end(actions)) {
    const std::string near = did_you_mean(action, actions);
    return refuse(fmt::format("unknown action '{}'", action),
                  near.empty() ? "see --help" : fmt::format("did you mean {}?", near));
  }
  if (action == "show" && rest.size() != 1)
    return refuse("show needs the id or name of one rule", "see capturesan rules list");
  if (action == "list" && !rest.empty()) return refuse(fmt::format("unexpected argument '{}'", rest[0]), "see --help");

  // `test FILE` is about that file: it must pass on its own.
  std::vector<std::string> files = rest;
  if (action != "test" || rest.empty()) {
    result<std::vector<std::string>> shipped = rule_files(in.options.list("rules"));
    if (!shipped) {
      complain(shipped.problems());
      return exit_usage;
    }
    files = std::move(shipped.value());
  }
  const result<rule_set> rules = rule_set::load(files);
  if (!rules) {
    complain(rules.problems());
    return exit_usage;
  }
  for (const problem& warning : rules.value().warnings()) complain({warning});
  if (action == "list") return list(rules.value());
  return action == "show" ? show(rules.value(), rest[0]) : test(rules.value());
}

} // namespace capturesan::cli
