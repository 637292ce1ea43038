// The actions of `capturesan rules`, a file for those that show, check and write.
#pragma once

#include <string>
#include <vector>

#include "analyzer/rule_set.h"

namespace capturesan::cli {

// What `lint` and `test` are asked about: nothing named is everything.
struct rule_words {
  std::vector<std::string> files, ids;
};
rule_words split_words(const std::vector<std::string>& arguments);

// rules_check.cpp; they print to standard output and return the exit code.
int rules_lint(const result<rule_set>& rules, const rule_words& words);
int rules_test(const rule_set& rules, const rule_words& words);

// rules_write.cpp
int rules_fields(const std::string& prefix, bool json);
int rules_new(const std::string& id, const std::string& name);
// rules_schema.cpp: a JSON Schema (draft 7) of rule files, made of the tables the loader checks against.
std::string rule_schema();

// rules.cpp
int put(const std::string& text); // to standard output; exit_ok: what did not arrive is reported at the end
int refuse_rules(std::string message, std::string hint);
std::string near_id(const std::string& id, const std::vector<std::string>& ids);
bool same_id(const std::string& id, const std::string& typed); // as people type it: cs101 is CS101

} // namespace capturesan::cli
