#include "analyzer/rule_test.h"

#include <algorithm>

#include <fmt/format.h>

#include "analyzer/auditor.h"
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
      if (expect.text != "none") throw bad_test{&expect, "`expect` is none or a map"};
      wanted_ = "no finding";
      good_ = found.empty();
      return;
    }
    if (expect.type != kind::map) throw bad_test{&expect, "`expect` is none or a map"};
    for (const auto& [key, v] : expect.entries) check(key, v);
  }

  bool good() const { return good_; }
  std::string wanted() const { return wanted_; }
  std::string got() const {
    if (found_.empty()) return "no finding";
    const finding& f = *found_.front();
    return fmt::format("{} finding{}, first at event {}: {} {} '{}'", found_.size(), found_.size() == 1 ? "" : "s",
                       at(f), to_word(f.conf), to_word(f.sev), f.message);
  }

 private:
  int at(const finding& f) const { return scenario_.event_at(static_cast<std::int64_t>(f.time_s * 1e9 + 1.5)); }

  void check(const yaml_node& key, const yaml_node& v) {
    wanted_ += (wanted_.empty() ? "" : ", ") + key.text + " " + v.text;
    const finding* f = found_.empty() ? nullptr : found_.front();
    const auto same = [&](const std::string& is) { good_ = good_ && f != nullptr && is == v.text; };
    if (key.text == "findings") {
      good_ = good_ && std::to_string(found_.size()) == v.text;
    } else if (key.text == "at") {
      same(f == nullptr ? "" : std::to_string(at(*f)));
    } else if (key.text == "message_has") {
      good_ = good_ && f != nullptr && f->message.find(v.text) != std::string::npos;
    } else if (key.text == "severity") {
      same(f == nullptr ? "" : to_word(f->sev));
    } else if (key.text == "confidence") {
      same(f == nullptr ? "" : to_word(f->conf));
    } else if (key.text == "cascade") {
      same(f == nullptr ? "" : std::to_string(f->cascade.size()));
    } else if (key.text == "count") {
      same(f == nullptr ? "" : std::to_string(f->count));
    } else if (key.text == "after") {
      same(f == nullptr || f->after.empty() ? "no" : "yes");
    } else {
      throw bad_test{&key, "unknown key '" + key.text + "'"};
    }
  }

  const std::vector<const finding*>& found_;
  const scenario& scenario_;
  bool good_ = true;
  std::string wanted_;
};

rule_test_result run_one(const rule& r, const compiled_rules& rules, const yaml_node& test) {
  rule_test_result out;
  out.rule = r.about.id;
  out.at = r.source->position(test.at);
  try {
    for (const auto& [key, v] : test.entries) {
      if (key.text == "name") out.test = v.text;
      if (key.text == "todo") out.todo = v.text == "true";
      static constexpr std::string_view known[] = {"name", "given", "expect", "todo", "level"};
      if (std::find(std::begin(known), std::end(known), key.text) == std::end(known))
        throw bad_test{&key, "unknown key '" + key.text + "'"};
    }
    const auto* given = test.find("given");
    const auto* expect = test.find("expect");
    if (given == nullptr || given->type != kind::sequence)
      throw bad_test{&test, "a test needs `given`, a list of events"};
    if (expect == nullptr) throw bad_test{&test, "a test needs `expect`"};
    const auto* level = test.find("level");
    scenario s(level != nullptr && level->text == "full" ? trace::trace_level::full : trace::trace_level::lite);
    for (const auto& e : given->items) s.add(e);
    audit_options options;
    options.close = [&s](const audit_summary&) { return closing_notes{s.suppressions(), {}}; };
    auditor a(rules, std::move(options));
    auto added = a.add_source(from_memory(s.bytes()), "test");
    if (!added) throw bad_test{&test, added.problems().front().message};
    a.finish();
    std::vector<const finding*> found;
    for (const finding& f : a.findings())
      if (f.rule == r.about.id) found.push_back(&f);
    const verdict v(*expect, found, s);
    out.expected = v.wanted();
    out.found = v.got();
    out.passed = v.good() != out.todo;
  } catch (const bad_test& b) {
    out.at = r.source->position(b.at->at);
    out.expected = "a test that can run";
    out.found = b.message;
    out.passed = false;
  }
  return out;
}

} // namespace

std::vector<rule_test_result> run_rule_tests(const rule& r, const compiled_rules& rules) {
  std::vector<rule_test_result> out;
  if (r.tests == nullptr) return out;
  for (const auto& t : r.tests->items) out.push_back(run_one(r, rules, t));
  return out;
}

} // namespace capturesan
