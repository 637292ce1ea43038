#include "analyzer/rule_test.h"

#include <algorithm>

#include <fmt/format.h>

#include "analyzer/auditor.h"
#include "analyzer/rule_context.h"
#include "analyzer/scenario.h"

namespace capturesan {

namespace {

using kind = yaml_node::kind;

std::string to_word(severity s) { return s == severity::error ? "error" : s == severity::warning ? "warning" : "note"; }
std::string to_word(confidence c) {
  return c == confidence::proved ? "proved" : c == confidence::likely ? "likely" : "suspected";
}

// Compares what was found with `expect` and says both in words.
class verdict {
 public:
  verdict(const yaml_node& expect, const std::vector<const finding*>& found, const scenario& s)
      : found_(found), scenario_(s) {
    if (expect.type == kind::scalar) {
      wanted_ = "no finding";
      good_ = found.empty();
      return;
    }
    for (const auto& [key, v] : expect.entries) check(key, v);
  }

  bool good() const { return good_; }
  const std::string& wanted() const { return wanted_; }
  std::string got() const {
    if (found_.empty()) return "no finding";
    const finding& f = *found_.front();
    return fmt::format("{} finding{}, first at event {}: {} {} '{}'{}", found_.size(), found_.size() == 1 ? "" : "s",
                       at(f), to_word(f.conf), to_word(f.sev), f.message, differs_);
  }

 private:
  int at(const finding& f) const { return scenario_.event_at(static_cast<std::int64_t>(f.time_s * 1e9 + 1.5)); }

  void check(const yaml_node& key, const yaml_node& v) {
    wanted_ += (wanted_.empty() ? "" : ", ") + key.text + " '" + v.text + "'";
    if (key.text == "findings") {
      good_ = good_ && std::to_string(found_.size()) == v.text;
      return;
    }
    if (found_.empty()) {
      good_ = false;
      return;
    }
    const finding& f = *found_.front();
    if (key.text == "message_has") {
      good_ = good_ && f.message.find(v.text) != std::string::npos;
      return;
    }
    const std::string is = value(key.text, f);
    if (is == v.text) return;
    good_ = false;
    differs_ += ", " + key.text + " " + is;
  }

  std::string value(const std::string& key, const finding& f) const {
    if (key == "at") return std::to_string(at(f));
    if (key == "severity") return to_word(f.sev);
    if (key == "confidence") return to_word(f.conf);
    if (key == "cascade") return std::to_string(f.cascade.size());
    if (key == "count") return std::to_string(f.count);
    return f.after.empty() ? "no" : "yes"; // after
  }

  const std::vector<const finding*>& found_;
  const scenario& scenario_;
  bool good_ = true;
  std::string wanted_, differs_;
};

// The events of a test as a trace. Adds what is wrong with them; one problem an event.
void play(const yaml_node& test, const rule& r, scenario& s, std::vector<problem>& problems) {
  const auto* given = test.find("given");
  if (given == nullptr) return;
  for (const auto& e : given->items) {
    try {
      s.add(e);
    } catch (const bad_test& b) {
      problems.push_back(
          r.source->error(*b.at, "CGE033",
                          b.message + " (rule " + r.about.id + ", test '" + text_of(test.find("name")) + "')", b.hint));
    }
  }
}

trace::trace_level level_of(const yaml_node& test) {
  return word_of(test.find("level"), word_set::level) == 1 ? trace::trace_level::full : trace::trace_level::lite;
}

rule_test_result run_one(const rule& r, const compiled_rules& rules, const yaml_node& test) {
  rule_test_result out;
  out.rule = r.about.id;
  out.test = text_of(test.find("name"));
  out.todo = word_of(test.find("todo"), word_set::boolean) == 1;
  out.at = r.source->position(test.at);
  std::vector<problem> problems;
  scenario s(level_of(test));
  play(test, r, s, problems);
  audit_options options;
  options.close = [&s](const audit_summary&) { return closing_notes{s.suppressions(), {}}; };
  auditor a(rules, std::move(options));
  if (problems.empty())
    if (auto added = a.add_source(from_memory(s.bytes()), "test"); !added) problems = added.problems();
  if (!problems.empty()) {
    out.at = problems.front().at;
    out.expected = "a test that can run";
    out.found = problems.front().message;
    if (!problems.front().hint.empty()) out.found += "; " + problems.front().hint;
    return out;
  }
  a.finish();
  std::vector<const finding*> found;
  for (const finding& f : a.findings())
    if (f.rule == r.about.id) found.push_back(&f);
  const verdict v(*test.find("expect"), found, s);
  out.expected = v.wanted();
  out.found = v.got();
  out.passed = v.good() != out.todo;
  return out;
}

} // namespace

std::vector<rule_test_result> run_rule_tests(const rule& r, const compiled_rules& rules) {
  std::vector<rule_test_result> out;
  if (r.tests == nullptr) return out;
  for (const auto& t : r.tests->items) out.push_back(run_one(r, rules, t));
  return out;
}

std::vector<problem> check_rule_tests(const rule& r) {
  std::vector<problem> out;
  if (r.tests == nullptr) return out;
  for (const auto& t : r.tests->items) {
    scenario s(level_of(t));
    play(t, r, s, out);
  }
  return out;
}

} // namespace capturesan
