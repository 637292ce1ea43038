#include "analyzer/rule_loader.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "analyzer/rule_reader.h"
#include "analyzer/version.h"

namespace capturesan {

namespace {

constexpr int schema_version = 1;

using kind = yaml_node::kind;

// "0.4.0" as {0, 4}; empty if it is no version.
std::vector<int> version_parts(std::string_view v) {
  std::vector<int> out;
  while (!v.empty()) {
    int number = 0;
    const auto [end, error] = std::from_chars(v.data(), v.data() + v.size(), number);
    if (error != std::errc{} || number < 0) return {};
    out.push_back(number);
    v.remove_prefix(static_cast<std::size_t>(end - v.data()));
    if (v.starts_with(".") && v.size() > 1) {
      v.remove_prefix(1);
    } else if (!v.empty()) {
      return {};
    }
  }
  while (out.size() > 1 && out.back() == 0) out.pop_back();
  return out;
}

class loader {
 public:
  explicit loader(std::string today) : reader_(context_, names_, std::move(today)) {}

  void read(const std::string& name, std::string text) {
    auto parsed = yaml_document::parse(name, std::move(text));
    if (!parsed) {
      for (const auto& p : parsed.problems()) context_.add(p);
      return;
    }
    documents_.push_back(std::make_shared<const yaml_document>(std::move(parsed.value())));
    context_.doc = documents_.back().get();
    read_file(context_.doc->root());
  }

  result<std::unique_ptr<compiled_rules>> finish() {
    context_.where.clear();
    names_.compile_macros();
    for (const auto& [doc, node] : rule_nodes_) read_rule(doc, *node);
    for (const auto& [doc, node] : override_nodes_) read_override(doc, *node);
    if (context_.failed()) return context_.take_problems();
    out_->warnings = names_.unused();
    out_->warnings.insert(out_->warnings.end(), reader_.warnings.begin(), reader_.warnings.end());
    std::sort(out_->rules.begin(), out_->rules.end(),
              [](const auto& a, const auto& b) { return a->about.id < b->about.id; });
    return std::move(out_);
  }

 private:
  using node_list = std::vector<std::pair<std::shared_ptr<const yaml_document>, const yaml_node*>>;

  void read_file(const yaml_node& root) {
    context_.where.clear();
    if (!context_.expect(root, kind::map, "a rule file") || !check_schema(root)) return; // nothing else can be trusted
    if (const auto* n = root.find("requires"); n != nullptr && !check_version(*n)) return;
    context_.check(root, rule_object::file);
    if (const auto* n = root.find("lists")) names_.read_lists(*n);
    if (const auto* n = root.find("macros")) names_.read_macros(*n);
    collect(root.find("rules"), rule_nodes_);
    collect(root.find("overrides"), override_nodes_);
  }

  bool check_schema(const yaml_node& root) {
    const yaml_node* schema = root.find("schema");
    if (schema == nullptr) {
      context_.add(
          context_.doc->error_at(root.at, "CGE015", "key 'schema' is missing", "begin the file with `schema: 1`"));
    } else if (schema->text != std::to_string(schema_version)) {
      context_.fail(*schema, "CGE015",
                    "rules file is schema " + schema->text + ", this capturesan reads " +
                        std::to_string(schema_version));
    } else {
      return true;
    }
    return false;
  }

  // ">=0.4": at least that version. False if this one is too old: whatever else it finds would mislead.
  bool check_version(const yaml_node& n) {
    const std::vector<int> want =
        n.text.starts_with(">=") ? version_parts(std::string_view(n.text).substr(2)) : std::vector<int>{};
    if (n.type != kind::scalar || want.empty()) {
      context_.fail(n, "CGE016", "'requires' is written like \">=0.1\"");
      return true;
    }
    if (want <= version_parts(engine_version)) return true;
    context_.fail(n, "CGE016",
                  "the rules need capturesan " + n.text.substr(2) + " or newer, this is " +
                      std::string(engine_version));
    return false;
  }

  void collect(const yaml_node* n, node_list& to) {
    if (n == nullptr) return;
    for (const auto& item : n->items) to.emplace_back(documents_.back(), &item);
  }

  void read_rule(const std::shared_ptr<const yaml_document>& doc, const yaml_node& n) {
    context_.doc = doc.get();
    auto r = reader_.read(doc, n);
    if (!r) return;
    if (const yaml_node* id = n.find("id")) {
      const auto [known, fresh] = by_id_.try_emplace(id->text, r.get());
      if (!fresh) {
        const source_position& other = known->second->about.at;
        context_.fail(*id, "CGE031", "rule id '" + id->text + "' occurs twice",
                      "the other one is at " + other.file + ":" + std::to_string(other.line) + ":" +
                          std::to_string(other.column));
      }
    }
    out_->rules.push_back(std::move(r));
  }

  void read_override(const std::shared_ptr<const yaml_document>& doc, const yaml_node& n) {
    context_.doc = doc.get();
    context_.where.clear();
    const yaml_node* id = n.find("rule");
    const auto r = id == nullptr ? by_id_.end() : by_id_.find(id->text);
    if (r != by_id_.end()) context_.where = "override of " + id->text;
    if (!context_.check(n, rule_object::change) || id == nullptr) return;
    if (r != by_id_.end()) return reader_.change(*r->second, n);
    std::vector<std::string_view> ids;
    for (const auto& [known, r2] : by_id_) ids.push_back(known);
    const std::string near = did_you_mean(id->text, ids);
    context_.fail(*id, "CGE032", "there is no rule '" + id->text + "' to override",
                  near.empty() ? "" : "did you mean '" + near + "'?");
  }

  rule_context context_;
  rule_names names_{context_};
  rule_reader reader_;
  std::vector<std::shared_ptr<const yaml_document>> documents_;
  node_list rule_nodes_, override_nodes_;
  std::map<std::string, rule*> by_id_;
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
