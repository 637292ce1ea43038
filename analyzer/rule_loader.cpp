#include "analyzer/rule_loader.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "analyzer/version.h"
#include "trace/call.h"

namespace capturesan {

namespace {

constexpr int schema_version = 1;
constexpr int most_macro_hops = 32;

using kind = yaml_node::kind;

constexpr std::string_view file_keys[] = {"schema", "requires", "lists", "macros", "rules", "overrides"};
constexpr std::string_view rule_keys[] = {"id",       "name",     "description", "events",   "each",
                                          "when",     "severity", "confidence",  "message",  "remediation",
                                          "doc",      "tags",     "threshold",   "group_by", "exceptions",
                                          "variants", "level",    "enabled",     "since",    "tests"};
constexpr std::string_view required_keys[] = {"id", "name", "events", "when", "severity", "message", "remediation"};
constexpr std::string_view variant_keys[] = {"when", "severity", "confidence", "message", "remediation"};
constexpr std::string_view exception_keys[] = {"id", "when", "reason", "expires", "owner"};
constexpr std::string_view threshold_keys[] = {"at_least", "per", "within"};
constexpr std::string_view override_keys[] = {"rule", "severity", "confidence", "enabled", "and_when", "or_when"};
constexpr std::string_view severities[] = {"note", "warning", "error"};
constexpr std::string_view confidences[] = {"suspected", "likely", "proved"};
constexpr std::string_view each_words[] = {"event", "graph.ptr", "capture.unjoined"};
constexpr std::string_view level_words[] = {"lite", "full"};
constexpr std::string_view bool_words[] = {"false", "true"};

struct macro_entry {
  const yaml_document* doc = nullptr;
  const yaml_node* text = nullptr;
  std::unique_ptr<expr> tree;
  enum class progress { fresh, under_way, done } state = progress::fresh;
  bool used = false;
};

struct list_entry {
  std::vector<literal> values;
};

class loader {
 public:
  explicit loader(std::string today) : today_(std::move(today)) {}

  void read(const std::string& name, std::string text) {
    auto parsed = yaml_document::parse(name, std::move(text));
    if (!parsed) {
      problems_.insert(problems_.end(), parsed.problems().begin(), parsed.problems().end());
      return;
    }
    documents_.push_back(std::make_shared<const yaml_document>(std::move(parsed.value())));
    doc_ = documents_.back().get();
    read_file(doc_->root());
  }

  result<std::unique_ptr<compiled_rules>> finish() {
    for (auto& [name, m] : macros_) compile_macro(name, m, 0);
    for (const auto& [doc, node] : rule_nodes_) {
      doc_ = doc.get();
      read_rule(doc, *node);
    }
    for (const auto& [doc, node] : override_nodes_) {
      doc_ = doc.get();
      read_override(*node);
    }
    if (!problems_.empty()) {
      std::stable_sort(problems_.begin(), problems_.end(), [](const problem& a, const problem& b) {
        if (a.at.file != b.at.file) return false; // files keep their order
        return std::tie(a.at.line, a.at.column) < std::tie(b.at.line, b.at.column);
      });
      return problems_;
    }
    for (const auto& [name, m] : macros_)
      if (!m.used) out_->warnings.push_back(m.doc->error(*m.text, "CGW001", "macro '" + name + "' is not used"));
    std::sort(out_->rules.begin(), out_->rules.end(),
              [](const auto& a, const auto& b) { return a->about.id < b->about.id; });
    return std::move(out_);
  }

 private:
  // ---- small things ----

  void fail(const yaml_node& n, std::string code, std::string message, std::string hint = {}) {
    if (!where_.empty()) message += " (" + where_ + ")";
    problems_.push_back(doc_->error(n, std::move(code), std::move(message), std::move(hint)));
  }

  void report(const yaml_node& n, const std::vector<condition_problem>& found, const std::string& key) {
    for (const auto& p : found) {
      std::string message = p.message;
      message += where_.empty() ? " (" + key + ")" : " (" + where_ + ", key '" + key + "')";
      problems_.push_back(doc_->error_in(n, p.at, p.code, message, p.hint, static_cast<int>(p.length)));
    }
  }

  static std::string list(std::span<const std::string_view> words) {
    std::string out;
    for (const auto w : words) out += (out.empty() ? "" : " ") + std::string(w);
    return out;
  }

