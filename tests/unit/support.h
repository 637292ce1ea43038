// Shared by the unit tests of the analyzer.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "analyzer/auditor.h"
#include "analyzer/trace_builder.h"
#include "tests/support/catch.hpp"

namespace capturesan {

// Every rule file that is shipped, in order of name.
inline std::vector<std::string> shipped_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(CAPTURESAN_RULES))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

inline const rule_set& shipped_rules() {
  static const rule_set rules = [] {
    auto loaded = rule_set::load(shipped_files());
    if (!loaded) {
      std::string all;
      for (const auto& p : loaded.problems()) all += to_text(p);
      FAIL(all);
    }
    return std::move(loaded.value());
  }();
  return rules;
}

// The findings of the shipped rules for a trace.
struct judged {
  explicit judged(std::vector<std::byte> bytes, const rule_set& rules = shipped_rules())
      : audit_(rules.compiled(), {}) {
    auto added = audit_.add_source(from_memory(std::move(bytes)), "test");
    REQUIRE(added);
    audit_.finish();
  }
  const std::vector<finding>& findings() const { return audit_.findings(); }
  const audit_summary& summary() const { return audit_.summary(); }
  std::vector<std::string> rules() const {
    std::vector<std::string> out;
    for (const auto& f : findings()) out.push_back(f.rule);
    return out;
  }

 private:
  auditor audit_;
};

} // namespace capturesan
