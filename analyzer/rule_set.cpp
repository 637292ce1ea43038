#include "analyzer/rule_set.h"

#include <algorithm>
#include <ctime>
#include <tuple>

#include <fmt/format.h>

#include "analyzer/rule_loader.h"
#include "analyzer/rule_test.h"
#include "analyzer/text_file.h"

namespace capturesan {

namespace {

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm t{};
  ::gmtime_r(&now, &t);
  return fmt::format("{:04}-{:02}-{:02}", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday);
}

} // namespace

rule_set::rule_set(std::unique_ptr<compiled_rules> rules) : rules_(std::move(rules)) {}
rule_set::rule_set(rule_set&&) noexcept = default;
rule_set& rule_set::operator=(rule_set&&) noexcept = default;
rule_set::~rule_set() = default;

result<rule_set> rule_set::load(const std::vector<std::string>& files) {
  std::vector<std::pair<std::string, std::string>> texts;
  std::vector<problem> problems;
  for (const auto& file : files) {
    auto text = read_text_file(file, yaml_document::most_bytes, "CGE008");
    if (text) {
      texts.emplace_back(file, std::move(text.value()));
    } else {
      problems.insert(problems.end(), text.problems().begin(), text.problems().end());
    }
  }
  if (!problems.empty()) return problems;
  auto rules = compile_rules(std::move(texts), today());
  if (!rules) return rules.problems();
  return rule_set(std::move(rules.value()));
}

result<rule_set> rule_set::parse(const std::string& name, const std::string& text) {
  auto rules = compile_rules({{name, text}}, today());
  if (!rules) return rules.problems();
  return rule_set(std::move(rules.value()));
}

std::vector<rule_info> rule_set::list() const {
  std::vector<rule_info> out;
  for (const auto& r : rules_->rules) out.push_back(r->about);
  return out;
}

const std::vector<problem>& rule_set::warnings() const { return rules_->warnings; }
const compiled_rules& rule_set::compiled() const { return *rules_; }

std::vector<problem> rule_set::lint() const {
  std::vector<problem> out = rules_->warnings;
  for (const auto& r : rules_->rules) {
    auto found = check_rule_tests(*r);
    out.insert(out.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
    if (r->about.tests == 0)
      out.push_back(about(r->about.id, "CGW003", "rule " + r->about.id + " has no test", "see docs/writing-rules.md"));
  }
  std::stable_sort(out.begin(), out.end(), [](const problem& a, const problem& b) {
    return std::tie(a.at.file, a.at.line, a.at.column) < std::tie(b.at.file, b.at.line, b.at.column);
  });
  return out;
}

problem rule_set::about(const std::string& rule_id, std::string code, std::string message, std::string hint) const {
  for (const auto& r : rules_->rules)
    if (r->about.id == rule_id && r->id != nullptr)
      return r->source->error(*r->id, std::move(code), std::move(message), std::move(hint));
  return {{}, std::move(code), std::move(message), std::move(hint), ""};
}

std::vector<rule_test_result> rule_set::test(const std::string& only_rule) const {
  std::vector<rule_test_result> out;
  for (const auto& r : rules_->rules) {
    if (!only_rule.empty() && r->about.id != only_rule) continue;
    auto results = run_rule_tests(*r, *rules_);
    out.insert(out.end(), std::make_move_iterator(results.begin()), std::make_move_iterator(results.end()));
  }
  return out;
}

std::string to_text(const problem& p) {
  std::string out = p.at.file;
  if (p.at.line > 0) out += fmt::format(":{}:{}", p.at.line, p.at.column);
  out += p.code.empty()              ? ": error: "
         : p.code.starts_with("CGW") ? fmt::format(": warning[{}]: ", p.code)
                                     : fmt::format(": error[{}]: ", p.code);
  out += p.message + '\n';
  if (p.at.line > 0 && !p.excerpt.empty()) {
    const std::string number = fmt::format("{:5}", p.at.line);
    out += fmt::format("{} | {}\n{:5} | {:{}}{}", number, p.excerpt, "", "", (p.caret > 0 ? p.caret : p.at.column) - 1,
                       std::string(static_cast<std::size_t>(p.length), '^'));
    if (!p.hint.empty()) out += ' ' + p.hint;
    out += '\n';
  } else if (!p.hint.empty()) {
    out += "  " + p.hint + '\n';
  }
  return out;
}

} // namespace capturesan