  void check_keys(const yaml_node& n, std::span<const std::string_view> known, const std::string& what) {
    for (const auto& [key, value] : n.entries) {
      if (std::find(known.begin(), known.end(), key.text) != known.end()) continue;
      const std::string near = did_you_mean(key.text, known);
      fail(key, "CGE011", "unknown key '" + key.text + "' in " + what,
           near.empty() ? "keys are: " + list(known) : "did you mean '" + near + "'?");
    }
  }

  bool expect(const yaml_node& n, kind type, const std::string& what) {
    if (n.type == type) return true;
    fail(n, "CGE013",
         what + (type == kind::map        ? " must be a map"
                 : type == kind::sequence ? " must be a list"
                                          : " must be a text"));
    return false;
  }

  std::optional<std::size_t> word(const yaml_node& n, std::span<const std::string_view> words,
                                  const std::string& what) {
    if (n.type == kind::scalar) {
      const auto it = std::find(words.begin(), words.end(), n.text);
      if (it != words.end()) return static_cast<std::size_t>(it - words.begin());
    }
    const std::string near = did_you_mean(n.text, words);
    fail(n, "CGE014", "'" + n.text + "' is no " + what,
         near.empty() ? "use one of: " + list(words) : "did you mean '" + near + "'?");
    return std::nullopt;
  }

  std::string text(const yaml_node* n, const std::string& what, bool filled = true) {
    if (n == nullptr) return {};
    if (!expect(*n, kind::scalar, what)) return {};
    if (filled && n->text.empty()) fail(*n, "CGE013", what + " is empty");
    return n->text;
  }

  // ---- a file ----

  void read_file(const yaml_node& root) {
    where_.clear();
    if (!expect(root, kind::map, "a rule file")) return;
    const yaml_node* schema = root.find("schema");
    if (schema == nullptr) {
      problems_.push_back(
          doc_->error_at(root.at, "CGE015", "key 'schema' is missing", "begin the file with `schema: 1`"));
      return;
    }
    if (schema->text != std::to_string(schema_version)) {
      fail(*schema, "CGE015",
           "rules file is schema " + schema->text + ", this capturesan reads " + std::to_string(schema_version));
      return; // nothing else can be trusted
    }
    check_keys(root, file_keys, "a rule file");
    if (const auto* n = root.find("requires")) read_requires(*n);
    if (const auto* n = root.find("lists")) read_lists(*n);
    if (const auto* n = root.find("macros")) read_macros(*n);
    collect(root.find("rules"), "rules", rule_nodes_);
    collect(root.find("overrides"), "overrides", override_nodes_);
  }

  using node_list = std::vector<std::pair<std::shared_ptr<const yaml_document>, const yaml_node*>>;
  void collect(const yaml_node* n, const std::string& what, node_list& to) {
    if (n == nullptr || !expect(*n, kind::sequence, "'" + what + "'")) return;
    for (const auto& item : n->items) to.emplace_back(documents_.back(), &item);
  }

  // ">=0.4": at least that version of the engine.
  void read_requires(const yaml_node& n) {
    const auto parts = [](std::string_view v) {
      std::vector<int> out;
      while (!v.empty()) {
        int number = 0;
        const auto [end, error] = std::from_chars(v.data(), v.data() + v.size(), number);
        if (error != std::errc{}) return std::vector<int>{};
        out.push_back(number);
        v.remove_prefix(static_cast<std::size_t>(end - v.data()));
        if (v.starts_with(".") && v.size() > 1) {
          v.remove_prefix(1);
        } else if (!v.empty()) {
          return std::vector<int>{};
        }
      }
      while (!out.empty() && out.back() == 0) out.pop_back();
      return out.empty() ? std::vector<int>{0} : out;
    };
    const std::vector<int> want =
        n.text.starts_with(">=") ? parts(std::string_view(n.text).substr(2)) : std::vector<int>{};
    if (n.type != kind::scalar || want.empty()) return fail(n, "CGE016", "'requires' is written like \">=0.1\"");
    if (want > parts(engine_version)) {
      fail(n, "CGE016",
           "the rules need capturesan " + n.text.substr(2) + " or newer, this is " + std::string(engine_version));
    }
  }

