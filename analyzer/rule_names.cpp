#include "analyzer/rule_names.h"

#include <algorithm>
#include <charconv>

namespace capturesan {

namespace {

using kind = yaml_node::kind;

constexpr std::size_t most_macro_hops = 32;
constexpr std::size_t most_values = 200'000; // items of lists, each time one is used

// In a list every item is text for a text field and a word or number for others.
literal list_value(const yaml_node& item) {
  literal v;
  v.text = item.text;
  v.type = literal::kind::text;
  if (!item.quoted) {
    const auto [end, error] = std::from_chars(item.text.data(), item.text.data() + item.text.size(), v.number);
    if (error == std::errc{} && end == item.text.data() + item.text.size()) v.type = literal::kind::number;
  }
  return v;
}

std::string place(const yaml_document& doc, const yaml_node& n) {
  const source_position p = doc.position(n.at);
  return p.file + ":" + std::to_string(p.line) + ":" + std::to_string(p.column);
}

// Every `$name` in a text, in order.
std::vector<std::string> names_in(const expr& e) {
  std::vector<std::string> out;
  if (e.type == expr::kind::macro) out.push_back(e.name);
  if (!e.list.empty()) out.push_back(e.list);
  for (const auto& c : e.children) {
    if (!c) continue;
    auto more = names_in(*c);
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

} // namespace

bool rule_names::check_name(const yaml_node& key) {
  const bool good = !key.text.empty() && std::all_of(key.text.begin(), key.text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  }) && !(key.text[0] >= '0' && key.text[0] <= '9');
  if (!good)
    context_.fail(key, "CGE013", "'" + key.text + "' is no name", "use a-z, 0-9 and _, and begin with a letter");
  const auto m = macros_.find(key.text);
  const auto l = lists_.find(key.text);
  if (m == macros_.end() && l == lists_.end()) return good;
  context_.fail(key, "CGE025", "'" + key.text + "' is defined twice",
                "the other one is at " + (m != macros_.end() ? place(*m->second.doc, *m->second.key)
                                                             : place(*l->second.doc, *l->second.key)));
  return false;
}

void rule_names::read_lists(const yaml_node& n) {
  if (!context_.expect(n, kind::map, "'lists'")) return;
  for (const auto& [key, value] : n.entries) {
    const bool fresh = check_name(key);
    if (!context_.expect(value, kind::sequence, "list '" + key.text + "'")) continue;
    list entry;
    entry.doc = context_.doc;
    entry.key = &key;
    for (const auto& item : value.items)
      if (context_.expect(item, kind::scalar, "an item of list '" + key.text + "'"))
        entry.values.push_back(list_value(item));
    if (fresh) lists_.emplace(key.text, std::move(entry));
  }
}

void rule_names::read_macros(const yaml_node& n) {
  if (!context_.expect(n, kind::map, "'macros'")) return;
  for (const auto& [key, value] : n.entries) {
    const bool fresh = check_name(key);
    if (!context_.expect(value, kind::scalar, "macro '" + key.text + "'") || !fresh) continue;
    macro m;
    m.doc = context_.doc;
    m.key = &key;
    m.text = &value;
    macros_.emplace(key.text, std::move(m));
  }
}

void rule_names::compile_macros() {
  for (const auto& [name, m] : macros_) macro_names_.push_back(name);
  for (const auto& [name, l] : lists_) list_names_.push_back(name);
  for (auto& [name, m] : macros_) compile(name, m);
}

// Said once for a chain: those that use this one take it for a shallow one.
void rule_names::too_deep(macro& m) {
  context_.fail(*m.text, "CGE029", "macros are nested more than " + std::to_string(most_macro_hops) + " deep");
  m.state = macro::progress::done;
  m.depth = 0;
}

void rule_names::compile(const std::string& name, macro& m) {
  if (m.state == macro::progress::done) return;
  const yaml_document* outer_doc = context_.doc;
  const std::string outer_where = context_.where;
  context_.doc = m.doc;
  context_.where = "macro '" + name + "'";
  if (m.state == macro::progress::under_way) {
    std::string loop;
    const auto begin = std::find(path_.begin(), path_.end(), name);
    for (auto step = begin; step != path_.end(); ++step) loop += "$" + *step + " -> ";
    context_.fail(*m.text, "CGE025", "macros refer to each other in a circle: " + loop + "$" + name);
  } else if (path_.size() >= most_macro_hops) {
    too_deep(m);
  } else {
    m.state = macro::progress::under_way;
    path_.push_back(name);
    int deepest = 0;
    m.tree = condition(*m.text, "macros", {}, {}, deepest);
    m.depth = deepest + 1;
    path_.pop_back();
    m.state = macro::progress::done;
    if (m.depth > static_cast<int>(most_macro_hops)) too_deep(m);
  }
  context_.doc = outer_doc;
  context_.where = outer_where;
}

std::unique_ptr<expr> rule_names::condition(const yaml_node& n, const std::string& key, std::set<field_group> present,
                                            std::set<field_group> never, int& deepest) {
  if (n.type != kind::scalar) return nullptr; // reported by whoever checked the shape
  std::vector<condition_problem> found;
  auto e = parse_condition(n.text, found);
  if (e) {
    condition_scope scope;
    scope.present = std::move(present);
    scope.never = std::move(never);
    scope.macro_names = macro_names_;
    scope.list_names = list_names_;
    scope.macro = [&](const std::string& name, std::size_t) -> const expr* {
      const auto it = macros_.find(name);
      if (it == macros_.end()) return nullptr;
      it->second.used = true;
      compile(name, it->second);
      deepest = std::max(deepest, it->second.depth);
      return it->second.tree.get();
    };
    scope.list = [&](const std::string& name) -> const std::vector<literal>* {
      const auto it = lists_.find(name);
      if (it == lists_.end()) return nullptr;
      it->second.used = true;
      values_used_ += it->second.values.size();
      static const std::vector<literal> none;
      return values_used_ > most_values ? &none : &it->second.values;
    };
    set_item_types(*e);
    check_condition(e, scope, found);
    if (found.empty() && values_used_ > most_values)
      found.push_back({0, 1, "CGE029", "the lists used in conditions have too many items together", "use patterns"});
  }
  context_.report(n, found, key);
  return found.empty() ? std::move(e) : nullptr;
}

// The items of `word in $list` are words, not texts.
void rule_names::set_item_types(const expr& e) {
  for (const auto& c : e.children)
    if (c) set_item_types(*c);
  const auto it = lists_.find(e.list);
  const auto f = field_by_name(e.name);
  if (e.type != expr::kind::compare || it == lists_.end() || !f || values_used_ > most_values) return;
  const field_type type = info(*f).type;
  for (literal& v : it->second.values) {
    if (v.type == literal::kind::number) continue;
    v.type = type == field_type::word || type == field_type::result ? literal::kind::word : literal::kind::text;
  }
}

std::vector<std::pair<std::string, std::string>> rule_names::used_by(const std::string& condition_text) const {
  std::vector<std::pair<std::string, std::string>> out;
  std::vector<std::string> texts{condition_text};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::vector<condition_problem> ignored;
    const auto e = parse_condition(texts[i], ignored);
    if (!e) continue;
    for (const std::string& name : names_in(*e)) {
      const auto same = [&](const auto& known) { return known.first == name; };
      if (std::any_of(out.begin(), out.end(), same)) continue;
      if (const auto m = macros_.find(name); m != macros_.end()) {
        out.emplace_back(name, m->second.text->text);
        texts.push_back(m->second.text->text);
      } else if (const auto l = lists_.find(name); l != lists_.end()) {
        std::string items;
        for (const literal& v : l->second.values) items += (items.empty() ? "" : ", ") + v.text;
        out.emplace_back(name, "[" + items + "]");
      }
    }
  }
  return out;
}

std::vector<problem> rule_names::unused() const {
  std::vector<problem> out;
  for (const auto& [name, m] : macros_)
    if (!m.used) out.push_back(m.doc->error(*m.key, "CGW001", "macro '" + name + "' is not used"));
  for (const auto& [name, l] : lists_)
    if (!l.used) out.push_back(l.doc->error(*l.key, "CGW001", "list '" + name + "' is not used"));
  return out;
}

} // namespace capturesan
