// Spans of time in which records of a process are missing. What hangs on such a span cannot be told for certain.
#pragma once

#include <algorithm>
#include <cstdint>

namespace capturesan {

struct tick_span {
  static constexpr std::uint64_t no_end = UINT64_MAX;
  std::uint64_t first = UINT64_MAX, last = 0; // ticks; empty until something is added. 0: from the beginning on

  bool empty() const { return first > last; }
  void add(std::uint64_t from, std::uint64_t to) {
    first = std::min(first, from);
    last = std::max(last, to);
  }
};

// One span for each way to lose records, so that a long run keeps few of them.
struct trace_gaps {
  tick_span dropped;  // not written
  tick_span unnamed;  // calls that the file does not name
  tick_span recycled; // overwritten before they were read here
  tick_span unseen;   // something was used that no record made: from the beginning until then
  tick_span cut;      // from the first instant at which a record behind the cut may have been written
};

} // namespace capturesan