  void read_lists(const yaml_node& n) {
    if (!expect(n, kind::map, "'lists'")) return;
    for (const auto& [key, value] : n.entries) {
      check_name(key);
      if (!expect(value, kind::sequence, "list '" + key.text + "'")) continue;
      list_entry entry;
      for (const auto& item : value.items) {
        if (!expect(item, kind::scalar, "an item of list '" + key.text + "'")) continue;
        entry.values.push_back(list_value(item));
      }
      if (macros_.contains(key.text) || !lists_.emplace(key.text, std::move(entry)).second) {
        fail(key, "CGE025", "'" + key.text + "' is defined twice");
      }
    }
  }

  // In a list every item is text for a text field and a word or number for others.
  static literal list_value(const yaml_node& item) {
    literal v;
    v.text = item.text;
    v.type = literal::kind::text;
    if (!item.quoted) {
      const auto [end, error] = std::from_chars(item.text.data(), item.text.data() + item.text.size(), v.number);
      if (error == std::errc{} && end == item.text.data() + item.text.size()) v.type = literal::kind::number;
    }
    return v;
  }

  void check_name(const yaml_node& key) {
    const bool good = !key.text.empty() && std::all_of(key.text.begin(), key.text.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    }) && !(key.text[0] >= '0' && key.text[0] <= '9');
    if (!good) fail(key, "CGE013", "'" + key.text + "' is no name", "use a-z, 0-9 and _, and begin with a letter");
  }

  void read_macros(const yaml_node& n) {
    if (!expect(n, kind::map, "'macros'")) return;
    for (const auto& [key, value] : n.entries) {
      check_name(key);
      if (!expect(value, kind::scalar, "macro '" + key.text + "'")) continue;
      macro_entry m;
      m.doc = doc_;
      m.text = &value;
      if (lists_.contains(key.text) || !macros_.emplace(key.text, std::move(m)).second) {
        fail(key, "CGE025", "'" + key.text + "' is defined twice");
      }
    }
  }

  // ---- conditions ----

  void compile_macro(const std::string& name, macro_entry& m, int hops) {
    if (m.state == macro_entry::progress::done) return;
    const yaml_document* outer_doc = doc_;
    const std::string outer_where = where_;
    doc_ = m.doc;
    where_ = "macro '" + name + "'";
    if (m.state == macro_entry::progress::under_way || hops > most_macro_hops) {
      std::string loop;
      for (const auto& step : macro_path_) loop += "$" + step + " -> ";
      fail(*m.text, "CGE025", "macros refer to each other in a circle: " + loop + "$" + name);
    } else {
      m.state = macro_entry::progress::under_way;
      macro_path_.push_back(name);
      m.tree = condition(*m.text, "macros", {}, hops + 1);
      macro_path_.pop_back();
      m.state = macro_entry::progress::done;
    }
    doc_ = outer_doc;
    where_ = outer_where;
  }

  std::unique_ptr<expr> condition(const yaml_node& n, const std::string& key, std::set<field_group> present = {},
                                  int hops = 0) {
    if (!expect(n, kind::scalar, "'" + key + "'")) return nullptr;
    std::vector<condition_problem> found;
    auto e = parse_condition(n.text, found);
    if (e) {
      condition_scope scope;
      scope.present = std::move(present);
      for (const auto& [name, m] : macros_) scope.macro_names.push_back(name);
      for (const auto& [name, l] : lists_) scope.list_names.push_back(name);
      scope.macro = [&](const std::string& name, std::size_t) -> const expr* {
        const auto it = macros_.find(name);
        if (it == macros_.end()) return nullptr;
        it->second.used = true;
        compile_macro(name, it->second, hops);
        return it->second.tree.get();
      };
      scope.list = [&](const std::string& name) -> const std::vector<literal>* {
        const auto it = lists_.find(name);
        return it == lists_.end() ? nullptr : &it->second.values;
      };
      for_list_fields(*e);
      check_condition(e, scope, found);
    }
    report(n, found, key);
    return found.empty() ? std::move(e) : nullptr;
  }

