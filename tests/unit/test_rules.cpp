// The shipped rules: their own tests pass, and each test suite is sharp enough to notice a flipped operator.
#include <functional>
#include <set>

#include "analyzer/rule_test.h"
#include "tests/unit/support.h"

using namespace capturesan;

namespace {

bool passes(const rule& r, const compiled_rules& rules) {
  for (const auto& t : run_rule_tests(r, rules))
    if (!t.passed) return false;
  return true;
}

std::string show_condition(const expr& e) {
  std::string out;
  for (const auto& c : e.children) out += "(" + show_condition(*c) + ")";
  return e.name + out;
}

// Every way to flip one operator of a condition; `undo` puts it back.
struct flip {
  std::string what;
  std::function<void()> apply, undo;
};

flip negated(std::unique_ptr<expr>& e) {
  auto slot = &e;
  const auto wrap = [slot] {
    auto n = std::make_unique<expr>();
    n->type = expr::kind::negation;
    n->children.push_back(std::move(*slot));
    *slot = std::move(n);
  };
  const auto unwrap = [slot] {
    auto inner = std::move((*slot)->children.front());
    *slot = std::move(inner);
  };
  return {e->name + " negated", wrap, unwrap};
}

void collect(std::unique_ptr<expr>& e, std::vector<flip>& out) {
  for (auto& c : e->children) collect(c, out);
  expr* p = e.get();
  using kind = expr::kind;
  switch (p->type) {
  case kind::all_of:
  case kind::any_of: {
    const kind was = p->type;
    const kind now = was == kind::all_of ? kind::any_of : kind::all_of;
    out.push_back({"and/or at " + std::to_string(p->at), [p, now] { p->type = now; }, [p, was] { p->type = was; }});
    break;
  }
  case kind::compare: {
    const comparison was = p->op;
    std::vector<comparison> others;
    switch (was) {
    case comparison::equal:
      others = {comparison::not_equal};
      break;
    case comparison::not_equal:
      others = {comparison::equal};
      break;
    case comparison::less:
      others = {comparison::less_equal, comparison::greater_equal};
      break;
    case comparison::less_equal:
      others = {comparison::less, comparison::greater};
      break;
    case comparison::greater:
      others = {comparison::greater_equal, comparison::less_equal};
      break;
    case comparison::greater_equal:
      others = {comparison::greater, comparison::less};
      break;
    case comparison::in:
      others = {comparison::not_in};
      break;
    case comparison::not_in:
      others = {comparison::in};
      break;
    case comparison::glob:
    case comparison::matches:
    case comparison::starts_with: // there is no word for the opposite
      out.push_back(negated(e));
      break;
    }
    for (const comparison now : others)
      out.push_back({p->name + " operator", [p, now] { p->op = now; }, [p, was] { p->op = was; }});
    // A word less in a list must be missed too.
    if (p->values.size() > 1) {
      for (std::size_t i = 0; i < p->values.size(); ++i) {
        auto values = std::make_shared<std::vector<literal>>(p->values);
        out.push_back({p->name + " without '" + p->values[i].text + "'",
                       [p, i] { p->values.erase(p->values.begin() + static_cast<std::ptrdiff_t>(i)); },
                       [p, values] { p->values = *values; }});
      }
    }
    break;
  }
  case kind::negation: {
    // `not x` becomes `x`.
    auto slot = &e;
    auto kept = std::make_shared<std::unique_ptr<expr>>();
    out.push_back({"not at " + std::to_string(p->at),
                   [slot, kept] {
                     auto inner = std::move((*slot)->children.front());
                     *kept = std::move(*slot);
                     *slot = std::move(inner);
                   },
                   [slot, kept] {
                     auto inner = std::move(*slot);
                     *slot = std::move(*kept);
                     (*slot)->children.front() = std::move(inner);
                   }});
    break;
  }
  case kind::truth:
  case kind::exists:
    out.push_back(negated(e));
    break;
  case kind::macro:
    break;
  }
}

} // namespace

TEST_CASE("every shipped rule passes its own tests, and has some of both kinds") {
  const rule_set& rules = shipped_rules();
  for (const auto& w : rules.warnings()) FAIL_CHECK(to_text(w));
  std::map<std::string, std::pair<int, int>> kinds;
  for (const auto& t : rules.test()) {
    INFO(t.rule << " '" << t.test << "': expected " << t.expected << ", found " << t.found);
    CHECK(t.passed);
    CHECK_FALSE(t.todo);
    ++(t.expected == "no finding" ? kinds[t.rule].second : kinds[t.rule].first);
  }
  for (const auto& r : rules.list()) {
    INFO(r.id);
    CHECK(kinds[r.id].first > 0);
    if (r.id != "CS901") CHECK(kinds[r.id].second > 0);
    CHECK_FALSE(r.description.empty());
    CHECK_FALSE(r.doc.empty());
  }
}

