// Rule files as the command line sees them: load, list, run the tests inside them. One thread; nothing prints or
// throws.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/finding.h"
#include "analyzer/result.h"

namespace capturesan {

struct rule_info {
  std::string id, name;
  severity sev = severity::error;
  confidence conf = confidence::likely;
  bool enabled = true;
  std::string level;                                     // lite | full: the least trace level the rule needs
  std::vector<std::string> events;                       // call classes it looks at
  std::string each;                                      // what it walks over per event; empty = the event itself
  std::string when;                                      // its condition, as written
  std::vector<std::pair<std::string, std::string>> uses; // macros and lists it names, directly or not, with their text
  std::string description, message, remediation, doc, since;
  std::vector<std::string> tags, group_by;
  std::size_t tests = 0;
  source_position at; // of its `id`
};

// Outcome of one inline test.
struct rule_test_result {
  std::string rule, test;
  bool passed = false;
  bool todo = false;    // expected to fail; passed = it failed as announced
  std::string expected; // in words
  std::string found;    // in words
  source_position at;   // of the test
};

// A field that a condition or template may name.
struct field_info {
  std::string name;
  std::string type;               // bool | int | size | time | text | address | word | result
  std::vector<std::string> words; // of a `word` field
  bool optional = false;          // may be absent; then `exists()` tells
  std::string needs;              // what must be in the trace for it: empty, "full" (level) or "cupti"
  std::string doc;
};

struct compiled_rules; // rule.h

class rule_set {
 public:
  // Reads rule files in order. Fails with every problem of every file.
  static result<rule_set> load(const std::vector<std::string>& files);
  // The same from text; `name` stands for the file in messages.
  static result<rule_set> parse(const std::string& name, const std::string& text);

  rule_set(rule_set&&) noexcept;
  rule_set& operator=(rule_set&&) noexcept;
  ~rule_set();

  // In order of id.
  std::vector<rule_info> list() const;
  // What is no error but deserves a look, such as an unused macro.
  const std::vector<problem>& warnings() const;
  // What only `rules lint` and `rules test` look at: errors (CGE) in the inline tests, and what deserves a look (CGW).
  // In order of files and places.
  std::vector<problem> lint() const;
  // A problem or warning about a rule as a whole, at its id.
  problem about(const std::string& rule_id, std::string code, std::string message, std::string hint) const;
  // Runs the inline tests of all rules, or of one.
  std::vector<rule_test_result> test(const std::string& only_rule = {}) const;

  const compiled_rules& compiled() const;

 private:
  explicit rule_set(std::unique_ptr<compiled_rules> rules);
  std::unique_ptr<compiled_rules> rules_;
};

// Every field, in the order of fields.def.
std::vector<field_info> list_fields();

// `file:line:column: error[CODE]: message`, the line, a caret and the hint: how problems of rule files are shown.
std::string to_text(const problem& p);

} // namespace capturesan