  // The items of `word in $list` are words, not texts.
  void for_list_fields(expr& e) {
    for (auto& c : e.children) for_list_fields(*c);
    const auto it = lists_.find(e.list);
    const auto f = field_by_name(e.name);
    if (e.type != expr::kind::compare || it == lists_.end() || !f) return;
    const field_type type = info(*f).type;
    for (literal& v : it->second.values) {
      if (v.type == literal::kind::number) continue;
      v.type = type == field_type::word || type == field_type::result ? literal::kind::word : literal::kind::text;
    }
  }

  message_template message(const yaml_node& n, const std::string& key) {
    if (!expect(n, kind::scalar, "'" + key + "'")) return {};
    std::vector<condition_problem> found;
    auto t = message_template::parse(n.text, found);
    if (n.text.empty()) fail(n, "CGE013", "'" + key + "' is empty");
    report(n, found, key);
    return t;
  }

  // ---- a rule ----

  void read_rule(const std::shared_ptr<const yaml_document>& doc, const yaml_node& n) {
    where_.clear();
    if (!expect(n, kind::map, "a rule")) return;
    auto r = std::make_unique<rule>();
    r->source = doc;
    const yaml_node* id = n.find("id");
    if (id != nullptr) {
      where_ = "rule " + id->text;
      r->about.at = doc_->position(id->at);
    }
    check_keys(n, rule_keys, "a rule");
    for (const auto key : required_keys)
      if (n.find(key) == nullptr) fail(n, "CGE010", "key '" + std::string(key) + "' is missing");
    if (id != nullptr) read_id(*id, *r);
    rule_info& a = r->about;
    a.name = text(n.find("name"), "'name'");
    a.description = text(n.find("description"), "'description'");
    a.doc = text(n.find("doc"), "'doc'");
    a.since = text(n.find("since"), "'since'");
    a.each = "event";
    if (const auto* e = n.find("each")) {
      if (const auto w = word(*e, each_words, "thing to walk over")) r->each = static_cast<each_kind>(*w);
      a.each = each_words[static_cast<std::size_t>(r->each)];
    }
    if (const auto* e = n.find("events")) read_events(*e, *r);
    read_weight(n, a.sev, a.conf);
    if (const auto* e = n.find("enabled"))
      if (const auto w = word(*e, bool_words, "truth value")) a.enabled = *w == 1;
    a.level = "lite";
    if (const auto* e = n.find("level"))
      if (const auto w = word(*e, level_words, "level")) a.level = level_words[*w];
    r->needs_full = a.level == "full";
    const auto present = groups_of(*r);
    if (const auto* w = n.find("when")) {
      a.when = w->text;
      r->when = condition(*w, "when", present);
    }
    if (const auto* m = n.find("message")) {
      a.message = m->text;
      r->message = message(*m, "message");
    }
    if (const auto* m = n.find("remediation")) {
      a.remediation = m->text;
      r->remediation = message(*m, "remediation");
    }
    if (const auto* t = n.find("tags"); t != nullptr && expect(*t, kind::sequence, "'tags'"))
      for (const auto& item : t->items) a.tags.push_back(text(&item, "a tag"));
    if (const auto* g = n.find("group_by")) {
      r->group_by = fields(*g, "group_by");
      for (const auto f : r->group_by) a.group_by.emplace_back(info(f).name);
    }
    if (const auto* v = n.find("variants")) read_variants(*v, *r, present);
    if (const auto* v = n.find("exceptions")) read_exceptions(*v, *r, present);
    if (const auto* t = n.find("threshold")) read_threshold(*t, *r);
    if (const auto* t = n.find("tests"); t != nullptr && expect(*t, kind::sequence, "'tests'")) {
      r->tests = t;
      a.tests = t->items.size();
    }
    if (r->when) r->possible_if_ok = possible_if_ok(*r->when);
    out_->rules.push_back(std::move(r));
  }

  static std::set<field_group> groups_of(const rule& r) {
    if (r.each == each_kind::graph_ptr) return {field_group::graph, field_group::param};
    if (r.each == each_kind::capture_unjoined) return {field_group::capture, field_group::fork};
    return {};
  }

