#include "analyzer/rule_context.h"

#include <algorithm>
#include <charconv>
#include <tuple>

namespace capturesan {

namespace {

using kind = yaml_node::kind;

constexpr std::size_t most_problems = 100;

std::string list(std::span<const std::string_view> words) {
  std::string out;
  for (const auto w : words) out += (out.empty() ? "" : " ") + std::string(w);
  return out;
}

bool is_date(const std::string& s) {
  if (s.size() != 10 || s[4] != '-' || s[7] != '-') return false;
  for (const std::size_t i : {0, 1, 2, 3, 5, 6, 8, 9})
    if (s[i] < '0' || s[i] > '9') return false;
  const int year = std::stoi(s.substr(0, 4)), month = std::stoi(s.substr(5, 2)), day = std::stoi(s.substr(8, 2));
  constexpr int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (month < 1 || month > 12 || day < 1) return false;
  const bool leap = month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return day <= days[month - 1] + (leap ? 1 : 0);
}

} // namespace

// ---- problems ----

bool rule_context::full() const { return problems_.size() >= most_problems; }

void rule_context::add(problem p) {
  if (full()) {
    ++more_;
  } else {
    problems_.push_back(std::move(p));
  }
}

void rule_context::fail(const yaml_node& n, std::string code, std::string message, std::string hint) {
  if (full()) {
    ++more_;
    return;
  }
  if (!where.empty()) message += " (" + where + ")";
  add(doc->error(n, std::move(code), std::move(message), std::move(hint)));
}

void rule_context::report(const yaml_node& n, const std::vector<condition_problem>& found, const std::string& key) {
  if (full()) {
    more_ += found.size();
    return;
  }
  for (const auto& p : found) {
    std::string message = p.message;
    message += where.empty() ? " (" + key + ")" : " (" + where + ", key '" + key + "')";
    add(doc->error_in(n, p.at, p.code, message, p.hint, static_cast<int>(p.length)));
  }
}

std::vector<problem> rule_context::take_problems() {
  std::vector<std::string> files; // they keep their order
  for (const auto& p : problems_)
    if (std::find(files.begin(), files.end(), p.at.file) == files.end()) files.push_back(p.at.file);
  const auto place = [&](const problem& p) {
    return std::tuple(std::find(files.begin(), files.end(), p.at.file) - files.begin(), p.at.line, p.at.column);
  };
  std::stable_sort(problems_.begin(), problems_.end(),
                   [&](const problem& a, const problem& b) { return place(a) < place(b); });
  if (more_ > 0) {
    problem p;
    p.at.file = problems_.back().at.file;
    p.code = "CGE009";
    p.message = std::to_string(more_) + " further problems are not shown";
    problems_.push_back(std::move(p));
  }
  return std::move(problems_);
}

// ---- checks of single values ----

bool rule_context::expect(const yaml_node& n, kind type, const std::string& what) {
  if (n.type == type) return true;
  fail(n, "CGE013",
       what + (type == kind::map        ? " must be a map"
               : type == kind::sequence ? " must be a list"
                                        : " must be a text"));
  return false;
}

std::optional<std::size_t> rule_context::word(const yaml_node& n, std::span<const std::string_view> words,
                                              std::string_view what) {
  if (n.type != kind::scalar) {
    fail(n, "CGE013", "a " + std::string(what) + " must be one word", "use one of: " + list(words));
    return std::nullopt;
  }
  const auto it = std::find(words.begin(), words.end(), n.text);
  if (it != words.end()) return static_cast<std::size_t>(it - words.begin());
  const std::string near = full() ? "" : did_you_mean(n.text, words);
  fail(n, "CGE014", "'" + n.text + "' is no " + std::string(what),
       near.empty() ? "use one of: " + list(words) : "did you mean '" + near + "'?");
  return std::nullopt;
}

bool rule_context::check(const yaml_node& n, rule_object o) {
  if (!expect(n, kind::map, std::string(name_of(o)))) return false;
  const auto keys = keys_of(o);
  std::vector<std::string_view> names;
  for (const rule_key* k : keys) names.push_back(k->name);
  for (const auto& [key, value] : n.entries) {
    if (const rule_key* k = find_key(o, key.text)) {
      check_value(value, *k);
    } else if (o != rule_object::given) { // operands: what they are depends on the call
      const std::string near = full() ? "" : did_you_mean(key.text, names);
      fail(key, "CGE011", "unknown key '" + key.text + "' in " + std::string(name_of(o)),
           near.empty() ? "keys are: " + list(names) : "did you mean '" + near + "'?");
    }
  }
  for (const rule_key* k : keys)
    if (k->required && n.find(k->name) == nullptr) fail(n, "CGE010", "key '" + std::string(k->name) + "' is missing");
  return true;
}

void rule_context::check_value(const yaml_node& n, const rule_key& k) {
  const std::string what = "'" + std::string(k.name) + "'";
  switch (k.shape) {
  case key_shape::schema:
  case key_shape::version:
  case key_shape::rule_id:
  case key_shape::lists:
  case key_shape::macros:
    break; // more than a shape: their readers check them
  case key_shape::condition:
  case key_shape::value:
    expect(n, kind::scalar, what);
    break;
  case key_shape::text:
  case key_shape::message:
  case key_shape::date:
  case key_shape::duration:
  case key_shape::number:
    check_text(n, k);
    break;
  case key_shape::word:
    word(n, words_of(k.words), name_of(k.words));
    break;
  case key_shape::texts:
  case key_shape::fields:
  case key_shape::events:
  case key_shape::objects:
    check_items(n, k);
    break;
  case key_shape::object:
    if (expect(n, kind::map, what)) check(n, k.object);
    break;
  case key_shape::values:
    expect(n, kind::sequence, what);
    break;
  case key_shape::statuses:
    if (n.type != kind::map) expect(n, kind::scalar, what);
    break;
  case key_shape::expectation:
    check_expectation(n, k);
    break;
  }
}

void rule_context::check_text(const yaml_node& n, const rule_key& k) {
  const std::string what = "'" + std::string(k.name) + "'";
  if (!expect(n, kind::scalar, what)) return;
  if (k.shape == key_shape::date) {
    if (!is_date(n.text)) fail(n, "CGE014", "'" + n.text + "' is no date", "write it as YYYY-MM-DD");
  } else if (k.shape == key_shape::duration) {
    if (!duration_of(n)) fail(n, "CGE014", what + " is a time, such as 20us");
  } else if (k.shape == key_shape::number) {
    const auto number = number_of(n);
    if (!number || *number == 0) fail(n, "CGE014", what + " is a number from 1");
  } else if (n.text.empty()) {
    fail(n, "CGE013", what + " is empty");
  }
}

void rule_context::check_items(const yaml_node& n, const rule_key& k) {
  const std::string what = "'" + std::string(k.name) + "'";
  if (!expect(n, kind::sequence, what)) return;
  if (k.object == rule_object::rule || k.object == rule_object::change) return; // one by one, by the loader
  if (k.shape == key_shape::events && n.items.empty()) fail(n, "CGE013", what + " is empty");
  for (const auto& item : n.items) {
    if (k.shape == key_shape::objects) {
      check(item, k.object);
    } else if (!expect(item, kind::scalar, "an item of " + what)) {
      continue;
    } else if (k.shape == key_shape::events) {
      if (item.text != "any") word(item, event_kind_names(), "kind of event");
    } else if (k.shape == key_shape::fields) {
      if (field_by_name(item.text)) continue;
      const std::string near = did_you_mean(item.text, field_names());
      fail(item, "CGE012", "unknown field '" + item.text + "'",
           near.empty() ? "see `capturesan rules fields`" : "did you mean '" + near + "'?");
    } else if (item.text.empty()) {
      fail(item, "CGE013", "an item of " + what + " is empty");
    }
  }
}

void rule_context::check_expectation(const yaml_node& n, const rule_key& k) {
  if (n.type == kind::scalar && n.text == "none") return;
  if (n.type != kind::map) {
    return fail(n, "CGE014", "'" + std::string(k.name) + "' is `none` or a map", "such as {findings: 1, at: 2}");
  }
  check(n, k.object);
}

// ---- values ----

std::string text_of(const yaml_node* n) { return n == nullptr ? std::string() : n->text; }

std::optional<std::size_t> word_of(const yaml_node* n, word_set s) {
  if (n == nullptr || n->type != kind::scalar) return std::nullopt;
  const auto words = words_of(s);
  const auto it = std::find(words.begin(), words.end(), n->text);
  if (it == words.end()) return std::nullopt;
  return static_cast<std::size_t>(it - words.begin());
}

std::optional<std::uint64_t> number_of(const yaml_node& n) {
  std::uint64_t number = 0;
  const char* const last = n.text.data() + n.text.size();
  const auto [end, error] = std::from_chars(n.text.data(), last, number);
  if (n.type != kind::scalar || error != std::errc{} || end != last) return std::nullopt;
  return number;
}

std::optional<std::int64_t> duration_of(const yaml_node& n) {
  std::vector<condition_problem> found;
  const auto e = parse_condition("event.duration < " + n.text, found);
  if (!e || e->type != expr::kind::compare || e->values.front().type != literal::kind::duration) return std::nullopt;
  return e->values.front().number;
}

std::vector<field_id> fields_of(const yaml_node* n) {
  std::vector<field_id> out;
  if (n == nullptr) return out;
  for (const auto& item : n->items)
    if (const auto f = field_by_name(item.text)) out.push_back(*f);
  return out;
}

} // namespace capturesan
