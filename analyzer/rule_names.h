// Lists and macros, and the conditions that use them.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "analyzer/rule_context.h"

namespace capturesan {

class rule_names {
 public:
  explicit rule_names(rule_context& context) : context_(context) {}

  void read_lists(const yaml_node& n);
  void read_macros(const yaml_node& n);
  // After all files have been read: a macro may name one of a later file.
  void compile_macros();

  // The scalar `n`, the value of `key`, as a checked tree; null if it has problems. `present` are the groups of fields
  // that are there whenever it is evaluated, `never` those that never are.
  std::unique_ptr<expr> condition(const yaml_node& n, const std::string& key, std::set<field_group> present,
                                  std::set<field_group> never) {
    int depth = 0;
    return condition(n, key, std::move(present), std::move(never), depth);
  }

  // Names of the macros that a condition uses, directly or through others, with their text; in order of first use.
  std::vector<std::pair<std::string, std::string>> used_by(const std::string& condition_text) const;

  // Warnings: what nobody uses.
  std::vector<problem> unused() const;

 private:
  struct macro {
    const yaml_document* doc = nullptr;
    const yaml_node *key = nullptr, *text = nullptr;
    std::unique_ptr<expr> tree;
    enum class progress { fresh, under_way, done } state = progress::fresh;
    int depth = 0; // of the macros it uses, itself included
    bool used = false;
  };
  struct list {
    const yaml_document* doc = nullptr;
    const yaml_node* key = nullptr;
    std::vector<literal> values;
    bool used = false;
  };

  std::unique_ptr<expr> condition(const yaml_node& n, const std::string& key, std::set<field_group> present,
                                  std::set<field_group> never, int& deepest);
  void compile(const std::string& name, macro& m);
  void too_deep(macro& m);
  void set_item_types(const expr& e);
  bool check_name(const yaml_node& key);

  rule_context& context_;
  std::map<std::string, macro> macros_;
  std::map<std::string, list> lists_;
  std::vector<std::string_view> macro_names_, list_names_; // for hints
  std::vector<std::string> path_;                          // of macros being compiled
  std::size_t values_used_ = 0;                            // items of lists in all conditions together
};

} // namespace capturesan
