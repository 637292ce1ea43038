// A condition of a rule as a typed tree. Made by parse_condition (syntax) and check_condition (types); evaluated
// against a subject.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/fields.h"
#include "analyzer/result.h"

namespace capturesan {

enum class comparison : std::uint8_t {
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in,
  glob,
  matches,
  starts_with,
};

class pattern; // pattern.h

// A value as written: "s", 12, 4KiB, 20us, true, a bare word.
struct literal {
  enum class kind : std::uint8_t { text, number, size, duration, boolean, word };
  kind type = kind::number;
  std::string text; // as written; the characters of a text
  std::int64_t number = 0;
  std::size_t at = 0, length = 0; // in the condition
};

struct expr {
  enum class kind : std::uint8_t { all_of, any_of, negation, compare, exists, truth, macro };
  kind type = kind::truth;
  std::vector<std::unique_ptr<expr>> children; // of all_of, any_of, negation
  std::string name;                            // field or macro, as written
  field_id field = field_id::count;
  comparison op = comparison::equal;
  std::vector<literal> values;             // right side; more than one for in
  std::string list;                        // `in $list`, before it is replaced by values
  std::shared_ptr<const pattern> compiled; // of glob and matches
  bool grouped = false;                    // written in parentheses
  std::size_t at = 0, length = 0;          // in the condition

  std::unique_ptr<expr> clone() const;
};

// A problem at a place of the condition's text.
struct condition_problem {
  std::size_t at = 0, length = 1;
  std::string code, message, hint;
};

// What is wrong with a field that never has a value in a rule, and what would give it one.
std::string never_there(field_id f);
std::string how_to_have(field_id f);

// Syntax only. Fails with one problem.
std::unique_ptr<expr> parse_condition(std::string_view text, std::vector<condition_problem>& problems);

// What a condition may refer to besides fields.
struct condition_scope {
  std::function<const expr*(const std::string& name, std::size_t at)> macro; // null if unknown; must be checked already
  std::function<const std::vector<literal>*(const std::string& name)> list;
  std::span<const std::string_view> macro_names, list_names;
  std::set<field_group> present; // groups that are there whenever the condition is evaluated
  std::set<field_group> never;   // groups that never are, for what the rule walks over
};

// Types, words, patterns, absent fields; replaces macros and lists by what they stand for. Adds every problem it finds.
void check_condition(std::unique_ptr<expr>& e, const condition_scope& scope, std::vector<condition_problem>& problems);

// A value of a field for one subject.
struct field_value {
  bool present = false;
  std::int64_t number = 0; // bool, word index, number
  std::string_view text;
};

class field_source {
 public:
  virtual ~field_source() = default;
  virtual field_value get(field_id id) const = 0;
};

bool holds(const expr& e, const field_source& s);

// False if the condition cannot hold for a call that answered 0, whatever else is true.
bool possible_if_ok(const expr& e);

} // namespace capturesan
