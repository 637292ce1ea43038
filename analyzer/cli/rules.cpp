// `capturesan rules`: which rules are meant, and the actions that only show something. The others: rules_check.cpp,
// rules_write.cpp.
#include "analyzer/cli/rules.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analyzer/cli/command.h"
#include "analyzer/cli/exit_code.h"
#include "analyzer/cli/installation.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/report.h"

namespace capturesan::cli {

namespace {

namespace fs = std::filesystem;

std::string upper(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

int list(const rule_set& rules) {
  std::string text;
  for (const rule_info& rule : rules.list()) {
    text += fmt::format("{:<8}{:<32}{:<9}{:<11}{}{}\n", rule.id, rule.name, name_of(rule.sev), name_of(rule.conf),
                        rule.level == "full" ? "needs level full" : "", rule.enabled ? "" : "  off by default");
  }
  return put(text);
}

std::string about(const rule_info& rule) {
  std::string text = fmt::format("{} {}: {}, {}{}\n", rule.id, rule.name, name_of(rule.sev), name_of(rule.conf),
                                 rule.enabled ? "" : ", off by default");
  const auto add = [&](std::string_view title, const std::string& value) {
    if (!value.empty()) text += fmt::format("  {:<10} {}\n", title, value);
  };
  if (!rule.description.empty()) text += fmt::format("\n{}\n\n", rule.description);
  add("events", fmt::format("{}", fmt::join(rule.events, ", ")));
  add("for each", rule.each);
  add("when", rule.when);
  for (const auto& [name, meaning] : rule.uses) add("  $" + name, meaning);
  add("level", rule.level);
  add("message", rule.message);
  add("fix", rule.remediation);
  add("grouped by", fmt::format("{}", fmt::join(rule.group_by, ", ")));
  add("tags", fmt::format("{}", fmt::join(rule.tags, ", ")));
  add("since", rule.since);
  add("see", rule.doc);
  add("tests", std::to_string(rule.tests));
  add("defined", fmt::format("{}:{}", rule.at.file, rule.at.line));
  return text;
}

int show(const rule_set& rules, const std::string& id) {
  std::vector<std::string> ids;
  for (const rule_info& rule : rules.list()) {
    ids.push_back(rule.id);
    if (rule.id == upper(id) || rule.name == id) return put(about(rule));
  }
  return refuse_rules(fmt::format("no rule {}", id), near_id(id, ids));
}

// The shipped packs and `--rules`; files named as arguments take the place of the same file among these.
result<std::vector<std::string>> files_for(const invocation& in, const std::vector<std::string>& named) {
  result<std::vector<std::string>> all = rule_files(in.options.list("rules"));
  if (!all) return all;
  for (const std::string& file : named) {
    const auto same = [&](const std::string& known) {
      std::error_code ignored;
      return fs::equivalent(known, file, ignored);
    };
    const auto it = std::find_if(all.value().begin(), all.value().end(), same);
    if (it != all.value().end()) {
      *it = file;
    } else {
      all.value().push_back(file);
    }
  }
  return all;
}

struct action {
  std::string_view name;
  std::size_t least, most; // arguments
  std::string_view wants;  // what is missing, in words
};
constexpr action actions[] = {
    {"list", 0, 0, ""},
    {"show", 1, 1, "the id or name of one rule"},
    {"lint", 0, 64, ""},
    {"test", 0, 64, ""},
    {"schema", 0, 0, ""},
    {"fields", 0, 1, ""},
    {"new", 2, 2, "an id and a name, such as MY101 wait-after-alloc"},
};

const action* find_action(const std::string& name) {
  const auto it = std::find_if(std::begin(actions), std::end(actions), [&](const action& a) { return a.name == name; });
  return it == std::end(actions) ? nullptr : it;
}

} // namespace

int put(const std::string& text) {
  print(text);
  return exit_ok;
}

int refuse_rules(std::string message, std::string hint) {
  problem p;
  p.message = "rules: " + std::move(message);
  p.hint = std::move(hint);
  complain({p});
  return exit_usage;
}

std::string near_id(const std::string& id, const std::vector<std::string>& ids) {
  const std::string near = did_you_mean(upper(id), std::vector<std::string_view>(ids.begin(), ids.end()));
  return near.empty() ? "see capturesan rules list" : fmt::format("did you mean {}?", near);
}

bool same_id(const std::string& id, const std::string& typed) { return id == upper(typed); }

int rules_command(const invocation& in) {
  if (in.arguments.empty()) return refuse_rules("list, show, lint, test, schema, fields or new?", "see --help");
  const std::vector<std::string> rest(in.arguments.begin() + 1, in.arguments.end());
  const action* what = find_action(in.arguments[0]);
  if (what == nullptr) {
    std::vector<std::string_view> names;
    for (const action& a : actions) names.push_back(a.name);
    const std::string near = did_you_mean(in.arguments[0], names);
    return refuse_rules(fmt::format("unknown action '{}'", in.arguments[0]),
                        near.empty() ? "see --help" : fmt::format("did you mean {}?", near));
  }
  if (rest.size() < what->least)
    return refuse_rules(fmt::format("{} needs {}", what->name, what->wants), "see capturesan rules --help");
  if (rest.size() > what->most)
    return refuse_rules(fmt::format("unexpected argument '{}'", rest[what->most]), "see --help");
  if (what->name == "schema") return put(rule_schema());
  if (what->name == "fields") return rules_fields(rest.empty() ? "" : rest[0], in.options.flag("json"));
  if (what->name == "new") return rules_new(rest[0], rest[1]);

  const bool checks = what->name == "lint" || what->name == "test";
  const rule_words words = checks ? split_words(rest) : rule_words{};
  const result<std::vector<std::string>> files = files_for(in, words.files);
  if (!files) {
    complain(files.problems());
    return exit_usage;
  }
  const result<rule_set> rules = rule_set::load(files.value());
  if (what->name == "lint") return rules_lint(rules, words);
  if (!rules) {
    complain(rules.problems());
    return exit_usage;
  }
  if (what->name == "test") return rules_test(rules.value(), words);
  for (const problem& warning : rules.value().warnings()) complain({warning});
  return what->name == "list" ? list(rules.value()) : show(rules.value(), rest[0]);
}

} // namespace capturesan::cli
