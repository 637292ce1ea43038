// What is wrong in a rule file is said at its own line and column: what holds for all problems. The single problems are
// in tests/rules/bad.
#include "tests/unit/support.h"

using namespace capturesan;

TEST_CASE("a missing key is reported at the rule, each one") {
  const std::pair<const char*, const char*> good[] = {
      {"id", "id: MY101"},
      {"name", "name: mine"},
      {"events", "events: [sync]"},
      {"severity", "severity: error"},
      {"when", "when: 'event.result == 1'"},
      {"message", "message: 'm'"},
      {"remediation", "remediation: 'r'"},
  };
  for (const auto& [missing, line] : good) {
    std::string text = "schema: 1\nrules:\n  -\n";
    for (const auto& [key, value] : good)
      if (key != missing) text += std::string("    ") + value + "\n";
    auto set = rule_set::parse("bad.yaml", text);
    INFO(missing);
    REQUIRE_FALSE(set);
    REQUIRE(set.problems().size() == 1);
    CHECK(set.problems()[0].code == "CGE010");
    CHECK(set.problems()[0].message.find("key '" + std::string(missing) + "' is missing") == 0);
    CHECK(set.problems()[0].at.line == 4);
    CHECK(set.problems()[0].at.column == 5);
  }
}

TEST_CASE("guards make absent fields usable under not") {
  for (const char* good : {"exists(graph.id) and not graph.replay > 1", "graph.nodes > 1 and not graph.replay > 1",
                           "not (exists(graph.id) and graph.replay > 1)", "not capture.active",
                           "not capture.active or graph.replay > 1"}) {
    auto set = rule_set::parse("good.yaml", "schema: 1\nrules: [{id: MY101, name: n, events: [graph_launch], severity: "
                                            "note, message: m, remediation: r, when: '" +
                                                std::string(good) + "'}]\n");
    INFO(good);
    if (!set) FAIL_CHECK(to_text(set.problems().front()));
  }
}

TEST_CASE("all problems of a file come in one pass, in order") {
  auto set = rule_set::parse("bad.yaml", "schema: 1\nrulez: []\nrules:\n  - {id: MY101, name: n, events: [synk], "
                                         "severity: eror, message: '{x}', remediation: r, when: 'event.apj'}\n"
                                         "  - {id: MY101, name: n, events: [sync], severity: error, message: m, "
                                         "remediation: r, when: 'event.in_window', tsts: []}\n");
  REQUIRE_FALSE(set);
  std::vector<std::string> codes;
  for (const auto& p : set.problems()) codes.push_back(p.code);
  CHECK(codes == std::vector<std::string>{"CGE011", "CGE014", "CGE014", "CGE012", "CGE012", "CGE031", "CGE011"});
}

TEST_CASE("places are right in block scalars, quotes and folded lines") {
  const auto place = [](const std::string& when) {
    auto set = rule_set::parse("bad.yaml", "schema: 1\nrules:\n  - id: MY101\n    name: n\n    events: [sync]\n    "
                                           "severity: error\n    message: m\n    remediation: r\n" +
                                               when);
    REQUIRE_FALSE(set);
    const auto& p = set.problems().front();
    INFO(to_text(p));
    return std::pair(p.at.line, p.at.column);
  };
  CHECK(place("    when: event.in_window and event.apj\n") == std::pair(9, 31));
  CHECK(place("    when: >\n      event.in_window\n      and event.apj\n") == std::pair(11, 11));
  CHECK(place("    when: |\n      event.in_window\n      and event.apj\n") == std::pair(11, 11));
  CHECK(place("    when: \"event.api == \\\"a\\\" and event.apj\"\n") == std::pair(9, 35));
  CHECK(place("    when: 'event.in_window\n      and event.apj'\n") == std::pair(10, 11));
}

TEST_CASE("a problem is shown with its line, a caret and the hint") {
  auto set =
      rule_set::parse("rules/mine.yaml", "schema: 1\nrules:\n  - id: MY001\n    name: n\n    events: [graph_launch]\n  "
                                         "  each: graph.ptr\n    severity: error\n    message: m\n    remediation: r\n"
                                         "    when: 'capture.active and mem.knd == pinned'\n");
  REQUIRE_FALSE(set);
  CHECK(to_text(set.problems().front()) ==
        "rules/mine.yaml:10:31: error[CGE012]: unknown field 'mem.knd' (rule MY001, key 'when')\n"
        "   10 |     when: 'capture.active and mem.knd == pinned'\n"
        "      |                               ^^^^^^^ did you mean 'mem.kind'?\n");
}

TEST_CASE("any bytes are refused or read, never a crash") {
  const std::string good =
      "schema: 1\nlists: {a: [b]}\nmacros: {m: 'event.in_window'}\nrules: [{id: MY101, name: n, events: [sync], "
      "severity: note, message: '{event.api}', remediation: r, when: '$m or event.api in $a'}]\n";
  REQUIRE(rule_set::parse("x", good));
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const char c : {'\0', '{', '}', '\'', '"', '\n', ':', '&', '*', '!', '$', '(', '\xff', '\t', '-', '|'}) {
      std::string text = good;
      text[at] = c;
      auto set = rule_set::parse("x", text);
      if (!set) CHECK_FALSE(set.problems().empty());
    }
    (void)rule_set::parse("x", good.substr(0, at));
  }
}
