// Suppressions: findings that somebody has looked at and accepted, with a reason and, if wanted, an end. Read from a
// YAML file of the user's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "analyzer/audit.h"
#include "analyzer/finding.h"
#include "analyzer/pattern.h"
#include "analyzer/result.h"

namespace capturesan {

struct suppression {
  std::string rule, reason, owner, expires; // expires: YYYY-MM-DD, the first day it does not hold any more
  std::string fingerprint, api;             // empty = any
  std::vector<std::string> frames;          // globs on module!symbol; each must match some frame of the finding
  int line = 0;                             // in its file
  bool expired = false, used = false;

  // Compiled from the texts above.
  std::shared_ptr<const pattern> rule_pattern, api_pattern;
  std::vector<std::shared_ptr<const pattern>> frame_patterns;

  bool matches(const finding& found) const;
  std::string about() const; // in words, without line or address: "CS101 in libnccl.so!*"
};

class suppression_list {
 public:
  // `today` as YYYY-MM-DD. Fails with every problem of the file.
  static result<suppression_list> parse(const std::string& file, const std::string& text, const std::string& today);

  // Marks the finding if a suppression that holds matches it.
  void apply(finding& found);

  // What CS903 says: expired ones, and those that matched nothing although their rules were evaluated to the end.
  std::vector<own_note> notes(const audit_summary& summary) const;

  const std::vector<suppression>& all() const { return list_; }

 private:
  std::vector<suppression> list_;
};

// module!symbol of a native frame, file!function of a Python frame (the file without its folders).
std::string frame_key(const stack_frame& frame);

} // namespace capturesan
