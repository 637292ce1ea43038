// Types, words and absent fields of a condition.
#include <algorithm>
#include <set>

#include "analyzer/condition.h"
#include "analyzer/cuda_results.h"
#include "analyzer/pattern.h"

namespace capturesan {

namespace {

using kind = expr::kind;

bool is_pattern(comparison op) {
  return op == comparison::glob || op == comparison::matches || op == comparison::starts_with;
}
bool is_order(comparison op) {
  return op == comparison::less || op == comparison::less_equal || op == comparison::greater ||
         op == comparison::greater_equal;
}

std::string join(std::span<const std::string_view> words) {
  std::string out;
  for (const auto w : words) {
    if (!out.empty()) out += ' ';
    out += w;
  }
  return out;
}

constexpr std::size_t most_terms = 10'000;

std::size_t terms(const expr& e) {
  std::size_t n = 1;
  for (const auto& c : e.children) n += c ? terms(*c) : 0;
  return n;
}

class checker {
 public:
  checker(const condition_scope& scope, std::vector<condition_problem>& problems)
      : scope_(scope), problems_(problems) {}

  void check(std::unique_ptr<expr>& e, std::set<field_group> present, bool negated) {
    switch (e->type) {
    case kind::all_of:
      for (auto& c : e->children) {
        check(c, present, negated);
        // From here on these fields are there.
        if (c->type == kind::exists || c->type == kind::compare || c->type == kind::truth) {
          if (c->field != field_id::count) present.insert(info(c->field).group);
        }
      }
      break;
    case kind::any_of:
      for (auto& c : e->children) check(c, present, negated);
      break;
    case kind::negation:
      check(e->children.front(), present, true);
      break;
    case kind::macro:
      expand(e);
      break;
    case kind::exists:
      resolve(*e);
      break;
    case kind::truth:
      if (!resolve(*e)) break;
      if (info(e->field).type != field_type::boolean) {
        add(e->at, e->length, "CGE022", "'" + e->name + "' is " + type_name(e->field) + ", not a condition",
            "compare it with == or another operator");
      }
      guard(*e, present, negated);
      break;
    case kind::compare:
      if (!resolve(*e)) break;
      expand_list(*e);
      check_values(*e);
      guard(*e, present, negated);
      break;
    }
  }

 private:
  static std::string type_name(field_id f) { return with_article(info(f).type); }

  void add(std::size_t at, std::size_t length, std::string code, std::string message, std::string hint = {}) {
    problems_.push_back({at, length, std::move(code), std::move(message), std::move(hint)});
  }

  bool resolve(expr& e) {
    const auto f = field_by_name(e.name);
    if (f) {
      e.field = *f;
      if (scope_.never.contains(info(*f).group)) add_never(e.at, e.name.size(), *f);
      return true;
    }
    const auto names = field_names();
    const std::string near = did_you_mean(e.name, names);
    add(e.at, e.name.size(), "CGE012", "unknown field '" + e.name + "'",
        near.empty() ? "see `capturesan rules fields`" : "did you mean '" + near + "'?");
    return false;
  }

  void add_never(std::size_t at, std::size_t length, field_id f) {
    add(at, length, "CGE035", never_there(f), how_to_have(f));
  }

  // A field of a macro that this rule never has.
  std::optional<field_id> never_in(const expr& e) const {
    if (e.field != field_id::count && scope_.never.contains(info(e.field).group)) return e.field;
    for (const auto& c : e.children)
      if (const auto f = c ? never_in(*c) : std::nullopt) return f;
    return std::nullopt;
  }

  // `not (absent == x)` would be true for want of a value.
  void guard(const expr& e, const std::set<field_group>& present, bool negated) {
    const field_group g = info(e.field).group;
    if (!negated || g == field_group::always || present.contains(g)) return;
    add(e.at, e.name.size(), "CGE027", "'" + e.name + "' may be absent, and under 'not' that counts as true",
        "write exists(" + e.name + ") and not ...");
  }

