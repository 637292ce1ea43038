// The fields of fields.def: what a rule may look at, with type and words.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace capturesan {

enum class field_id : std::uint8_t {
#define FIELD(id, name, type, words, group, needs, doc) id,
#include "analyzer/fields.def"
  count,
};

enum class field_type : std::uint8_t { boolean, number, size, duration, text, address, word, result };

// Fields of one group are present together or not at all.
enum class field_group : std::uint8_t {
  always,
  capture,
  ended,
  fork,
  graph,
  param,
  text,
  dropped,
  escaped,
  first_use,
  abandoned,
  gmem,
  build,
  code,
  copy,
};

struct field_row {
  std::string_view name;
  field_type type;
  field_group group;
  std::string_view needs, doc;
};

const field_row& info(field_id id);
std::optional<field_id> field_by_name(std::string_view name);
std::span<const std::string_view> words_of(field_id id); // empty unless it is a word field
std::string_view to_string(field_type t);
std::string with_article(field_type t); // "an int", for messages
std::vector<std::string_view> field_names();

// Kinds of events a rule may ask for: the call classes of the trace, then what only the analyzer knows.
enum class event_kind : std::uint8_t {}; // below trace::class_count a trace::call_class
inline constexpr std::string_view own_event_names[] = {
    "trace_lost",          "uncovered",    "deepbind",          "unsupported",   "cupti_held",
    "capture_unexplained", "suppression",  "operation_dropped", "work_escaped",  "first_use",
    "capture_abandoned",   "graph_memory", "build_failed",      "code_unloaded", "pageable_copy"};
enum class own_event : std::uint8_t {
  trace_lost,
  uncovered,
  deepbind,
  unsupported,
  cupti_held,
  capture_unexplained,
  suppression,
  // notices (notice.h)
  operation_dropped,
  work_escaped,
  first_use,
  capture_abandoned,
  graph_memory,
  build_failed,
  code_unloaded,
  pageable_copy,
  count,
};
std::span<const std::string_view> event_kind_names();
std::size_t event_kind_count();
event_kind kind_of(own_event e);

// The nearest of the words to a misspelt one; empty if none is near (distance above max(1, length / 3)).
std::string did_you_mean(std::string_view word, std::span<const std::string_view> words);

} // namespace capturesan
