#include "analyzer/audit.h"

#include "analyzer/auditor.h"

namespace capturesan {

result<std::unique_ptr<audit>> audit::create(audit_options options) {
  auto rules = rule_set::load(options.rule_files);
  if (!rules) return rules.problems();
  return std::unique_ptr<audit>(new auditor(std::move(rules.value()), std::move(options)));
}

} // namespace capturesan
