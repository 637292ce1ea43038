// The keys of rule files (rule_keys.def): the loader checks files against them, the JSON Schema and the docs are made
// of them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace capturesan {

enum class rule_object : std::uint8_t {
#define RULE_OBJECT(kind, words) kind,
#include "analyzer/rule_keys.def"
  none,
};

enum class word_set : std::uint8_t {
#define WORD_SET(name, what, ...) name,
#include "analyzer/rule_keys.def"
  none,
};

enum class key_shape : std::uint8_t {
  text,
  message,
  condition,
  word,
  number,
  date,
  duration,
  schema,
  version,
  rule_id,
  texts,
  fields,
  events,
  object,
  objects,
  lists,
  macros,
  expectation,
  value,
  values,
  statuses,
};

struct rule_key {
  rule_object in;
  std::string_view name;
  bool required;
  key_shape shape;
  word_set words;     // of a word
  rule_object object; // of object, objects and expectation
  std::string_view doc;
};

std::span<const rule_key> rule_keys();                          // all, in order
std::vector<const rule_key*> keys_of(rule_object o);            // in order
const rule_key* find_key(rule_object o, std::string_view name); // null if there is none
std::string_view name_of(rule_object o);                        // "a rule"
std::string_view name_of(word_set s);                           // "severity"
std::span<const std::string_view> words_of(word_set s);

} // namespace capturesan
