#include "analyzer/fields.h"

#include <algorithm>
#include <numeric>

#include "analyzer/rule_set.h"
#include "trace/call.h"

namespace capturesan {

namespace {

constexpr field_row rows[] = {
#define FIELD(id, name, type, words, group, needs, doc) {name, field_type::type, field_group::group, needs, doc},
#include "analyzer/fields.def"
};

#define WORDS(name, ...) constexpr std::string_view words_##name[] = {__VA_ARGS__};
#include "analyzer/fields.def"

const std::vector<std::string_view>& event_names() {
  static const auto names = [] {
    std::vector<std::string_view> n;
    for (const auto& c : trace::class_table) n.push_back(c.name);
    n.insert(n.end(), std::begin(own_event_names), std::end(own_event_names));
    return n;
  }();
  return names;
}

// Makes `words_classes` and `words_none` look like the arrays of the list above.
std::span<const std::string_view> words(field_id id) {
  const std::span<const std::string_view> words_classes(event_names());
  const std::span<const std::string_view> words_none;
  switch (id) {
#define FIELD(field, name, type, set, group, needs, doc)                                                               \
  case field_id::field:                                                                                                \
    return words_##set;
#include "analyzer/fields.def"
  case field_id::count:
    break;
  }
  return {};
}

// Damerau-Levenshtein, neighbours exchanged count as one step.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  std::iota(d[0].begin(), d[0].end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

} // namespace

const field_row& info(field_id id) { return rows[static_cast<std::size_t>(id)]; }

std::optional<field_id> field_by_name(std::string_view name) {
  for (std::size_t i = 0; i < std::size(rows); ++i)
    if (rows[i].name == name) return static_cast<field_id>(i);
  return std::nullopt;
}

std::span<const std::string_view> words_of(field_id id) { return words(id); }

std::string_view to_string(field_type t) {
  constexpr std::string_view names[] = {"bool", "int", "size", "time", "text", "address", "word", "result"};
  return names[static_cast<std::size_t>(t)];
}

std::string with_article(field_type t) {
  const std::string_view name = to_string(t);
  return (std::string_view("aeiou").find(name.front()) == std::string_view::npos ? "a " : "an ") + std::string(name);
}

std::vector<std::string_view> field_names() {
  std::vector<std::string_view> out;
  for (const auto& r : rows) out.push_back(r.name);
  return out;
}

std::span<const std::string_view> event_kind_names() { return event_names(); }
std::size_t event_kind_count() { return event_names().size(); }
event_kind kind_of(own_event e) { return static_cast<event_kind>(trace::class_count + static_cast<std::size_t>(e)); }

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  if (word.size() > 64) return {};
  std::size_t best = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::string found;
  for (const auto c : candidates) {
    const std::size_t d = distance(word, c);
    if (d < best) {
      best = d;
      found = c;
    }
  }
  return found;
}

std::vector<field_info> list_fields() {
  std::vector<field_info> out;
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    const field_row& r = rows[i];
    field_info f;
    f.name = r.name;
    f.type = to_string(r.type);
    const auto w = words(static_cast<field_id>(i));
    f.words.assign(w.begin(), w.end());
    f.optional = r.group != field_group::always;
    f.needs = r.needs;
    f.doc = r.doc;
    out.push_back(std::move(f));
  }
  return out;
}

} // namespace capturesan