  void read_id(const yaml_node& id, rule& r) {
    r.about.id = id.text;
    const std::string& s = id.text;
    const auto letters = static_cast<std::size_t>(
        std::find_if(s.begin(), s.end(), [](char c) { return c < 'A' || c > 'Z'; }) - s.begin());
    const auto digits = s.size() - letters;
    const bool good = letters >= 2 && letters <= 8 && digits >= 3 && digits <= 4 &&
                      std::all_of(s.begin() + static_cast<std::ptrdiff_t>(letters), s.end(),
                                  [](char c) { return c >= '0' && c <= '9'; });
    if (!good)
      fail(id, "CGE014", "'" + s + "' is no rule id", "use 2 to 8 capital letters and 3 or 4 digits, such as MY101");
    if (!ids_.insert(s).second) fail(id, "CGE031", "rule id '" + s + "' occurs twice");
  }

  void read_events(const yaml_node& n, rule& r) {
    if (!expect(n, kind::sequence, "'events'")) return;
    if (n.items.empty()) fail(n, "CGE013", "'events' is empty");
    for (const auto& item : n.items) {
      if (item.text == "any") { // every call
        for (std::size_t c = 0; c < trace::class_count; ++c) r.events.push_back(static_cast<event_kind>(c));
        r.about.events.push_back(item.text);
        continue;
      }
      const auto w = word(item, event_kind_names(), "kind of event");
      if (!w) continue;
      r.events.push_back(static_cast<event_kind>(*w));
      r.about.events.push_back(item.text);
    }
  }

  void read_weight(const yaml_node& n, severity& sev, confidence& conf) {
    if (const auto* e = n.find("severity"))
      if (const auto w = word(*e, severities, "severity")) sev = static_cast<severity>(*w);
    if (const auto* e = n.find("confidence"))
      if (const auto w = word(*e, confidences, "confidence")) conf = static_cast<confidence>(*w);
  }

  std::vector<field_id> fields(const yaml_node& n, const std::string& key) {
    std::vector<field_id> out;
    if (!expect(n, kind::sequence, "'" + key + "'")) return out;
    for (const auto& item : n.items) {
      if (const auto f = field_by_name(item.text)) {
        out.push_back(*f);
        continue;
      }
      const std::string near = did_you_mean(item.text, field_names());
      fail(item, "CGE012", "unknown field '" + item.text + "'", near.empty() ? "" : "did you mean '" + near + "'?");
    }
    return out;
  }

  void read_variants(const yaml_node& n, rule& r, const std::set<field_group>& present) {
    if (!expect(n, kind::sequence, "'variants'")) return;
    for (const auto& item : n.items) {
      if (!expect(item, kind::map, "a variant")) continue;
      check_keys(item, variant_keys, "a variant");
      rule_variant v;
      if (const auto* w = item.find("when")) {
        v.when = condition(*w, "when", present);
      } else {
        fail(item, "CGE010", "key 'when' is missing");
      }
      severity sev{};
      confidence conf{};
      read_weight(item, sev, conf);
      if (item.find("severity") != nullptr) v.sev = sev;
      if (item.find("confidence") != nullptr) v.conf = conf;
      if (const auto* m = item.find("message")) v.message = message(*m, "message");
      if (const auto* m = item.find("remediation")) v.remediation = message(*m, "remediation");
      r.variants.push_back(std::move(v));
    }
  }

  void read_exceptions(const yaml_node& n, rule& r, const std::set<field_group>& present) {
    if (!expect(n, kind::sequence, "'exceptions'")) return;
    for (const auto& item : n.items) {
      if (!expect(item, kind::map, "an exception")) continue;
      check_keys(item, exception_keys, "an exception");
      rule_exception x;
      for (const auto key : {"id", "when", "reason"})
        if (item.find(key) == nullptr) fail(item, "CGE010", "key '" + std::string(key) + "' is missing");
      x.id = text(item.find("id"), "'id'");
      x.reason = text(item.find("reason"), "'reason'");
      x.owner = text(item.find("owner"), "'owner'");
      x.expires = text(item.find("expires"), "'expires'");
      if (const auto* e = item.find("expires"); e != nullptr && !is_date(x.expires)) {
        fail(*e, "CGE014", "'" + x.expires + "' is no date", "write it as YYYY-MM-DD");
      }
      x.expired = !x.expires.empty() && x.expires < today_;
      if (x.expired) {
        out_->warnings.push_back(
            doc_->error(*item.find("expires"), "CGW002", "exception '" + x.id + "' has expired (" + where_ + ")"));
      }
      if (const auto* w = item.find("when")) x.when = condition(*w, "when", present);
      r.exceptions.push_back(std::move(x));
    }
  }