TEST_CASE("flipping any operator of a shipped rule turns a test red") {
  // The set is shared by value with no other test: it is changed here.
  auto loaded = rule_set::load(shipped_files());
  REQUIRE(loaded);
  auto& compiled = const_cast<compiled_rules&>(loaded.value().compiled());
  int mutants = 0;
  for (auto& r : compiled.rules) {
    std::vector<flip> flips;
    collect(r->when, flips);
    for (auto& v : r->variants) collect(v.when, flips);
    for (auto& x : r->exceptions) collect(x.when, flips);
    if (r->threshold) {
      auto& least = r->threshold->at_least;
      flips.push_back({"threshold one higher", [&least] { ++least; }, [&least] { --least; }});
      if (least > 1) flips.push_back({"threshold one lower", [&least] { --least; }, [&least] { ++least; }});
    }
    REQUIRE(passes(*r, compiled));
    for (const flip& f : flips) {
      f.apply();
      const bool before = r->possible_if_ok;
      r->possible_if_ok = possible_if_ok(*r->when);
      ++mutants;
      INFO(r->about.id << ": " << f.what << " of " << show_condition(*r->when));
      CHECK_FALSE(passes(*r, compiled));
      f.undo();
      r->possible_if_ok = before;
    }
    REQUIRE(passes(*r, compiled));
  }
  CHECK(mutants > 50);
}

TEST_CASE("a test that fails says what it expected and what it found") {
  auto set = rule_set::parse("my.yaml", R"(schema: 1
rules:
  - id: MY101
    name: mine
    events: [sync]
    when: 'event.result == 900'
    severity: warning
    message: '{event.api} answered {event.result}'
    remediation: 'Do not.'
    tests:
      - name: finds nothing
        given: [{call: cuStreamSynchronize, stream: s1, result: 900}]
        expect: none
      - name: misspelt
        given: [{call: cuStreamSynchronise}]
        expect: none
      - name: later
        todo: true
        given: [{call: cuStreamSynchronize, result: 0}]
        expect: {findings: 1}
)");
  REQUIRE(set);
  const auto results = set.value().test();
  REQUIRE(results.size() == 3);
  CHECK_FALSE(results[0].passed);
  CHECK(results[0].expected == "no finding");
  CHECK(results[0].found.find("1 finding, first at event 1") == 0);
  CHECK(results[0].at.line == 11);
  CHECK_FALSE(results[1].passed);
  CHECK(results[1].found.find("did you mean 'cuStreamSynchronize'?") != std::string::npos);
  CHECK(results[1].at.line == 15);
  CHECK(results[1].at.column == 24);
  CHECK(results[2].passed);
  CHECK(results[2].todo);
}

TEST_CASE("macros, lists, exceptions, thresholds, overrides and variants") {
  auto set = rule_set::parse("my.yaml", R"(schema: 1
requires: ">=0.1"
lists: {apis: [cuStreamSynchronize, "cuCtxSynchronize"], kinds: [legacy, nonblocking]}
macros:
  refused: 'event.result != 0'
  listed: '$refused and event.api in $apis'
rules:
  - id: MY101
    name: mine
    events: [sync]
    when: '$listed'
    severity: warning
    message: 'm {event.api}'
    remediation: 'r'
    threshold: {at_least: 3, per: [event.api]}
    exceptions:
      - {id: x1, when: 'thread.name == "quiet"', reason: known}
    tests:
      - {name: under the threshold, given: [{call: cuStreamSynchronize, result: 700}, {call: cuStreamSynchronize, result: 700}, {call: cuCtxSynchronize, result: 700}], expect: none}
      - {name: over it, given: [{call: cuStreamSynchronize, result: 700}, {call: cuStreamSynchronize, result: 700}, {call: cuStreamSynchronize, result: 700}], expect: {findings: 1, at: 3, severity: error}}
      - {name: excepted, given: [{call: cuStreamSynchronize, result: 700, thread: quiet}, {call: cuStreamSynchronize, result: 700, thread: quiet}, {call: cuStreamSynchronize, result: 700, thread: quiet}], expect: none}
  - id: MY102
    name: kinds
    events: [sync]
    when: 'stream.kind in $kinds and event.duration >= 1us and event.duration < 1ms'
    severity: note
    message: 'm'
    remediation: 'r'
    tests:
      - {name: legacy, given: [{call: cuStreamSynchronize, stream: legacy}], expect: {findings: 1}}
      - {name: blocking, given: [{call: cuStreamCreate, stream: s1, flags: 0}, {call: cuStreamSynchronize, stream: s1}], expect: none}
overrides:
  - {rule: MY101, severity: error, and_when: 'event.result == 700 or event.result == 719'}
)");
  if (!set) {
    for (const auto& p : set.problems()) FAIL_CHECK(to_text(p));
    return;
  }
  for (const auto& t : set.value().test()) {
    INFO(t.rule << " '" << t.test << "': expected " << t.expected << ", found " << t.found);
    CHECK(t.passed);
  }
}

TEST_CASE("every field can be shown and is documented") {
  std::set<std::string> names;
  for (const auto& f : list_fields()) {
    INFO(f.name);
    CHECK(names.insert(f.name).second);
    CHECK_FALSE(f.doc.empty());
    CHECK((f.type == "word") == !f.words.empty());
  }
  CHECK(names.size() > 40);
}
