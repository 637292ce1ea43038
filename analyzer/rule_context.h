// What the parts of the rule loader share: the file at hand, the problems so far, and the check of a map against
// rule_keys.def.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzer/condition.h"
#include "analyzer/rule_keys.h"
#include "analyzer/yaml_tree.h"

namespace capturesan {

class rule_context {
 public:
  const yaml_document* doc = nullptr;
  std::string where; // "rule MY101", for messages; empty outside of rules

  void fail(const yaml_node& n, std::string code, std::string message, std::string hint = {});
  void add(problem p);
  // Problems of a condition or template that is the scalar `n`, the value of `key`.
  void report(const yaml_node& n, const std::vector<condition_problem>& found, const std::string& key);
  // `n` is what begins at its place, not its whole text.
  bool expect(const yaml_node& n, yaml_node::kind type, const std::string& what);
  std::optional<std::size_t> word(const yaml_node& n, std::span<const std::string_view> words, std::string_view what);

  // Keys and plain values of a map and of the maps in it; conditions, templates and events of tests are read by others.
  // False if it is no map.
  bool check(const yaml_node& n, rule_object o);

  // There are so many problems that further ones are counted only: looking for hints is in vain.
  bool full() const;
  bool failed() const { return !problems_.empty(); }
  // In order of files and places; what is beyond the first 100 is counted only.
  std::vector<problem> take_problems();

 private:
  void check_value(const yaml_node& n, const rule_key& k);
  void check_text(const yaml_node& n, const rule_key& k);
  void check_items(const yaml_node& n, const rule_key& k);
  void check_expectation(const yaml_node& n, const rule_key& k);

  std::vector<problem> problems_;
  std::size_t more_ = 0;
};

// The value of a key that rule_context::check has found good; `otherwise` if the key is missing or its value was bad.
std::string text_of(const yaml_node* n);
std::optional<std::size_t> word_of(const yaml_node* n, word_set s);
std::optional<std::uint64_t> number_of(const yaml_node& n);
std::optional<std::int64_t> duration_of(const yaml_node& n); // ns
std::vector<field_id> fields_of(const yaml_node* n);

} // namespace capturesan
