// The findings so far: one for each rule, call, exact place and whatever the rule groups by, with what hangs under it.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyzer/finding.h"
#include "analyzer/rule.h"
#include "analyzer/subject.h"

namespace capturesan {

class finding_store {
 public:
  finding_store(std::shared_ptr<symbolizer> names, std::function<void(finding&)> on_new)
      : names_(std::move(names)), on_new_(std::move(on_new)) {}

  // Adds a finding, or counts it if it is known. Returns its index.
  int add(const rule& r, const subject& s, const rule_variant* variant);

  // A call that failed because of finding `index`.
  void add_cascade(int index, const cascade_call& c);
  static void add_cascade(std::vector<cascade_call>& list, const cascade_call& c);

  const std::vector<finding>& all() const { return findings_; }
  symbolizer* names() const { return names_.get(); }

  // Seconds are counted from here.
  void set_start(std::int64_t ns) { start_ns_ = ns; }
  double seconds(std::int64_t ns) const { return static_cast<double>(ns - start_ns_) / 1e9; }

  thread_ref thread(const process_state& p, std::uint32_t index) const;
  capture_ref capture(process_state& p, const capture_state& c);
  std::vector<stack_frame> stack(process_state& p, std::uint32_t id);
  std::vector<stack_frame> frames(process_state& p, std::span<const std::uint64_t> addresses);

 private:
  // Of the call; only the first launch from a place has a whole stack, all have their caller.
  static std::span<const std::uint64_t> addresses_of(const process_state& p, const event_view& v);
  finding make(const rule& r, const subject& s, const rule_variant* variant);
  pointer_ref pointer(process_state& p, const subject& s, bool whole); // whole: with the stacks of the allocation
  static void doubt(finding& f, const subject& s);
  static std::string fingerprint(const rule& r, const subject& s, const finding& f);
  static std::string identity(const rule& r, const subject& s);
  static void add_place(std::string& all, const process_state& p, std::span<const std::uint64_t> addresses);
  void count(int index, const subject& s);
  void raise(int index, const rule& r, const subject& s, const rule_variant* variant);
  void number(finding& f, const std::string& kind);

  std::shared_ptr<symbolizer> names_;
  std::function<void(finding&)> on_new_;
  std::vector<finding> findings_;
  // What was counted of a finding.
  struct tally {
    std::string kind; // its fingerprint without the number
    const process_state* process = nullptr;
    std::pair<std::uint64_t, std::uint32_t> call; // its begin and thread
    std::pair<int, std::uint32_t> node;           // exec and node
    std::set<int> graphs;
    std::set<std::tuple<int, std::uint32_t, std::uint64_t, int>> uses; // exec, node, address, operand
  };
  struct listed {
    std::size_t count = 0;
    int last = 0;
  };
  struct alike {
    std::size_t sure = 0, suspected = 0; // numbers given out
    listed of_suspected;
    std::array<listed, 3> of_severity;
  };
  int not_listed(const listed& of, const std::string& kind);
  std::vector<tally> tallies_; // one for each finding
  std::unordered_map<std::string, int> by_identity_;
  struct unlisted_finding {
    severity sev;
    confidence conf;
    int counted_with;
  };
  std::unordered_map<std::string, unlisted_finding> unlisted_; // by identity
  std::unordered_map<std::string, alike> by_fingerprint_;
  std::int64_t start_ns_ = 0;
};

} // namespace capturesan
