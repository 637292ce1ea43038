// The analyzer as a library: traces and rules in, findings and a summary out. What `check`, `report` and `run` are made
// of. One audit belongs to one thread. Nothing here prints, exits or throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "analyzer/code_reader.h"
#include "analyzer/finding.h"
#include "analyzer/result.h"
#include "analyzer/symbolizer.h"

namespace capturesan {

// About a suppression, for CS903.
struct own_note {
  std::string text;       // a sentence without a line number: it is part of a fingerprint
  std::uint64_t line = 0; // in the suppression file
};

// What is to be said at the end about findings that were known already.
struct closing_notes {
  std::vector<own_note> suppressions;
  std::vector<std::string> remarks; // for audit_summary::notes
};

struct audit_options {
  std::vector<std::string> rule_files; // shipped packs and the user's, in order
  bool follow = false;                 // the traced processes may still be running
  bool keep = false;       // leaves a growing trace as it is: a second reader, beside the one it is recorded for
  bool list_nodes = false; // fills graph_summary::listed
  // Called with each new finding before on_new_finding; may set `suppressed` and `suppressed_by`. May be empty.
  std::function<void(finding&)> suppress;
  std::function<closing_notes(const audit_summary&)> close; // called once, by finish(); may be empty
  std::function<void(const finding&)> on_new_finding; // called once per fingerprint, when first found; may be empty
  std::shared_ptr<symbolizer> symbols;                // names addresses; null = module and offset only
  std::shared_ptr<code_reader> code;                  // looks into kernels; null = what only code tells is not known
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
