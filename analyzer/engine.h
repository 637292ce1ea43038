// Evaluates the rules for one event after the other. Which rule looks at which event is an index over event kinds; an
// event no rule asks for costs one look.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "analyzer/findings.h"
#include "analyzer/model.h"
#include "analyzer/rule.h"

namespace capturesan {

class engine {
 public:
  engine(const compiled_rules& rules, finding_store& store);

  // A call, after the model has taken it in. Finds, links culprits and cascades.
  void on_event(event_view& v) {
    const auto kind = static_cast<std::size_t>(v.call->cls);
    if (v.event->result == 0 && (v.event->flags & trace::event_unfinished) == 0) {
      if (!for_ok_[kind].empty()) evaluate(v, for_ok_[kind]);
      return;
    }
    on_failure(v);
  }

  // Something the analyzer noticed itself.
  void on_own_event(own_event what, process_state& p, std::int64_t at_ns, const own_facts& facts,
                    capture_state* capture = nullptr);

  // What the model noticed, at an event or at the end of a process.
  void on_notice(process_state& p, notice& n);

  // A capture whose end nobody explained.
  void on_unexplained(process_state& p, capture_state& c);

 private:
  using rule_list = std::vector<const rule*>;
  int evaluate(event_view& v, const rule_list& rules); // index of the finding that owns the call; -1 if none
  int evaluate_subject(const rule& r, const subject& s);
  bool over_threshold(const rule& r, const subject& s);
  void on_failure(event_view& v);
  void on_unfinished(event_view& v);
  void settle(capture_state& c, int finding);

  finding_store& store_;
  std::vector<rule_list> for_ok_, for_failed_; // by event kind
  struct counter {
    std::uint64_t count = 0;
    std::int64_t since_ns = 0;
  };
  std::unordered_map<std::string, counter> thresholds_;
};

} // namespace capturesan
