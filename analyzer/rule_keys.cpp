#include "analyzer/rule_keys.h"

namespace capturesan {

namespace {

// Turns the column `of` into the two things it may stand for.
struct of {
  word_set words = word_set::none;
  rule_object object = rule_object::none;
};

constexpr of of_column(key_shape shape, std::string_view name) {
  if (shape == key_shape::word) {
#define WORD_SET(set, what, ...)                                                                                       \
  if (name == #set) return {word_set::set, rule_object::none};
#include "analyzer/rule_keys.def"
  }
#define RULE_OBJECT(kind, words)                                                                                       \
  if (name == #kind) return {word_set::none, rule_object::kind};
#include "analyzer/rule_keys.def"
  return {};
}

constexpr bool required = true, optional = false;

constexpr rule_key table[] = {
#define KEY(owner, name, need, shape, column, doc)                                                                     \
  {rule_object::owner,                                                                                                 \
   name,                                                                                                               \
   need,                                                                                                               \
   key_shape::shape,                                                                                                   \
   of_column(key_shape::shape, #column).words,                                                                         \
   of_column(key_shape::shape, #column).object,                                                                        \
   doc},
#include "analyzer/rule_keys.def"
};

#define WORD_SET(set, what, ...) constexpr std::string_view set##_words[] = {__VA_ARGS__};
#include "analyzer/rule_keys.def"

} // namespace

std::span<const rule_key> rule_keys() { return table; }

std::vector<const rule_key*> keys_of(rule_object o) {
  std::vector<const rule_key*> out;
  for (const auto& k : table)
    if (k.in == o) out.push_back(&k);
  return out;
}

const rule_key* find_key(rule_object o, std::string_view name) {
  for (const auto& k : table)
    if (k.in == o && k.name == name) return &k;
  return nullptr;
}

std::string_view name_of(rule_object o) {
  constexpr std::string_view names[] = {
#define RULE_OBJECT(kind, words) words,
#include "analyzer/rule_keys.def"
  };
  return names[static_cast<std::size_t>(o)];
}

std::string_view name_of(word_set s) {
  constexpr std::string_view names[] = {
#define WORD_SET(set, what, ...) what,
#include "analyzer/rule_keys.def"
  };
  return names[static_cast<std::size_t>(s)];
}

std::span<const std::string_view> words_of(word_set s) {
  switch (s) {
#define WORD_SET(set, what, ...)                                                                                       \
  case word_set::set:                                                                                                  \
    return set##_words;
#include "analyzer/rule_keys.def"
  case word_set::none:
    break;
  }
  return {};
}

} // namespace capturesan
