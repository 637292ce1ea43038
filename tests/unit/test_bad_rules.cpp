// What is wrong in a rule file is said at its own line and column. Positions are counted by hand in the texts below: a
// '^' line under a line of YAML marks the place, and is taken out before the file is read.
#include <sstream>

#include "tests/unit/support.h"

using namespace capturesan;

namespace {

struct bad_case {
  const char* code;
  const char* message; // part of it
  const char* hint;    // part of it
  const char* text;    // with the ^ line
};

// A rule with one key replaced; `%` stands for the key and its value.
const std::string rule_head = "schema: 1\nrules:\n  - id: MY101\n    name: mine\n";

struct prepared {
  std::string text;
  int line = 0, column = 0;
};

prepared prepare(const std::string& marked) {
  prepared out;
  std::istringstream in(marked);
  std::string line;
  int n = 0;
  while (std::getline(in, line)) {
    const auto mark = line.find_first_not_of(' ');
    if (mark != std::string::npos && line[mark] == '^' && line.find_first_not_of('^', mark) == std::string::npos) {
      out.line = n;
      out.column = static_cast<int>(mark) + 1;
      continue;
    }
    out.text += line + '\n';
    ++n;
  }
  return out;
}

void check(const bad_case& c) {
  const prepared p = prepare(c.text);
  INFO(c.text);
  REQUIRE(p.line > 0);
  auto set = rule_set::parse("bad.yaml", p.text);
  REQUIRE_FALSE(set);
  const auto& problems = set.problems();
  INFO(to_text(problems.front()));
  CHECK(problems.size() == 1);
  const problem& first = problems.front();
  CHECK(first.at.file == "bad.yaml");
  CHECK(first.at.line == p.line);
  CHECK(first.at.column == p.column);
  CHECK(first.code == c.code);
  CHECK(first.message.find(c.message) != std::string::npos);
  CHECK(first.hint.find(c.hint) != std::string::npos);
}

// A condition inside an otherwise good rule; the ^ line is below it.
void check_condition(const char* code, const char* message, const char* hint, const std::string& when, std::size_t at) {
  const std::string head = "schema: 1\nlists: {apis: [cuInit]}\nmacros: {good: 'event.in_window'}\nrules:\n  - id: "
                           "MY101\n    name: mine\n    events: [sync]\n    severity: error\n    message: m\n"
                           "    remediation: 'r'\n    tags: []\n    exceptions: [{id: a, reason: b, when: '$good'}]\n";
  const std::string line = "    when: '" + when + "'\n";
  auto set = rule_set::parse("bad.yaml", head + line);
  INFO(when);
  REQUIRE_FALSE(set);
  const problem& first = set.problems().front();
  INFO(to_text(first));
  CHECK(set.problems().size() == 1);
  CHECK(first.at.line == 13);
  CHECK(first.at.column == static_cast<int>(at) + 12);
  CHECK(first.code == code);
  CHECK(first.message.find(message) != std::string::npos);
  CHECK(first.hint.find(hint) != std::string::npos);
}

const bad_case cases[] = {
    // ---- YAML ----
    {"CGE002", "anchors are not allowed", "", "schema: 1\nlists: {a: &x [b]}\n           ^\n"},
    {"CGE001", "anchor is not defined", "", "schema: 1\nlists: *x\n       ^\n"},
    {"CGE002", "tags are not allowed", "", "schema: !!int 1\n        ^\n"},
    {"CGE002", "merge keys are not allowed", "", "schema: 1\nmacros: {<<: {a: b}}\n         ^\n"},
    {"CGE003", "key 'schema' occurs twice", "", "schema: 1\nschema: 1\n^\n"},
    {"CGE003", "key 'a' occurs twice", "",
     "schema: 1\nmacros: {a: 'event.in_window', a: 'event.in_window'}\n                               ^\n"},
    {"CGE004", "a key must be a plain word", "", "schema: 1\n? [a, b]\n  ^\n: c\n"},
    {"CGE005", "this quote is never closed", "", "schema: 1\nrequires: '>=0.1\n          ^\n"},
    {"CGE005", "this quote is never closed", "", "schema: 1\nrequires: \">=0.1\n          ^\n"},
    {"CGE007", "one document", "", "schema: 1\n---\nschema: 1\n^\n"},
    // ---- a file ----
    {"CGE015", "key 'schema' is missing", "schema: 1", "rules: []\n^\n"},
    {"CGE015", "rules file is schema 2, this capturesan reads 1", "", "schema: 2\n        ^\n"},
    {"CGE011", "unknown key 'rule' in a rule file", "did you mean 'rules'?", "schema: 1\nrule: []\n^\n"},
    {"CGE013", "a rule file must be a map", "", "- schema: 1\n^\n"},
    {"CGE016", "the rules need capturesan 99.0 or newer", "", "schema: 1\nrequires: \">=99.0\"\n          ^\n"},
    {"CGE016", "'requires' is written like", "", "schema: 1\nrequires: \"0.1\"\n          ^\n"},
    {"CGE013", "'lists' must be a map", "", "schema: 1\nlists: [a]\n       ^\n"},
    {"CGE013", "list 'a' must be a list", "", "schema: 1\nlists: {a: b}\n           ^\n"},
    {"CGE013", "an item of list 'a' must be a text", "", "schema: 1\nlists: {a: [[b]]}\n            ^\n"},
    {"CGE013", "'A b' is no name", "", "schema: 1\nlists: {A b: [c]}\n        ^\n"},
    {"CGE025", "'a' is defined twice", "", "schema: 1\nlists: {a: [c]}\nmacros: {a: 'event.in_window'}\n         ^\n"},
    {"CGE013", "macro 'a' must be a text", "", "schema: 1\nmacros: {a: [b]}\n            ^\n"},
    {"CGE025", "macros refer to each other in a circle: $a -> $b -> $a", "",
     "schema: 1\nmacros:\n  a: '$b'\n     ^\n  b: '$a'\n"},
    {"CGE025", "in a circle: $a -> $a", "", "schema: 1\nmacros: {a: '$a'}\n            ^\n"},
    {"CGE012", "unknown field 'event.reslt'", "did you mean 'event.result'?",
     "schema: 1\nmacros: {a: 'event.reslt == 1'}\n             ^\n"},
    {"CGE013", "'rules' must be a list", "", "schema: 1\nrules: {a: b}\n       ^\n"},
    {"CGE013", "a rule must be a map", "", "schema: 1\nrules: [a]\n        ^\n"},
    {"CGE013", "an override must be a map", "", "schema: 1\noverrides: [a]\n            ^\n"},
    {"CGE032", "there is no rule 'MY102' to override", "",
     "schema: 1\noverrides: [{rule: MY102, severity: note}]\n                   ^\n"},
    {"CGE010", "key 'rule' is missing", "", "schema: 1\noverrides: [{severity: note}]\n            ^\n"},
    {"CGE011", "unknown key 'wen' in an override", "",
     "schema: 1\nrules: [{id: MY101, name: n, events: [sync], severity: note, message: m, remediation: r, when: "
     "'event.in_window'}]\n"
     "overrides: [{rule: MY101, wen: b}]\n                          ^\n"},
};

// Key lines inside a rule that is good otherwise.
struct bad_key {
  const char* code;
  const char* message;
  const char* hint;
  const char* drop; // the good key that the line replaces
  const char* line; // with the ^ line
};

const bad_key keys[] = {
    {"CGE014", "'my1' is no rule id", "", "id", "id: my1\n    ^\n"},
    {"CGE014", "'MYRULE' is no rule id", "", "id", "id: MYRULE\n    ^\n"},
    {"CGE014", "'MY12345' is no rule id", "", "id", "id: MY12345\n    ^\n"},
    {"CGE011", "unknown key 'severty' in a rule", "did you mean 'severity'?", "", "severty: error\n^\n"},
    {"CGE011", "unknown key 'condition' in a rule", "keys are:", "", "condition: x\n^\n"},
    {"CGE011", "unknown key 'on' in a rule", "", "", "on: [sync]\n^\n"},
    {"CGE014", "'eror' is no severity", "did you mean 'error'?", "severity", "severity: eror\n          ^\n"},
    {"CGE014", "'critical' is no severity", "use one of: note warning error", "severity",
     "severity: critical\n          ^\n"},
    {"CGE014", "'sure' is no confidence", "use one of", "", "confidence: sure\n            ^\n"},
    {"CGE014", "'synk' is no kind of event", "did you mean 'sync'?", "events", "events: [synk]\n         ^\n"},
    {"CGE013", "'events' must be a list", "", "events", "events: sync\n        ^\n"},
    {"CGE013", "'events' is empty", "", "events", "events: []\n        ^\n"},
    {"CGE014", "'graph.prt' is no thing to walk over", "did you mean 'graph.ptr'?", "", "each: graph.prt\n      ^\n"},
    {"CGE014", "'medium' is no level", "use one of: lite full", "", "level: medium\n       ^\n"},
    {"CGE014", "'maybe' is no truth value", "", "", "enabled: maybe\n         ^\n"},
    {"CGE013", "'message' is empty", "", "message", "message: ''\n         ^\n"},
    {"CGE013", "'message' must be a text", "", "message", "message: [a]\n         ^\n"},
    {"CGE012", "unknown field 'event.ap'", "did you mean 'event.api'?", "message",
     "message: 'it was {event.ap}'\n                  ^\n"},
    {"CGE030", "this '{' is never closed", "", "message", "message: 'it was {event.api'\n                 ^\n"},
    {"CGE030", "this '}' closes nothing", "", "message", "message: 'it was event.api}'\n                          ^\n"},
    {"CGE030", "unknown format 'hexx'", "formats are", "message",
     "message: 'at {event.result|hexx}'\n                           ^\n"},
    {"CGE012", "unknown field 'x'", "", "remediation", "remediation: \"use {x}\"\n                   ^\n"},
    {"CGE012", "unknown field 'event.apii'", "did you mean 'event.api'?", "", "group_by: [event.apii]\n           ^\n"},
    {"CGE013", "'group_by' must be a list", "", "", "group_by: event.api\n          ^\n"},
    {"CGE013", "'tags' must be a list", "", "", "tags: a\n      ^\n"},
    {"CGE013", "'tests' must be a list", "", "", "tests: a\n       ^\n"},
    {"CGE013", "'threshold' must be a map", "", "", "threshold: 3\n           ^\n"},
    {"CGE014", "'at_least' is a number from 1", "", "", "threshold: {at_least: 0}\n                      ^\n"},
    {"CGE010", "key 'at_least' is missing", "", "", "threshold: {per: [event.api]}\n           ^\n"},
    {"CGE011", "unknown key 'atleast' in a threshold", "did you mean 'at_least'?", "",
     "threshold: {at_least: 2, atleast: 3}\n                         ^\n"},
    {"CGE014", "'within' is a time", "", "",
     "threshold: {at_least: 2, within: 5}\n                                 ^\n"},
    {"CGE010", "key 'reason' is missing", "", "", "exceptions: [{id: a, when: 'event.in_window'}]\n             ^\n"},
    {"CGE011", "unknown key 'value' in an exception", "", "",
     "exceptions: [{id: a, reason: b, when: 'event.in_window', value: c}]\n                                            "
     "             ^\n"},
    {"CGE014", "'soon' is no date", "YYYY-MM-DD", "",
     "exceptions: [{id: a, reason: b, when: 'event.in_window', expires: soon}]\n                                       "
     "                           ^\n"},
    {"CGE014", "'2027-13-01' is no date", "", "",
     "exceptions: [{id: a, reason: b, when: 'event.in_window', expires: 2027-13-01}]\n                                 "
     "                                 ^\n"},
    {"CGE010", "key 'when' is missing", "", "", "variants: [{severity: note}]\n           ^\n"},
    {"CGE012", "unknown field 'mem.knd'", "did you mean 'mem.kind'?", "",
     "variants: [{when: 'mem.knd == device'}]\n                   ^\n"},
    {"CGE020", "expected", "", "",
     "exceptions: [{id: a, reason: b, when: 'event.in_window and'}]\n                                                  "
     "        ^\n"},
};

std::string rule_with(const bad_key& k) {
  const std::pair<const char*, const char*> good[] = {
      {"id", "id: MY101"},
      {"name", "name: mine"},
      {"events", "events: [sync]"},
      {"when", "when: 'event.result == 1'"},
      {"severity", "severity: error"},
      {"message", "message: 'm'"},
      {"remediation", "remediation: 'r'"},
  };
  std::string text = "schema: 1\nrules:\n  -\n";
  for (const auto& [key, line] : good)
    if (std::string(key) != k.drop) text += std::string("    ") + line + "\n";
  std::istringstream in(k.line);
  std::string line;
  while (std::getline(in, line)) text += "    " + line + "\n";
  return text;
}

} // namespace

