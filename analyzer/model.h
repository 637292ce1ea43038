// The state of the traced processes, rebuilt from their events. Its size follows what is alive in the processes, not
// how long they run. It states facts; rules judge.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/model_state.h"

namespace capturesan {

// An event with what the model knows about it. Valid until the next event.
struct event_view {
  process_state* process = nullptr;
  thread_state* thread = nullptr;
  const call_ref* call = nullptr;
  const trace::event* event = nullptr; // null for what is not a call (trace_lost, …)
  std::int64_t at_ns = 0;

  capture_state* capture = nullptr; // the capture the call is about; may have ended with this call
  trace::capture_status status = trace::capture_status::unknown; // of that capture after the call
  bool on_capturing_stream = false;
  bool after_culprit = false;                 // the capture had its culprit before
  std::vector<capture_state*> claimed;        // captures whose culprit this call is
  const event_state* operand_event = nullptr; // last record of the event the call names, as it was before the call
  bool operand_open = false;                  // ... is in a capture that is still open
  exec_state* exec = nullptr;
  bool is_replay = false;             // of exec
  std::string_view python;            // frames of the call as CPython printed them; empty if none were recorded
  std::string_view runtime_call;      // the CUDA runtime call it came from; empty if CUPTI did not tell
  std::uint64_t modules_loaded = 0;   // by the driver inside the call, as CUPTI told
  std::vector<pointer_use*> pointers; // of the replay: all at the first, then those whose memory changed
  bool names_unknown = false;         // the status of a capture was recorded whose begin was not
  bool broke_capture = false;         // it failed with a result that is no capture's, and left the capture invalidated
  std::uint64_t piled_up = 0,
                piled_live = 0; // of an instantiation: execs like this one that lie idle, and all made there
  std::vector<notice> notices;  // what this event made clear
};

bool is_capture_result(int result);                          // 900-908
inline bool is_cascade(int result) { return result == 901; } // a capture that was invalidated before

class model {
 public:
  process_state& add(trace_file& file);

  // Brings the state up to date with one event and says what it is about.
  void apply(const merged_event& e, event_view& view);

  // Captures that ended invalidated before `ns` and whose culprit nobody will claim any more.
  std::vector<std::pair<process_state*, std::unique_ptr<capture_state>>> take_unexplained(std::int64_t ns);

  // What only the end of a process shows. Call once, after its last event; what a gap in the trace may hide is left
  // out.
  void at_end(process_state& p, std::vector<notice>& out);

  const std::vector<std::unique_ptr<process_state>>& processes() const { return processes_; }
  std::uint64_t replays() const { return replays_; }

  // Called when a capture begins or ends, when an exec is made, changed or destroyed; for the summary.
  std::function<void(process_state&, const capture_state&)> on_capture;
  std::function<void(process_state&, const exec_state&)> on_exec;
  bool keep_parameters = false; // of every node; for comparing graphs
  code_reader* code = nullptr;  // may be null

 private:
  thread_state& thread(process_state& p, std::uint32_t index);
  void apply_call(process_state& p, event_view& v, const thread_cursor& records);
  void apply_failure(process_state& p, event_view& v);
  void apply_memory(process_state& p, event_view& v);
  void apply_object(process_state& p, event_view& v);
  static allocation freed_by(const event_view& v);
  void child_added(process_state& p, const event_view& v);
  static void queue_free(process_state& p, const event_view& v);
  static void settle_frees(process_state& p, const event_view& v);

  // model_capture.cpp
  void begin_capture(process_state& p, event_view& v);
  void end_capture(process_state& p, event_view& v);
  void close_capture(process_state& p, capture_state& c, event_view& v);
  void stream_destroyed(process_state& p, event_view& v);
  void record_event(process_state& p, event_view& v);
  void wait_event(process_state& p, event_view& v);
  void count_work(process_state& p, event_view& v);
  void look_at_operand_event(process_state& p, event_view& v);
  void find_capture(process_state& p, event_view& v, const thread_cursor& records);
  void judge_refusal(process_state& p, event_view& v, const thread_cursor& records);
  static void broke_otherwise(process_state& p, event_view& v, const thread_cursor& records);

  // model_beside.cpp
  static kept_call keep(const event_view& v);
  static void note_captured(process_state& p, event_view& v);
  static void note_refused(event_view& v);
  static void note_beside(process_state& p, event_view& v);
  static void note_capture_end(process_state& p, event_view& v, capture_state& c);
  static void judge_dropped(process_state& p, graph_state& g, const exec_state* x, bool whole,
                            std::vector<notice>& out);
  static void graph_destroyed(process_state& p, event_view& v);
  static void abandoned_at_end(process_state& p, std::vector<notice>& out);

  // model_memory_nodes.cpp
  static void read_memory_nodes(process_state& p, exec_state& x, const event_view& v, const thread_cursor& records);
  static void check_memory_order(exec_state& x);
  void launch_memory(process_state& p, event_view& v);
  static void launch_failed(process_state& p, event_view& v);
  static void memory_event(process_state& p, event_view& v);
  static void orphan_memory(process_state& p, const exec_state& x, const event_view& v);
  static void leaks_at_end(process_state& p, std::vector<notice>& out);

