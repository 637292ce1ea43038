// What one trace file says about its process as a whole, apart from the order of its events: identity, clock, call
// names, call stacks, loaded modules. Filled by the reader, read by everyone after it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/gaps.h"
#include "trace/call.h"
#include "trace/event.h"
#include "trace/format.h"

namespace capturesan {

// What a call id of a file stands for.
struct call_ref {
  std::string symbol; // ABI name; "call <id>" if the file does not name it
  std::string api;    // documented name
  trace::call_class cls = trace::call_class::attribute;
  bool known = false;       // this build has it in its list
  bool named = true;        // the file says which call it is
  bool per_thread = false;  // stream 0 is the thread's own default stream
  bool order_entry = false; // takes its place at entry, not at exit
};

struct traced_thread {
  std::uint32_t index = 0, tid = 0;
  std::string name;
  std::uint64_t stack_low = 0, stack_high = 0;
  std::uint64_t ended =
      0; // ticks; known only of threads that left a capture open, or whose graphs may refer to their stack
};

struct traced_module {
  std::uint64_t bias = 0, begin = 0, end = 0;
  std::string build_id, path;
};

struct traced_text {
  trace::text_role role = trace::text_role::note;
  std::uint64_t key = 0;
  std::string text;
};

class traced_process {
 public:
  std::string path; // of the file
  std::uint32_t pid = 0, parent_pid = 0;
  trace::driver_kind driver = trace::driver_kind::unknown;
  std::uint32_t driver_version = 0;
  trace::trace_level level = trace::trace_level::lite;
  trace::process_state state = trace::process_state::running;
  trace::cupti_state cupti = trace::cupti_state::off;
  std::string driver_string, device;
  std::uint32_t capability = 0;                          // as in the header of the file
  std::uint64_t started_ns = 0;                          // CLOCK_REALTIME
  std::uint64_t lost = 0, lost_first = 0, lost_last = 0; // records, ticks
  trace::lost_why lost_reason = trace::lost_why::none;
  std::uint64_t recycled = 0; // chunks of the trace that were overwritten before they were read here
  bool truncated = false;     // cut off, or damaged somewhere
  trace_gaps gaps;
  std::uint64_t clock_ticks = 0, clock_ns = 0;
  double ns_per_tick = 1.0;
  std::vector<traced_text> texts; // those that belong to no event
  std::map<std::uint32_t, traced_thread> threads;

  // Nanoseconds of CLOCK_MONOTONIC; saturates on damaged input.
  std::int64_t to_ns(std::uint64_t ticks) const {
    const double ns = static_cast<double>(clock_ns) +
                      static_cast<double>(static_cast<std::int64_t>(ticks - clock_ticks)) * ns_per_tick;
    constexpr double most = 9.0e18;
    return static_cast<std::int64_t>(ns < -most ? -most : ns > most ? most : ns);
  }

  // Whether records of this span of time, or some of it, may be missing.
  bool may_miss(std::int64_t from_ns, std::int64_t until_ns) const;
  bool has_gaps() const {
    return lost > 0 || truncated || recycled > 0 || !gaps.unnamed.empty() || !gaps.unseen.empty();
  }
  // Damage: anything may be missing anywhere.
  void damaged() {
    truncated = true;
    gaps.cut.add(0, tick_span::no_end);
  }

  const call_ref& call(std::uint16_t id) {
    if (id < calls_.size() && !calls_[id].symbol.empty()) return calls_[id];
    return unnamed_call(id);
  }
  void name_call(std::uint16_t id, std::string_view symbol);

  // Return addresses, innermost first; empty if there is no such stack.
  std::span<const std::uint64_t> stack(std::uint32_t id) const;
  void add_stack(std::uint32_t id, std::span<const std::uint64_t> addresses);

  // Null if the address is in no module. The newest module wins where two overlap.
  const traced_module* module_at(std::uint64_t address) const;
  void add_module(traced_module m) { modules_.push_back(std::move(m)); }

 private:
  const call_ref& unnamed_call(std::uint16_t id);

  struct stack_place {
    std::uint32_t offset = 0, count = 0;
  };
  std::deque<call_ref> calls_; // references stay valid while it grows
  std::vector<std::uint64_t> addresses_;
  std::unordered_map<std::uint32_t, stack_place> stacks_;
  std::vector<traced_module> modules_;
};

} // namespace capturesan