  void expand(std::unique_ptr<expr>& e) {
    const expr* m = scope_.macro ? scope_.macro(e->name, e->at) : nullptr;
    if (m != nullptr) {
      terms_ += terms(*m); // macros that use macros twice double at each step
      if (terms_ > most_terms) {
        if (terms_ - terms(*m) <= most_terms)
          add(e->at, e->name.size() + 1, "CGE029", "the condition is too large with its macros written out",
              "at most 10000 comparisons");
        return;
      }
      if (const auto f = never_in(*m)) add_never(e->at, e->name.size() + 1, *f);
      e->children.push_back(m->clone());
      return;
    }
    if (std::find(scope_.macro_names.begin(), scope_.macro_names.end(), e->name) != scope_.macro_names.end()) {
      return; // its own problem has been reported
    }
    const bool is_list =
        std::find(scope_.list_names.begin(), scope_.list_names.end(), e->name) != scope_.list_names.end();
    const std::string near = did_you_mean(e->name, scope_.macro_names);
    add(e->at, e->name.size() + 1, "CGE024", "unknown macro '$" + e->name + "'",
        is_list        ? "this is a list: write `field in $" + e->name + "`"
        : near.empty() ? ""
                       : "did you mean '$" + near + "'?");
  }

  void expand_list(expr& e) {
    if (e.list.empty()) return;
    const literal place = e.values.front();
    e.values.clear();
    const auto* values = scope_.list ? scope_.list(e.list) : nullptr;
    if (values == nullptr) {
      const std::string near = did_you_mean(e.list, scope_.list_names);
      add(place.at, place.length, "CGE024", "unknown list '$" + e.list + "'",
          near.empty() ? "" : "did you mean '$" + near + "'?");
      return;
    }
    for (literal v : *values) {
      v.at = place.at; // complain here: what is wrong is the use
      v.length = place.length;
      e.values.push_back(v);
    }
  }

  void check_values(expr& e) {
    const field_type type = info(e.field).type;
    const bool text = type == field_type::text;
    const bool countable = type == field_type::number || type == field_type::size || type == field_type::duration ||
                           type == field_type::address || type == field_type::result;
    if ((is_pattern(e.op) && !text) || (is_order(e.op) && !countable)) {
      add(e.at, e.length, "CGE022",
          "'" + e.name + "' is " + type_name(e.field) + "; this operator does not apply to it",
          text ? "use ==, in, glob, matches or starts_with" : "use == or in");
      return;
    }
    for (literal& v : e.values) check_value(e, v);
    if (e.values.empty() || !is_pattern(e.op) || e.values.front().type != literal::kind::text) return;
    const literal& v = e.values.front();
    if (e.op == comparison::glob) e.compiled = pattern::glob(v.text);
    if (e.op == comparison::matches) {
      std::string why;
      e.compiled = pattern::regex(v.text, why);
      if (!e.compiled) add(v.at, v.length, "CGE023", "not a regular expression: " + why);
    }
  }

  void check_value(const expr& e, literal& v) {
    using lit = literal::kind;
    const auto mismatch = [&](const std::string& want) {
      add(v.at, v.length, "CGE022", "'" + e.name + "' is " + type_name(e.field) + " and cannot be compared with this",
          want);
    };
    switch (info(e.field).type) {
    case field_type::boolean:
      if (v.type != lit::boolean) mismatch("compare it with true or false");
      break;
    case field_type::number:
    case field_type::address:
      if (v.type != lit::number) mismatch("compare it with a number");
      break;
    case field_type::size:
      if (v.type != lit::number && v.type != lit::size) mismatch("compare it with a size, such as 4KiB");
      break;
    case field_type::duration:
      if (v.type != lit::duration) mismatch("compare it with a time, such as 20us");
      break;
    case field_type::text:
      if (v.type != lit::text) mismatch("text is written in double quotes");
      break;
    case field_type::result:
      check_result(v, mismatch);
      break;
    case field_type::word:
      check_word(e, v, mismatch);
      break;
    }
  }

  template <class F>
  void check_result(literal& v, F&& mismatch) {
    if (v.type == literal::kind::number) return;
    const auto n = v.type == literal::kind::word ? result_by_name(v.text) : std::nullopt;
    if (!n) {
      const std::string near = v.type == literal::kind::word ? did_you_mean(v.text, result_names()) : "";
      return mismatch(near.empty() ? "compare it with a number or a CUDA_ERROR_ name" : "did you mean '" + near + "'?");
    }
    v.number = *n;
  }

  template <class F>
  void check_word(const expr& e, literal& v, F&& mismatch) {
    const auto words = words_of(e.field);
    if (v.type != literal::kind::word) return mismatch("its words are: " + join(words));
    const auto it = std::find(words.begin(), words.end(), v.text);
    if (it != words.end()) {
      v.number = it - words.begin();
      return;
    }
    const std::string near = did_you_mean(v.text, words);
    add(v.at, v.length, "CGE021", "'" + v.text + "' is no word of '" + e.name + "'",
        near.empty() ? "its words are: " + join(words) : "did you mean '" + near + "'?");
  }

