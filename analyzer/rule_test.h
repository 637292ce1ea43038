// The tests inside a rule: events as YAML, run through reader, model and engine like any trace.
#pragma once

#include <vector>

#include "analyzer/rule.h"

namespace capturesan {

// Runs the rule's tests. All rules of `rules` are active, so that a test sees what a user would see; only findings of
// `r` count.
std::vector<rule_test_result> run_rule_tests(const rule& r, const compiled_rules& rules);

// What is wrong with the tests themselves, each at its own place; nothing is judged.
std::vector<problem> check_rule_tests(const rule& r);

} // namespace capturesan
