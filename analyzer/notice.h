// What the model noticed that no single call shows: a call whose meaning only later calls decide, a state that outlived
// its object. A rule sees a notice as an event of its own (own_event), about the call that is kept with it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "analyzer/fields.h"
#include "analyzer/process.h"
#include "trace/event.h"

namespace capturesan {

struct capture_state;
struct exec_state;
struct exec_node;
struct pointer_use;

// A call that is judged later than it was made.
struct kept_call {
  trace::event event{};
  const call_ref* call = nullptr; // null: none
  std::uint32_t thread = 0;
  std::int64_t at_ns = 0;
  std::string python;
};

// What the graph has instead of a call that was refused while its capture went on.
enum class substitute : std::uint8_t {
  none,     // nothing that could stand for it was captured after it
  unlikely, // kernels were, but none names both its source and its destination
  possible, // a kernel that may do the same, or kernels whose parameters are not known
};

enum class abandoned_by : std::uint8_t { thread_end, stream_destroy, process_end, exec };

// How memory nodes were misused.
enum class memory_fault : std::uint8_t {
  relaunch_unfreed,      // launched again while its allocation of the launch before lives
  second_exec,           // instantiated twice
  copied,                // cloned
  use_after_free,        // a node that comes after the free uses the memory
  use_unordered,         // neither before nor after the free
  use_before_allocation, // no path from the allocation
  free_of_unallocated,   // freed while no launch has allocated it
  leaked,                // the exec was destroyed while it was allocated, and nobody freed it
};

// Groups of fields are filled by kind; see fields.def.
struct notice {
  own_event what = own_event::capture_unexplained;
  kept_call about;
  capture_state* capture = nullptr; // these two live as long as the event at hand
  exec_state* exec = nullptr;
  std::shared_ptr<capture_state> kept_capture; // keeps `capture` alive if its process has forgotten it

  // operation_dropped
  substitute instead = substitute::none;
  // work_escaped
  std::uint64_t escaped_launches = 0, escaped_operations = 0;
  bool reads_captured = false; // `about` reads what a captured, not yet executed operation writes last
  bool reads_fresh = false;    // ... from memory that did not exist before the capture and that nothing else has filled
  bool ended_empty = false;
  bool default_stream = false; // all of these launches went to a default stream
  // first_use
  std::uint64_t loads = 0, slow_calls = 0;
  std::int64_t load_ns = 0;
  // capture_abandoned
  abandoned_by abandoned = abandoned_by::process_end;
  // graph_memory
  memory_fault fault = memory_fault::leaked;
  std::uint64_t address = 0, bytes = 0, count = 1;
  std::int64_t node = -1, memory_node = -1; // the user, and the allocation or free; positions in the driver's list
  const exec_node* user = nullptr;
  std::uint8_t sure = 0; // certainty
  std::shared_ptr<pointer_use> use;
  std::uint64_t block = 0; // begin of the memory that it uses
  bool scratch = false; // leaked: the graph itself threw away what it allocated the time before, and no other names it
  // build_failed
  bool update = false, recovered = false, old_launched = false, from_capture = false;
  bool nothing_between = false; // no other work ran between a refused update and the launch; known at level full only
  // code_unloaded
  std::string kernel, unloaded_by;
  std::uint64_t code = 0; // module, library or context
  // pageable_copy: address, bytes, node, and
  bool to_host = false;
};

} // namespace capturesan