  static bool is_date(const std::string& s) {
    if (s.size() != 10 || s[4] != '-' || s[7] != '-') return false;
    for (const std::size_t i : {0, 1, 2, 3, 5, 6, 8, 9})
      if (s[i] < '0' || s[i] > '9') return false;
    const int month = (s[5] - '0') * 10 + s[6] - '0', day = (s[8] - '0') * 10 + s[9] - '0';
    return month >= 1 && month <= 12 && day >= 1 && day <= 31;
  }

  void read_threshold(const yaml_node& n, rule& r) {
    if (!expect(n, kind::map, "'threshold'")) return;
    check_keys(n, threshold_keys, "a threshold");
    rule_threshold t;
    const auto* least = n.find("at_least");
    if (least == nullptr) {
      fail(n, "CGE010", "key 'at_least' is missing");
    } else {
      const auto [end, error] =
          std::from_chars(least->text.data(), least->text.data() + least->text.size(), t.at_least);
      if (error != std::errc{} || end != least->text.data() + least->text.size() || t.at_least == 0) {
        fail(*least, "CGE014", "'at_least' is a number from 1");
      }
    }
    if (const auto* p = n.find("per")) t.per = fields(*p, "per");
    if (const auto* w = n.find("within")) {
      std::vector<condition_problem> found;
      const auto e = parse_condition("event.duration < " + w->text, found);
      const bool good = e && e->type == expr::kind::compare && e->values.front().type == literal::kind::duration;
      if (!good) fail(*w, "CGE014", "'within' is a time, such as 20us");
      if (good) t.within_ns = e->values.front().number;
    }
    r.threshold = std::move(t);
  }

  // ---- overrides ----

  void read_override(const yaml_node& n) {
    where_.clear();
    if (!expect(n, kind::map, "an override")) return;
    check_keys(n, override_keys, "an override");
    const auto* id = n.find("rule");
    if (id == nullptr) return fail(n, "CGE010", "key 'rule' is missing");
    const auto it =
        std::find_if(out_->rules.begin(), out_->rules.end(), [&](const auto& r) { return r->about.id == id->text; });
    if (it == out_->rules.end()) {
      std::vector<std::string_view> ids(ids_.begin(), ids_.end());
      const std::string near = did_you_mean(id->text, ids);
      return fail(*id, "CGE032", "there is no rule '" + id->text + "' to override",
                  near.empty() ? "" : "did you mean '" + near + "'?");
    }
    rule& r = **it;
    where_ = "override of " + id->text;
    read_weight(n, r.about.sev, r.about.conf);
    if (const auto* e = n.find("enabled"))
      if (const auto w = word(*e, bool_words, "truth value")) r.about.enabled = *w == 1;
    for (const auto& [key, type] :
         {std::pair{"and_when", expr::kind::all_of}, std::pair{"or_when", expr::kind::any_of}}) {
      const auto* more = n.find(key);
      if (more == nullptr) continue;
      auto e = condition(*more, key, groups_of(r));
      if (!e || !r.when) continue;
      auto both = std::make_unique<expr>();
      both->type = type;
      both->children.push_back(std::move(r.when));
      both->children.push_back(std::move(e));
      r.when = std::move(both);
      r.possible_if_ok = possible_if_ok(*r.when);
    }
  }

  std::string today_;
  std::vector<std::shared_ptr<const yaml_document>> documents_;
  const yaml_document* doc_ = nullptr;
  std::string where_; // "rule MY101", for messages
  std::vector<problem> problems_;
  std::map<std::string, macro_entry> macros_;
  std::map<std::string, list_entry> lists_;
  std::vector<std::string> macro_path_;
  std::set<std::string, std::less<>> ids_;
  node_list rule_nodes_, override_nodes_;
  std::unique_ptr<compiled_rules> out_ = std::make_unique<compiled_rules>();
};

} // namespace

result<std::unique_ptr<compiled_rules>> compile_rules(std::vector<std::pair<std::string, std::string>> files,
                                                      const std::string& today) {
  loader l(today);
  for (auto& [name, text] : files) l.read(name, std::move(text));
  return l.finish();
}

} // namespace capturesan
