// Puts the events of all threads of all processes into one order: by the instant of classes.def (entry or exit) on the
// clock of the trace headers.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "analyzer/reader.h"

namespace capturesan {

struct merged_event {
  trace_file* file = nullptr;
  thread_cursor* cursor = nullptr;
  const call_ref* call = nullptr;
  std::int64_t at_ns = 0; // the instant it is ordered by
};

class merger {
 public:
  static constexpr std::int64_t no_horizon = std::numeric_limits<std::int64_t>::max();

  void add(trace_file& file) { files_.push_back(&file); }

  // Looks for cursors that have got something to read. Call after refreshing the files.
  void collect();

  // Calls f(const merged_event&) for every event up to the horizon; later ones stay for the next call. What the cursor
  // shows is valid during the call.
  template <class F>
  void drain(std::int64_t horizon_ns, F&& f) {
    while (!heap_.empty() && heap_.front().at_ns <= horizon_ns) {
      merged_event e = take_first();
      const std::int64_t next = heap_.empty() ? no_horizon : heap_.front().at_ns;
      bool more = true;
      do { // stay with one thread as long as it is the earliest
        f(static_cast<const merged_event&>(e));
        more = load_next(e);
      } while (more && e.at_ns <= next && e.at_ns <= horizon_ns);
      if (more) put(e);
    }
  }

 private:
  merged_event take_first();
  void put(const merged_event& e);
  bool load_next(merged_event& e);

  std::vector<trace_file*> files_;
  std::vector<merged_event> heap_; // earliest first
};

} // namespace capturesan
