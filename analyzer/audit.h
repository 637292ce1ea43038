// The analyzer as a library: traces and rules in, findings and a summary out. What `check`, `report` and `run` are made
// of. One audit belongs to one thread. Nothing here prints, exits or throws.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "analyzer/finding.h"
#include "analyzer/result.h"
#include "analyzer/symbolizer.h"

namespace capturesan {

struct audit_options {
  std::vector<std::string> rule_files; // shipped packs and the user's, in order
  bool follow = false;                 // the traced processes may still be running
  bool keep = false;       // leaves a growing trace as it is: a second reader, beside the one it is recorded for
  bool list_nodes = false; // fills graph_summary::listed
  std::function<void(const finding&)> on_new_finding; // called once per fingerprint, when first found; may be empty
  std::shared_ptr<symbolizer> symbols;                // names addresses; null = module and offset only
};

class audit {
 public:
  // Loads the rules. Fails with every problem of every file.
  static result<std::unique_ptr<audit>> create(audit_options options);
  virtual ~audit() = default;

  // Adds a trace file, or every trace file of a folder; a folder may be empty yet when following. May be called again
  // to pick up new files. Fails if a file is not a trace, or is one of another major version; a cut-off file is read as
  // far as it goes.
  virtual result<std::size_t> add(const std::string& path) = 0;

  // Reads what has been written since the last call and evaluates it. Returns the number of records read.
  virtual std::size_t poll() = 0;

  // Reads the rest, ends open captures and threads, evaluates what depends on the end. Idempotent.
  virtual void finish() = 0;

  // Valid until the next call of a non-const member.
  virtual const std::vector<finding>& findings() const = 0;
  virtual const audit_summary& summary() const = 0;
};

} // namespace capturesan
