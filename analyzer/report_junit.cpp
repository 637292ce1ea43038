// JUnit XML: one suite for the trace, one case for each rule, one for the trace itself and one for the program. The
// file is red exactly when the exit code is not 0.
#include <fmt/format.h>
#include <map>
#include <pugixml.hpp>
#include <sstream>

#include "analyzer/report_places.h"

namespace capturesan {

namespace {

constexpr std::size_t most_listed = 200; // findings of one rule
constexpr std::size_t most_suite_bytes = 120;

struct totals {
  int tests = 0, failures = 0, errors = 0, skipped = 0;
};

// Everything that goes into the file is printable already: XML knows no control characters, not even escaped ones.
pugi::xml_node add_case(pugi::xml_node suite, totals& count, const std::string& classname, const std::string& name) {
  pugi::xml_node test = suite.append_child("testcase");
  test.append_attribute("classname") = classname.c_str();
  test.append_attribute("name") = name.c_str();
  test.append_attribute("time") = "0";
  ++count.tests;
  return test;
}

void add_result(pugi::xml_node test, const char* kind, const std::string& type, const std::string& message,
                const std::string& text = {}) {
  pugi::xml_node result = test.append_child(kind);
  if (!type.empty()) result.append_attribute("type") = type.c_str();
  result.append_attribute("message") = message.c_str();
  if (!text.empty()) result.text() = text.c_str();
}

std::string text_of(const finding& found, const report_data& data) {
  std::string text = fmt::format("{}: {}", name_of(found.sev), message_of(found));
  if (found.count > 1) text += fmt::format(" ({} times)", found.count);
  if (const stack_frame* frame = best_frame(found, data.root)) {
    const source_place place = place_of(frame, data);
    text += fmt::format("\n  in {}", frame_name(*frame));
    if (frame->line > 0) text += fmt::format(" at {}:{}", printable(place.path), place.line);
  }
  if (const std::string fix = fix_of(found); !fix.empty()) text += "\n  fix: " + fix;
  return text + fmt::format("\n  fingerprint {}\n", printable(found.fingerprint, most_name_bytes));
}

void add_rule(pugi::xml_node suite, totals& count, const rule_status& rule, const std::vector<const finding*>& findings,
              const report_data& data) {
  const std::string id = printable(rule.id, most_name_bytes);
  pugi::xml_node test =
      add_case(suite, count, "capturesan." + id, fmt::format("{} {}", id, printable(rule.name, most_name_bytes)));
  std::string failed, other;
  std::size_t failures = 0, listed = 0;
  const finding* first = nullptr;
  for (const finding* found : findings) {
    const bool fails = found->conf > confidence::suspected && found->sev >= data.fail_on;
    failures += fails ? 1 : 0;
    if (fails && !first) first = found;
    if (++listed <= most_listed) (fails ? failed : other) += text_of(*found, data);
  }
  if (listed > most_listed) (first ? failed : other) += fmt::format("{} more are not listed\n", listed - most_listed);
  if (first) {
    ++count.failures;
    add_result(test, "failure", id,
               failures == 1 ? message_of(*first) : fmt::format("{} findings, first: {}", failures, message_of(*first)),
               failed);
  } else if (findings.empty() && (!rule.evaluated || data.summary.events == 0)) {
    ++count.skipped;
    add_result(test, "skipped", "",
               data.summary.events == 0 ? "nothing was captured" : "not evaluated: " + printable(rule.why_not));
  }
  if (!other.empty()) test.append_child("system-out").text() = other.c_str();
}

// What keeps the result from being a whole one, and the program's own end.
void add_session(pugi::xml_node suite, totals& count, const report_data& data) {
  pugi::xml_node trace = add_case(suite, count, "capturesan", "complete trace");
  const bool fatal = data.exit_reason == "incomplete" || data.exit_reason == "nothing-captured" ||
                     data.exit_reason == "internal-error";
  if (fatal) {
    ++count.errors;
    add_result(trace, "error", data.exit_reason, last_line(data));
  } else if (verdict_of(data) == verdict::incomplete || verdict_of(data) == verdict::nothing_captured) {
    ++count.skipped;
    add_result(trace, "skipped", "", last_line(data));
  }
  if (!data.child_exit) return;
  pugi::xml_node program = add_case(suite, count, "capturesan", "program");
  if (*data.child_exit == 0) return;
  const std::string text = fmt::format("the program ended with {}", *data.child_exit);
  if (data.exit_reason == "child") {
    ++count.errors;
    add_result(program, "error", "exit", text);
  } else {
    program.append_child("system-out").text() = text.c_str();
  }
}

// What was run: it stays the same from run to run, as the name of the trace does not.
std::string suite_name(const report_data& data) {
  std::string name;
  for (const std::string& word : data.command) name += (name.empty() ? "" : " ") + word;
  if (name.empty()) name = data.trace.substr(data.trace.rfind('/') + 1); // npos + 1 = 0
  return printable(name.empty() ? "trace" : name, most_suite_bytes);
}

void add_counts(pugi::xml_node node, const totals& count) {
  node.append_attribute("tests") = count.tests;
  node.append_attribute("failures") = count.failures;
  node.append_attribute("errors") = count.errors;
  node.append_attribute("skipped") = count.skipped;
  node.append_attribute("time") = "0";
}

} // namespace

std::string write_junit(const report_data& data, const report_style&) {
  std::map<std::string, std::vector<const finding*>> by_rule;
  for (const finding* found : shown_findings(data)) by_rule[found->rule].push_back(found);

  pugi::xml_document document;
  pugi::xml_node declaration = document.append_child(pugi::node_declaration);
  declaration.append_attribute("version") = "1.0";
  declaration.append_attribute("encoding") = "UTF-8";
  pugi::xml_node root = document.append_child("testsuites");
  root.append_attribute("name") = "capturesan";
  pugi::xml_node suite = root.append_child("testsuite");
  suite.append_attribute("name") = suite_name(data).c_str();
  totals count;
  for (const rule_status& rule : data.summary.rules) {
    add_rule(suite, count, rule, by_rule[rule.id], data);
    by_rule.erase(rule.id);
  }
  for (const auto& [id, findings] : by_rule) {
    rule_status rule;
    rule.id = id;
    rule.name = findings.front()->name;
    add_rule(suite, count, rule, findings, data);
  }
  add_session(suite, count, data);
  suite.append_child("system-out").text() = last_line(data).c_str();
  add_counts(suite, count);
  add_counts(root, count);
  std::ostringstream out;
  document.save(out, "  ", pugi::format_indent, pugi::encoding_utf8);
  return out.str();
}

} // namespace capturesan
