// `rules fields` and `rules new`.
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "analyzer/cli/exit_code.h"
#include "analyzer/cli/installation.h"
#include "analyzer/cli/options.h"
#include "analyzer/cli/rules.h"

namespace capturesan::cli {

namespace {

std::string line_of(const field_info& f) {
  std::string text = fmt::format("{:<24} {:<9} {}", f.name, f.type, f.doc);
  if (!f.words.empty()) text += fmt::format(" ({})", fmt::join(f.words, " "));
  if (f.optional) text += "; may be absent";
  if (!f.needs.empty()) text += fmt::format("; needs {}", f.needs);
  return text + '\n';
}

nlohmann::ordered_json object_of(const field_info& f) {
  nlohmann::ordered_json o;
  o["name"] = f.name;
  o["type"] = f.type;
  if (!f.words.empty()) o["words"] = f.words;
  o["optional"] = f.optional;
  if (!f.needs.empty()) o["needs"] = f.needs;
  o["doc"] = f.doc;
  return o;
}

// {{ and }} are the braces of the rule itself.
constexpr std::string_view skeleton = R"(# yaml-language-server: $schema={schema}
# How rules are written: docs/writing-rules.md. What they may ask for: capturesan rules fields
schema: 1
requires: ">=0.1"

rules:
  - id: {id}
    name: {name}
    description: What went wrong when this rule finds something.
    # Kinds of calls it looks at; `any` is every call. docs/calls.md says which call is of which kind.
    events: [sync]
    # When it finds something. Fields are compared with ==, !=, <, in, glob, matches and joined with and, or, not.
    when: 'event.result == CUDA_ERROR_UNKNOWN'
    severity: warning # error, warning or note
    # proved: it cannot be otherwise; likely; suspected: shown on demand only, never changes the exit code.
    confidence: likely
    # What happened and what to do; fields stand in braces.
    message: '{{event.api}} answered {{event.result}} on thread {{thread.name}}'
    remediation: 'What to do about it.'
    tags: [mine]
    tests:
      # Red until `when` is true for the events below. Make them yours: capturesan dump TRACE shows those of a program.
      - name: the fault is found
        given:
          - {{call: cuStreamCreate, stream: s1}}
          - {{call: cuStreamSynchronize, stream: s1, result: CUDA_ERROR_ILLEGAL_ADDRESS}}
        expect: {{findings: 1, at: 2}}
      # What looks alike and is fine.
      - name: a wait that succeeds is fine
        given:
          - {{call: cuStreamCreate, stream: s1}}
          - {{call: cuStreamSynchronize, stream: s1}}
        expect: none
)";

} // namespace

int rules_fields(const std::string& prefix, bool json) {
  std::string text;
  auto all = nlohmann::ordered_json::array();
  std::vector<std::string> names;
  for (const field_info& f : list_fields()) {
    names.push_back(f.name);
    if (!f.name.starts_with(prefix)) continue;
    text += line_of(f);
    all.push_back(object_of(f));
  }
  if (all.empty()) {
    const std::string near = did_you_mean(prefix, std::vector<std::string_view>(names.begin(), names.end()));
    return refuse_rules(fmt::format("no field begins with '{}'", prefix),
                        near.empty() ? "see capturesan rules fields" : fmt::format("did you mean {}?", near));
  }
  return put(json ? all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n" : text);
}

int rules_new(const std::string& id, const std::string& name) {
  const auto word = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  if (name.empty() || !std::all_of(name.begin(), name.end(), word))
    return refuse_rules(fmt::format("'{}' is no rule name", name), "use small letters, digits and dashes");
  const std::string text =
      fmt::format(fmt::runtime(skeleton), fmt::arg("schema", installed().rules + "/capturesan-rules-1.schema.json"),
                  fmt::arg("id", id), fmt::arg("name", name));
  // The loader says what an id looks like.
  const auto read = rule_set::parse("new rule", text);
  if (!read) return refuse_rules(read.problems().front().message, read.problems().front().hint);
  return put(text);
}

} // namespace capturesan::cli
