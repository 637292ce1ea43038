// One map of a rule file to one compiled rule, or to a change of one.
#pragma once

#include <memory>
#include <string>

#include "analyzer/rule.h"
#include "analyzer/rule_names.h"

namespace capturesan {

class rule_reader {
 public:
  rule_reader(rule_context& context, rule_names& names, std::string today)
      : context_(context), names_(names), today_(std::move(today)) {}

  // Null if `n` is no map; a rule with problems is returned as far as it could be read.
  std::unique_ptr<rule> read(const std::shared_ptr<const yaml_document>& doc, const yaml_node& n);
  // `n` has been checked; conditions are combined as trees, never as text.
  void change(rule& r, const yaml_node& n);

  std::vector<problem> warnings; // exceptions that have expired

 private:
  void read_id(const yaml_node& id, rule& r);
  void read_events(const yaml_node* n, rule& r);
  void read_variants(const yaml_node* n, rule& r);
  void read_exceptions(const yaml_node* n, rule& r);
  void check_level(const yaml_node& n, const rule& r);
  message_template message(const yaml_node* n, const std::string& key, const rule& r);
  std::vector<field_id> fields(const yaml_node* n, const rule& r);

  rule_context& context_;
  rule_names& names_;
  std::string today_;
};

} // namespace capturesan