  // model_code.cpp
  void ask_code(process_state& p, const exec_state& x, pointer_use& u, std::uint64_t base, std::uint64_t bytes) const;

  // model_builds.cpp
  static void build_failed(process_state& p, event_view& v);
  static void graph_cloned(process_state& p, const event_view& v);
  static void work_between(process_state& p, const event_view& v);
  static void build_succeeded(process_state& p, event_view& v, const exec_state& x);
  static void builds_at_launch(process_state& p, event_view& v);
  static void builds_at_end(process_state& p, std::vector<notice>& out);
  static void count_growth(process_state& p, event_view& v, exec_state& x);
  static void leave_growth(process_state& p, exec_state& x, bool destroyed);
  static void code_unloaded(process_state& p, const event_view& v, std::uint64_t holder, std::uint64_t gone);
  static void context_gone(process_state& p, const event_view& v, std::uint64_t context);
  static void blame_context(event_view& v);
  static void forget_functions(process_state& p, std::uint64_t holder);
  static void edited_code(exec_state& x, std::uint32_t node, bool function);
  static void stale_code_at_launch(process_state& p, event_view& v);
  static void pageable_at_launch(process_state& p, event_view& v);

  // model_graph.cpp
  void read_side_records(process_state& p, event_view& v, const thread_cursor& records);
  void read_function(process_state& p, const trace::payload_record& head, std::span<const std::byte> payload);
  void instantiate(process_state& p, event_view& v, const thread_cursor& records);
  void update_exec(process_state& p, event_view& v, const thread_cursor& records);
  void edit_exec(process_state& p, event_view& v, const thread_cursor& records);
  void launch_graph(process_state& p, event_view& v);
  void pending_launch(process_state& p, event_view& v);
  static exec_state* exec_of(process_state& p, event_view& v);
  bool find_stale(process_state& p, event_view& v, bool first);
  static void describe_origin(process_state& p, exec_state& x, const event_view& v);
  static void pair_nodes(exec_state& x, const std::vector<exec_node>& before);
  static void doubt_twins(exec_state& x, std::uint32_t node);
  static void replace_nodes(exec_state& x, std::uint64_t handle, exec_state& fresh);

  // model_pointers.cpp
  void read_nodes(process_state& p, exec_state& x, const event_view& v, const thread_cursor& records);
  void read_node(process_state& p, exec_state& x, const event_view& v, const side_record& r);
  void enter_window(const process_state& p, const exec_state& x, const event_view& v, const trace::node_record& n);
  void add_range(process_state& p, exec_state& x, const pointer_use& use, std::uint64_t bytes);
  bool add_pointer(process_state& p, exec_state& x, pointer_use use);
  void add_host(process_state& p, exec_state& x, const event_view& v, pointer_use use, std::uint64_t bytes,
                std::uint64_t stack_high);
  void follow_table(process_state& p, exec_state& x, const pointer_use& at);
  void table_copied(process_state& p, const event_view& v, const thread_cursor& records);
  void read_parameters(process_state& p, exec_state& x, std::uint32_t node, std::span<const std::byte> block);
  void keep_for_questions(exec_node& n, std::span<const std::byte> block, std::span<const pointer_use> uses,
                          std::span<const pointer_use> own) const;
  void keep_dead_if_needed(process_state& p);
  static void add_block(process_state& p, const event_view& v, std::uint64_t base, std::uint64_t size,
                        std::uint64_t flags);
  void block_event(process_state& p, const event_view& v);
  void host_gone(process_state& p, const event_view& v);
  static void registered_gone(process_state& p, exec_state& x, std::uint64_t base, std::uint64_t size,
                              const event_view& v);
  void stacks_gone(process_state& p, exec_state& x, const event_view& v);
  std::vector<trace::payload_record> descriptors_; // read, of the node that follows
  node_window window_;                             // of the node that is read
  std::uint64_t top_nodes_ = 0;                    // read before it, outside of child graphs
  bool window_guessed_ = false;
  void exec_ready(process_state& p, exec_state& x);
  void destroy_exec(process_state& p, std::uint64_t handle, const event_view* by);

  std::vector<std::unique_ptr<process_state>> processes_;
  std::unordered_map<const trace_file*, process_state*> by_file_;
  const trace_file* last_file_ = nullptr; // one-entry caches: events come in runs of one thread
  process_state* last_process_ = nullptr;
  thread_state* last_thread_ = nullptr;
  int captures_ = 0, execs_ = 0;
  std::uint64_t replays_ = 0;
};

// Facts that follow from a view; worked out only when a rule asks.
stream_key key_of(std::uint64_t stream, bool per_thread_variant, std::uint32_t thread);
stream_kind kind_of_stream(const event_view& v);
thread_role role_of(const event_view& v);
last_record last_record_of(const event_view& v);
// At a call that was made at `entry_ns`.
pointer_state state_of(const process_state& p, const pointer_use& use, std::int64_t entry_ns);
// Of memory that is gone: a launch on that stream may run before the free does.
bool launch_may_come_first(const process_state& p, const allocation& dead, stream_key launch);
std::string stream_name(const process_state& p, stream_key key);

} // namespace capturesan
