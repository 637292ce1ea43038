#include "analyzer/rule_reader.h"

#include <algorithm>
#include <functional>

#include "trace/call.h"

namespace capturesan {

namespace {

using kind = yaml_node::kind;

std::set<field_group> present_in(const rule& r) {
  if (r.each == each_kind::graph_ptr) return {field_group::graph, field_group::param};
  if (r.each == each_kind::capture_unjoined) return {field_group::capture, field_group::fork};
  return {};
}

std::set<field_group> never_in(const rule& r) {
  if (r.each == each_kind::graph_ptr) return {field_group::fork};
  if (r.each == each_kind::capture_unjoined) return {field_group::param};
  return {field_group::fork, field_group::param};
}

bool is_id(const std::string& s) {
  const auto letters =
      static_cast<std::size_t>(std::find_if(s.begin(), s.end(), [](char c) { return c < 'A' || c > 'Z'; }) - s.begin());
  const auto digits = s.size() - letters;
  return letters >= 2 && letters <= 8 && digits >= 3 && digits <= 4 &&
         std::all_of(s.begin() + static_cast<std::ptrdiff_t>(letters), s.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

bool needs_full(const expr& e) {
  if (e.field != field_id::count && info(e.field).needs == "full") return true;
  return std::any_of(e.children.begin(), e.children.end(), [](const auto& c) { return c && needs_full(*c); });
}

// Does the rule look at memory of that kind? One that names no kind looks at all.
bool asks_for(const rule& r, std::string_view memory) {
  if (r.each != each_kind::graph_ptr || !r.when) return false;
  bool named = false, asked = false;
  const std::function<void(const expr&)> look = [&](const expr& e) {
    if (e.field == field_id::mem_kind && (e.op == comparison::equal || e.op == comparison::in)) {
      named = true;
      asked =
          asked || std::any_of(e.values.begin(), e.values.end(), [&](const literal& l) { return l.text == memory; });
    }
    for (const auto& c : e.children)
      if (c) look(*c);
  };
  look(*r.when);
  return asked || !named;
}

template <class E>
void read_word(const yaml_node* n, word_set s, E& to) {
  if (const auto w = word_of(n, s)) to = static_cast<E>(*w);
}

template <class E>
void read_word(const yaml_node* n, word_set s, std::optional<E>& to) {
  if (const auto w = word_of(n, s)) to = static_cast<E>(*w);
}

} // namespace

std::unique_ptr<rule> rule_reader::read(const std::shared_ptr<const yaml_document>& doc, const yaml_node& n) {
  context_.where.clear();
  auto r = std::make_unique<rule>();
  r->source = doc;
  const yaml_node* id = r->id = n.find("id");
  if (id != nullptr) {
    context_.where = "rule " + id->text;
    r->about.at = doc->position(id->at);
  }
  if (!context_.check(n, rule_object::rule)) return nullptr;
  if (id != nullptr) read_id(*id, *r);
  rule_info& a = r->about;
  a.name = text_of(n.find("name"));
  a.description = text_of(n.find("description"));
  a.doc = text_of(n.find("doc"));
  a.since = text_of(n.find("since"));
  read_word(n.find("each"), word_set::each, r->each);
  a.each = words_of(word_set::each)[static_cast<std::size_t>(r->each)];
  read_events(n.find("events"), *r);
  read_word(n.find("severity"), word_set::severity, a.sev);
  read_word(n.find("confidence"), word_set::confidence, a.conf);
  read_word(n.find("enabled"), word_set::boolean, a.enabled);
  read_word(n.find("level"), word_set::level, r->needs_full);
  a.level = r->needs_full ? "full" : "lite";
  if (const auto* w = n.find("when")) {
    a.when = w->text;
    r->when = names_.condition(*w, "when", present_in(*r), never_in(*r));
    a.uses = names_.used_by(w->text);
    check_level(*w, *r);
    r->asks_host = asks_for(*r, "pageable");
    r->asks_blocks = asks_for(*r, "block");
  }
  a.message = text_of(n.find("message"));
  r->message = message(n.find("message"), "message", *r);
  a.remediation = text_of(n.find("remediation"));
  r->remediation = message(n.find("remediation"), "remediation", *r);
  if (const auto* t = n.find("tags"))
    for (const auto& item : t->items) a.tags.push_back(item.text);
  r->group_by = fields(n.find("group_by"), *r);
  for (const auto f : r->group_by) a.group_by.emplace_back(info(f).name);
  read_variants(n.find("variants"), *r);
  read_exceptions(n.find("exceptions"), *r);
  if (const auto* t = n.find("threshold"); t != nullptr && t->type == kind::map) {
    r->threshold.emplace();
    if (const auto* v = t->find("at_least")) r->threshold->at_least = number_of(*v).value_or(1);
    if (const auto* v = t->find("within")) r->threshold->within_ns = duration_of(*v).value_or(0);
    r->threshold->per = fields(t->find("per"), *r);
  }
  if (const auto* t = n.find("tests"); t != nullptr && t->type == kind::sequence) {
    r->tests = t;
    a.tests = t->items.size();
  }
  if (r->when) r->possible_if_ok = possible_if_ok(*r->when);
  return r;
}

void rule_reader::read_id(const yaml_node& id, rule& r) {
  r.about.id = id.text;
  if (!is_id(id.text))
    context_.fail(id, "CGE014", "'" + id.text + "' is no rule id",
                  "use 2 to 8 capital letters and 3 or 4 digits, such as MY101");
}

void rule_reader::read_events(const yaml_node* n, rule& r) {
  if (n == nullptr) return;
  const auto names = event_kind_names();
  for (const auto& item : n->items) {
    r.about.events.push_back(item.text);
    if (item.text == "any") { // every call
      for (std::size_t c = 0; c < trace::class_count; ++c) r.events.push_back(static_cast<event_kind>(c));
      continue;
    }
    const auto it = std::find(names.begin(), names.end(), item.text);
    if (it != names.end()) r.events.push_back(static_cast<event_kind>(it - names.begin()));
  }
  // An event is looked at once, however often its kind is named.
  std::sort(r.events.begin(), r.events.end());
  r.events.erase(std::unique(r.events.begin(), r.events.end()), r.events.end());
}

message_template rule_reader::message(const yaml_node* n, const std::string& key, const rule& r) {
  if (n == nullptr || n->type != kind::scalar) return {};
  std::vector<condition_problem> found;
  auto t = message_template::parse(n->text, found, never_in(r));
  context_.report(*n, found, key);
  return t;
}

std::vector<field_id> rule_reader::fields(const yaml_node* n, const rule& r) {
  const auto never = never_in(r);
  if (n != nullptr)
    for (const auto& item : n->items)
      if (const auto f = field_by_name(item.text); f && never.contains(info(*f).group))
        context_.fail(item, "CGE035", never_there(*f), how_to_have(*f));
  return fields_of(n);
}

// Without that level the field would never have a value, and the rule would be silent for the wrong reason.
void rule_reader::check_level(const yaml_node& n, const rule& r) {
  if (r.when && !r.needs_full && needs_full(*r.when))
    context_.fail(n, "CGE034", "the condition asks for what only level full records", "add `level: full` to the rule");
}

void rule_reader::read_variants(const yaml_node* n, rule& r) {
  if (n == nullptr) return;
  for (const auto& item : n->items) {
    rule_variant v;
    if (const auto* w = item.find("when")) v.when = names_.condition(*w, "when", present_in(r), never_in(r));
    read_word(item.find("severity"), word_set::severity, v.sev);
    read_word(item.find("confidence"), word_set::confidence, v.conf);
    if (const auto* m = item.find("message")) v.message = message(m, "message", r);
    if (const auto* m = item.find("remediation")) v.remediation = message(m, "remediation", r);
    r.variants.push_back(std::move(v));
  }
}

void rule_reader::read_exceptions(const yaml_node* n, rule& r) {
  if (n == nullptr) return;
  std::set<std::string> ids;
  for (const auto& item : n->items) {
    rule_exception x;
    x.id = text_of(item.find("id"));
    x.reason = text_of(item.find("reason"));
    x.owner = text_of(item.find("owner"));
    x.expires = text_of(item.find("expires"));
    if (!x.id.empty() && !ids.insert(x.id).second)
      context_.fail(*item.find("id"), "CGE031", "exception '" + x.id + "' occurs twice");
    x.expired = !x.expires.empty() && x.expires < today_;
    if (x.expired) {
      warnings.push_back(context_.doc->error(*item.find("expires"), "CGW002",
                                             "exception '" + x.id + "' has expired (" + context_.where + ")",
                                             x.owner.empty() ? "" : "its owner is " + x.owner));
    }
    if (const auto* w = item.find("when")) x.when = names_.condition(*w, "when", present_in(r), never_in(r));
    r.exceptions.push_back(std::move(x));
  }
}

void rule_reader::change(rule& r, const yaml_node& n) {
  read_word(n.find("severity"), word_set::severity, r.about.sev);
  read_word(n.find("confidence"), word_set::confidence, r.about.conf);
  read_word(n.find("enabled"), word_set::boolean, r.about.enabled);
  for (const auto& [key, type, word] :
       {std::tuple{"and_when", expr::kind::all_of, "and"}, std::tuple{"or_when", expr::kind::any_of, "or"}}) {
    const auto* more = n.find(key);
    if (more == nullptr) continue;
    auto e = names_.condition(*more, key, present_in(r), never_in(r));
    if (!e || !r.when) continue;
    auto both = std::make_unique<expr>();
    both->type = type;
    both->children.push_back(std::move(r.when));
    both->children.push_back(std::move(e));
    r.when = std::move(both);
    r.about.when = "(" + r.about.when + ") " + word + " (" + more->text + ")"; // to show; never parsed again
    r.about.uses = names_.used_by(r.about.when);
    r.possible_if_ok = possible_if_ok(*r.when);
  }
}

} // namespace capturesan