  const condition_scope& scope_;
  std::vector<condition_problem>& problems_;
  std::size_t terms_ = 0; // of the macros used so far
};

template <class T>
bool compare(const T& a, comparison op, const T& b) {
  switch (op) {
  case comparison::equal:
    return a == b;
  case comparison::not_equal:
    return a != b;
  case comparison::less:
    return a < b;
  case comparison::less_equal:
    return a <= b;
  case comparison::greater:
    return a > b;
  case comparison::greater_equal:
    return a >= b;
  default:
    return false;
  }
}

bool compare_number(const expr& e, std::int64_t n) {
  if (e.op == comparison::in || e.op == comparison::not_in) {
    const bool found = std::any_of(e.values.begin(), e.values.end(), [&](const literal& v) { return v.number == n; });
    return found == (e.op == comparison::in);
  }
  return compare(n, e.op, e.values.front().number);
}

bool compare_text(const expr& e, std::string_view s) {
  switch (e.op) {
  case comparison::in:
  case comparison::not_in: {
    const bool found = std::any_of(e.values.begin(), e.values.end(), [&](const literal& v) { return v.text == s; });
    return found == (e.op == comparison::in);
  }
  case comparison::glob:
  case comparison::matches:
    return e.compiled && e.compiled->matches(s);
  case comparison::starts_with:
    return s.starts_with(e.values.front().text);
  default:
    return compare(s, e.op, std::string_view(e.values.front().text));
  }
}

enum class tri { no, yes, unknown };

tri known_for_ok(const expr& e) {
  switch (e.type) {
  case kind::all_of: {
    tri all = tri::yes;
    for (const auto& c : e.children) {
      const tri t = known_for_ok(*c);
      if (t == tri::no) return tri::no;
      if (t == tri::unknown) all = tri::unknown;
    }
    return all;
  }
  case kind::any_of: {
    tri any = tri::no;
    for (const auto& c : e.children) {
      const tri t = known_for_ok(*c);
      if (t == tri::yes) return tri::yes;
      if (t == tri::unknown) any = tri::unknown;
    }
    return any;
  }
  case kind::negation: {
    const tri t = known_for_ok(*e.children.front());
    return t == tri::unknown ? t : t == tri::yes ? tri::no : tri::yes;
  }
  case kind::macro:
    return e.children.empty() ? tri::unknown : known_for_ok(*e.children.front());
  case kind::compare:
    if (e.field == field_id::event_result) return compare_number(e, 0) ? tri::yes : tri::no;
    return tri::unknown;
  default:
    return tri::unknown;
  }
}

} // namespace

std::unique_ptr<expr> expr::clone() const {
  auto e = std::make_unique<expr>();
  e->type = type;
  for (const auto& c : children) e->children.push_back(c->clone());
  e->name = name;
  e->field = field;
  e->op = op;
  e->values = values;
  e->list = list;
  e->compiled = compiled;
  e->grouped = grouped;
  e->at = at;
  e->length = length;
  return e;
}

void check_condition(std::unique_ptr<expr>& e, const condition_scope& scope, std::vector<condition_problem>& problems) {
  checker(scope, problems).check(e, scope.present, false);
}

bool holds(const expr& e, const field_source& s) {
  switch (e.type) {
  case kind::all_of:
    for (const auto& c : e.children)
      if (!holds(*c, s)) return false;
    return true;
  case kind::any_of:
    for (const auto& c : e.children)
      if (holds(*c, s)) return true;
    return false;
  case kind::negation:
    return !holds(*e.children.front(), s);
  case kind::macro:
    return holds(*e.children.front(), s);
  case kind::exists:
    return s.get(e.field).present;
  case kind::truth: {
    const field_value v = s.get(e.field);
    return v.present && v.number != 0;
  }
  case kind::compare: {
    const field_value v = s.get(e.field);
    if (!v.present) return false;
    return info(e.field).type == field_type::text ? compare_text(e, v.text) : compare_number(e, v.number);
  }
  }
  return false;
}

std::string never_there(field_id f) { return "'" + std::string(info(f).name) + "' never has a value in this rule"; }

std::string how_to_have(field_id f) {
  return info(f).group == field_group::fork ? "it needs `each: capture.unjoined`" : "it needs `each: graph.ptr`";
}

bool possible_if_ok(const expr& e) { return known_for_ok(e) != tri::no; }

} // namespace capturesan