TEST_CASE("bad rule files: YAML and structure") {
  for (const auto& c : cases) check(c);
}

TEST_CASE("bad rule files: keys of a rule") {
  for (const auto& k : keys) {
    const std::string text = rule_with(k);
    check({k.code, k.message, k.hint, text.c_str()});
  }
}

TEST_CASE("a missing key is reported at the rule, each one") {
  for (const char* missing : {"id", "name", "events", "when", "severity", "message", "remediation"}) {
    bad_key k{"CGE010", "", "", missing, ""};
    auto set = rule_set::parse("bad.yaml", rule_with(k));
    INFO(missing);
    REQUIRE_FALSE(set);
    REQUIRE(set.problems().size() == 1);
    CHECK(set.problems()[0].message.find("key '" + std::string(missing) + "' is missing") == 0);
    CHECK(set.problems()[0].at.line == 4);
    CHECK(set.problems()[0].at.column == 5);
  }
}

TEST_CASE("bad conditions") {
  const auto bad = [](const char* code, const char* message, const char* hint, const std::string& when,
                      std::size_t at) { check_condition(code, message, hint, when, at); };
  // ---- syntax ----
  bad("CGE020", "expected", "", "", 0);
  bad("CGE020", "expected", "", "and", 0);
  bad("CGE020", "expected", "", "event.in_window and", 19);
  bad("CGE020", "expected", "", "event.in_window or or event.in_window", 19);
  bad("CGE020", "expected 'and', 'or' or the end", "equality is written ==", "event.result = 1", 13);
  bad("CGE020", "expected 'and', 'or' or the end", "write 'and'", "event.in_window && event.in_window", 16);
  bad("CGE020", "expected 'and', 'or' or the end", "write 'or'", "event.in_window || event.in_window", 16);
  bad("CGE020", "expected 'and', 'or' or the end", "", "event.in_window event.in_window", 16);
  bad("CGE020", "expected ')'", "", "(event.in_window", 16);
  bad("CGE020", "expected 'and', 'or' or the end", "", "event.in_window)", 15);
  bad("CGE020", "expected a value", "", "event.result ==", 15);
  bad("CGE020", "expected [a list] or $list", "", "event.result in 900", 16);
  bad("CGE020", "expected ',' or ']'", "", "event.result in [900 901]", 21);
  bad("CGE020", "expected a value", "", "event.result in [900,]", 21);
  bad("CGE020", "expected a value", "", "event.result in []", 17);
  bad("CGE020", "expected '('", "", "exists graph.id", 7);
  bad("CGE020", "expected a field", "", "exists(1)", 7);
  bad("CGE020", "expected a name after $", "", "$", 1);
  bad("CGE020", "expected a closing quote", "", "event.api == \"x", 15);
  bad("CGE020", "expected", "", "!event.in_window", 0);
  bad("CGE020", "expected", "", "900 == event.result", 0);
  // ---- names ----
  bad("CGE012", "unknown field 'event.apj'", "did you mean 'event.api'?", "event.apj == \"x\"", 0);
  bad("CGE012", "unknown field 'foo.bar'", "capturesan rules fields", "foo.bar == 1", 0);
  bad("CGE012", "unknown field 'graph.rpelay'", "did you mean 'graph.replay'?", "exists(graph.rpelay)", 7);
  bad("CGE012", "unknown field 'event.clas'", "did you mean 'event.class'?", "event.in_window and event.clas == sync",
      20);
  bad("CGE024", "unknown macro '$god'", "did you mean '$good'?", "$god", 0);
  bad("CGE024", "unknown macro '$apis'", "this is a list", "$apis", 0);
  bad("CGE024", "unknown list '$apsi'", "did you mean '$apis'?", "event.api in $apsi", 13);
  // ---- types ----
  bad("CGE022", "'event.api' is a text, not a condition", "", "event.api", 0);
  bad("CGE022", "'event.result' is a result, not a condition", "", "not event.result", 4);
  bad("CGE022", "cannot be compared", "text is written in double quotes", "event.api == cuInit", 13);
  bad("CGE022", "cannot be compared", "text is written in double quotes", "event.api == 12", 13);
  bad("CGE022", "cannot be compared", "a number or a CUDA_ERROR_ name", "event.result == \"900\"", 16);
  bad("CGE022", "cannot be compared", "a number or a CUDA_ERROR_ name", "event.result == CUDA_EROR", 16);
  bad("CGE022", "cannot be compared", "true or false", "event.in_window == 1", 19);
  bad("CGE022", "cannot be compared", "a time", "event.duration > 20", 17);
  bad("CGE022", "cannot be compared", "a time", "event.duration > 4KiB", 17);
  bad("CGE022", "cannot be compared", "a number", "exists(graph.id) and graph.replay > 4KiB", 36);
  bad("CGE022", "cannot be compared", "a size", "mem.size > 20us", 11);
  bad("CGE022", "cannot be compared", "its words are", "event.class == \"sync\"", 15);
  bad("CGE022", "this operator does not apply", "", "event.class < sync", 0);
  bad("CGE022", "this operator does not apply", "", "event.result glob \"9*\"", 0);
  bad("CGE022", "this operator does not apply", "", "event.api < \"x\"", 0);
  // ---- words, numbers, patterns ----
  bad("CGE021", "'synk' is no word of 'event.class'", "did you mean 'sync'?", "event.class == synk", 15);
  bad("CGE021", "'xyz' is no word of 'thread.mode'", "its words are: global thread_local relaxed",
      "thread.mode in [global, xyz]", 24);
  bad("CGE021", "'cuInit' is no word of 'event.class'", "", "event.class in $apis", 15);
  bad("CGE028", "unknown unit 'KB'", "units are", "mem.size > 4KB", 11);
  bad("CGE028", "this number is too large", "", "event.result == 99999999999999999999", 16);
  bad("CGE023", "not a regular expression", "", "event.api matches \"(\"", 18);
  // ---- meaning ----
  bad("CGE026", "'and' and 'or' are mixed", "put parentheses", "event.in_window or event.in_window and event.in_window",
      19);
  bad("CGE027", "'graph.replay' may be absent", "exists(graph.replay)", "not graph.replay > 1", 4);
  bad("CGE027", "'capture.mode' may be absent", "", "event.in_window and not (capture.mode == global)", 25);
  bad("CGE029", "nested too deeply", "", std::string(65, '(') + "event.in_window" + std::string(65, ')'), 64);
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
