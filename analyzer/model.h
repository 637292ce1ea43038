// The state of the traced processes, rebuilt from their events: threads and their modes, streams, events, captures,
// memory, graphs, execs. Its size follows what is alive in the processes, not how long they run. It states facts; rules
// judge.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analyzer/finding.h"
#include "analyzer/memory.h"
#include "analyzer/merger.h"
#include "analyzer/notice.h"
#include "analyzer/signature.h"

namespace capturesan {

enum class capture_mode : std::uint8_t { global, thread_local_, relaxed }; // as CUstreamCaptureMode
enum class stream_kind : std::uint8_t { unknown, legacy, per_thread, blocking, nonblocking };
enum class last_record : std::uint8_t { none, eager, open_capture, ended_capture, external };
enum class thread_role : std::uint8_t { none, owner, participant, outsider };
// How a word of a node is known to be an address: operand of a copy, memset or the like; a kernel parameter of 8 bytes;
// a struct of which the kernel's name says that it is nothing but addresses; a tensor map; none of these.
// tabled: not in the node, but in memory that a parameter points to, as it was copied there.
enum class certainty : std::uint8_t { exact, typed, declared, descriptor, inferred, tabled };
// What a node does with an address.
enum class operand : std::uint8_t { parameter, destination, source, data, batch };
enum class pointer_state : std::uint8_t { live, unmapped, other_owner, cached };

// A stream as an object, whatever name a call gave it: handle, or one of the default streams.
using stream_key = std::uint64_t;

// How far into the work of each stream of a capture something reaches: stream -> number of its last work.
using reach = std::map<stream_key, std::uint64_t>;

// A refused call whose operation the graph lacks, unless something else took its place.
struct dropped_call {
  kept_call about;
  std::uint64_t target = 0, source = 0, bytes = 0; // of the first copy; 0 = not known
  std::uint64_t operations = 0;                    // captured before it
  std::uint64_t kernels = 0;                       // captured before it
};

// Bytes that a captured copy or set writes when the graph runs.
struct captured_write {
  std::uint64_t address = 0, bytes = 0;
  std::uint64_t operation = 0; // number of it in the capture
  bool copies = false;
};

// What a capture's own thread did outside of it, while it was open.
struct side_work {
  kept_call escaped;        // the first launch, copy or set on a stream that is not part of it
  kept_call reader;         // the first that reads what the capture writes
  bool reads_fresh = false; // that one, from memory that was allocated during the capture and nothing has filled since
  std::uint64_t launches = 0, operations = 0;
  std::uint64_t to_named = 0; // launches on streams that are no default streams
  kept_call load;             // the first that loaded code
  std::uint64_t loads = 0, slow_calls = 0;
  std::int64_t load_ns = 0;
};

struct capture_state {
  int id = 0;
  std::uint64_t stream = 0; // as passed to begin
  stream_key origin = 0;
  std::uint64_t begin_ticks = 0, end_ticks = 0;
  std::int64_t begin_ns = 0, end_ns = 0;
  capture_mode mode = capture_mode::global;
  std::uint32_t thread = 0; // that began it
  std::uint32_t stack = 0;
  std::string place; // graph_state::place
  bool ended = false;
  int result = -1; // of the end call
  bool invalidated = false;
  std::uint64_t invalidated_ticks = 0; // end of the call after which it was found so
  bool culprit_seen = false;

  struct member {
    std::uint64_t work = 0; // number of the stream's last work
    reach reached;          // what its next work comes after
    std::uint32_t forked_by = 0;
    std::uint32_t fork_stack = 0;
  };
  std::map<stream_key, member> members; // the streams that are part of it, origin included
  std::set<std::uint32_t> workers;      // threads that put work into it
  std::uint64_t operations = 0;         // work captured
  std::uint64_t kernels = 0;            // launches among it
  std::uint64_t nodes = 0;              // of its graph, once it has ended well
  bool allocates = false;               // memory nodes among it

  kept_call begun; // its begin call
  std::vector<dropped_call> dropped;
  std::vector<captured_write> writes;
  bool writes_cut = false; // there were more
  side_work beside;

  // The engine's own notes.
  int culprit_finding = -1;          // index in its store
  int probable_finding = -1;         // explains the end if no culprit shows up
  std::vector<cascade_call> waiting; // 901s seen before the culprit

  std::vector<stream_key> unjoined() const;
};

struct stream_state {
  bool nonblocking = false;
};

struct event_state {
  int capture = 0; // id of the capture it was last recorded in; 0 = eager
  bool external = false;
  stream_key stream = 0;
  reach reached;
};

struct function_state {
  std::string name;                                            // mangled
  std::uint64_t module = 0;                                    // module or library it came from; 0 = not known
  std::vector<std::pair<std::uint16_t, std::uint16_t>> layout; // offset, size of each parameter
  std::vector<parameter_shape> shapes;                         // one per parameter, or none at all
  bool layout_known = false;                                   // also that there is no parameter
};

struct graph_state {
  int capture = 0; // id; 0 = built by hand
  std::uint64_t nodes = 0;
  bool memory_nodes = false;
  std::uint64_t family = 0;               // the same number for clones of one graph; 0 = it has none
  std::shared_ptr<capture_state> lacking; // its capture, if calls were dropped from it and that is not judged yet
  std::int64_t begin_ns = 0, end_ns = 0;  // of the capture
  std::uint32_t stack = 0;                // where it began
  std::string place;                      // line of the Python program that captured it; empty if not known
  std::int64_t edited_ns = 0;             // last change by hand
  bool instantiated = false;
};

// What is known of the addresses that a kernel node gets.
enum class coverage : std::uint8_t { no_kernel, resolved, takes_nothing, no_address, not_recorded };

struct exec_node {
  std::uint32_t index = 0; // in the driver's list
  std::uint64_t node = 0;  // handle
  trace::node_type type = trace::node_type::empty;
  bool enabled = true;
  coverage covered = coverage::no_kernel;
  std::uint32_t parent = 0;                       // index + 1 of the child-graph node it is inside of
  std::shared_ptr<const function_state> function; // of a kernel node
  // As recorded; only with model::keep_parameters.
  std::uint64_t value[5] = {};
  std::vector<std::byte> parameters;
};

// An address in a node that was inside an allocation when the exec was made.
struct pointer_use {
  std::uint64_t address = 0;
  std::shared_ptr<allocation> memory; // of the driver, or a range of host memory
  std::shared_ptr<allocation> block;  // of a framework's allocator inside it; null if there is none
  std::uint32_t node = 0;             // position in exec_state::nodes
  std::int32_t parameter = -1;
  std::uint32_t offset = 0; // in the parameter
  certainty sure = certainty::exact;
  operand role = operand::parameter;
  std::uint64_t table_at = 0;               // tabled: where the word lies
  pointer_state seen = pointer_state::live; // as it was reported last

  // Whose life counts: the block's, unless the memory under it is gone.
  const allocation& owner() const { return block && memory->live ? *block : *memory; }
};

// What an exec's memory nodes do, and how the graph's edges order it.
struct exec_memory {
  struct block {
    std::uint64_t address = 0, bytes = 0;
    std::uint32_t node = 0;  // position of the allocation in exec_state::nodes
    std::int64_t freed = -1; // position of its free in the same graph
  };
  std::vector<block> blocks;
  std::vector<std::uint64_t> foreign_frees; // addresses that other graphs allocate
  std::vector<pointer_use> uses;            // addresses inside memory that some graph allocates; `memory` is null
  std::vector<std::pair<std::uint64_t, std::uint64_t>> edges; // node handles, from and to
  std::vector<notice> faults;                                 // of the topology; told at the first launch
  bool free_on_launch = false;
  bool edges_known = false;
};

// A host operand of a copy node.
struct host_operand {
  std::uint64_t address = 0, bytes = 0;
  std::uint32_t node = 0; // position in exec_state::nodes
  bool to_host = false;
  bool told = false; // of a launch that it was in
};

struct exec_state {
  int id = 0;
  std::uint64_t handle = 0, graph = 0;
  int capture = 0;
  std::string place;             // graph_state::place
  std::uint32_t begin_stack = 0; // graph_state::stack
  bool has_stack_memory = false;
  std::int64_t begin_ns = 0, end_ns = 0; // of its capture; both the time of the call if there was none
  std::vector<std::pair<std::uint64_t, std::uint64_t>> own_memory; // its memory nodes: base, size
  std::vector<exec_node> nodes;
  std::vector<pointer_use> pointers;
  std::uint64_t replays = 0;
  bool unknown = false; // changed in a way the trace does not show: judge nothing
  bool changed = true;  // since the last replay
  std::vector<std::pair<std::uint64_t, std::uint32_t>>
      launch_sites;        // return address, stack of the first launch from there
  std::uint64_t epoch = 0; // process_state::memory_epoch() at the last replay

  exec_memory memory;
  std::vector<host_operand> host_operands;
  std::uint64_t context = 0; // current one when it was made
  struct {
    std::uint64_t handle = 0; // module, library or context that went while this exec lived; 0 = none
    std::string by;           // the call
    std::uint32_t node = 0;   // position of a kernel node whose code it held
    bool told = false;
  } unloaded;
  // Growth: execs made at one place, one like the other, that pile up.
  std::uint64_t content = 0; // of all nodes: types, functions, geometry, parameters
  std::uint32_t site = 0;    // stack of its instantiation
  bool idle = false;         // it was launched, another one was made at its place, and it has not been launched since
};

// Memory that a graph allocates when it runs.
struct graph_block {
  std::uint64_t bytes = 0;
  bool allocated = false; // by a launch, and not freed since
  kept_call orphaned;     // the call that destroyed its exec while it was allocated
  bool scratch = false;   // that exec freed it at each launch, and was launched more than once
  bool named = false;     // by a node of another graph
};

// An instantiation or update that failed, until it is known what the program made of it.
struct failed_build {
  kept_call about;
  std::uint64_t graph = 0, exec = 0; // exec: of an update
  std::uint64_t family = 0;          // graph_state::family of the graph
  bool other_work = false;           // something else ran since
  bool from_capture = false;
  bool exec_gone = false;
};

// A free that was refused in a capture: a mistake unless the memory is freed otherwise.
struct refused_free {
  notice told;
  std::shared_ptr<allocation> memory;
};

struct growth_site {
  std::uint64_t newest = 0; // exec made last
  std::uint64_t live = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> idle; // by content
};

struct thread_state {
  std::uint32_t index = 0;
  capture_mode mode = capture_mode::global;
  std::uint64_t context = 0; // current one, as far as the trace tells
};

struct process_state {
  explicit process_state(trace_file& f) : file(f), trace(f.process()) {}
  trace_file& file;
  traced_process& trace;
  std::unordered_map<std::uint32_t, thread_state> threads;
  std::unordered_map<std::uint64_t, stream_state> streams;
  std::unordered_map<std::uint64_t, event_state> events; // only those last recorded in a capture window
  std::unordered_map<stream_key, capture_state*> capturing;
  std::vector<std::unique_ptr<capture_state>> open;            // in order of begin
  std::vector<std::unique_ptr<capture_state>> unexplained;     // ended invalidated, culprit not (yet) seen
  std::vector<std::unique_ptr<capture_state>> ended_now;       // ended by the event at hand
  std::vector<std::pair<std::uint64_t, std::uint64_t>> closed; // the last captures that ended: stream, begin
  memory_map memory;
  // Words that may be addresses, in device memory that was filled from the host: where each lies, and the word.
  std::map<std::uint64_t, std::uint64_t> table_words;
  memory_map blocks;                                  // of a framework's allocator, as far as graphs are concerned
  std::vector<std::weak_ptr<allocation>> host_ranges; // pageable memory and stacks that graphs refer to
  std::int64_t now_ns = INT64_MIN;                    // of the newest event taken in
  std::uint64_t memory_epoch() const { return memory.graph_epoch() + blocks.graph_epoch(); }
  std::unordered_map<std::uint64_t, std::uint64_t> primary_contexts; // by device
  std::set<std::uint64_t> modules;                                   // loaded ones, libraries included
  std::unordered_map<std::uint64_t, std::shared_ptr<function_state>> functions;
  std::unordered_map<std::uint64_t, graph_state> graphs;
  std::unordered_map<std::uint64_t, std::unique_ptr<exec_state>> execs;
  std::map<std::uint64_t, graph_block> graph_blocks; // by address
  std::int64_t node_edited_ns = 0;                   // last change by hand of a node of some graph
  std::vector<failed_build> failed_builds;
  std::uint64_t families = 0;
  std::vector<refused_free> refused_frees;
  std::unordered_map<std::uint32_t, growth_site> growth; // by stack of the instantiation
  std::unordered_set<std::uint64_t> launched;            // functions

  capture_state* capture_by_id(int id) const;
  const capture_state* capture_at(std::uint64_t stream, std::uint64_t begin) const;
};

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

 private:
  thread_state& thread(process_state& p, std::uint32_t index);
  void apply_call(process_state& p, event_view& v, const thread_cursor& records);
  void apply_failure(process_state& p, event_view& v);
  void apply_memory(process_state& p, event_view& v);
  void apply_object(process_state& p, event_view& v);
  static allocation freed_by(const event_view& v);

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
  static void launch_memory(process_state& p, event_view& v);
  static void launch_failed(process_state& p, event_view& v);
  static void memory_event(process_state& p, event_view& v);
  static void orphan_memory(process_state& p, const exec_state& x, const event_view& v);
  static void leaks_at_end(process_state& p, std::vector<notice>& out);

  // model_builds.cpp
  static void build_failed(process_state& p, event_view& v);
  static void graph_cloned(process_state& p, const event_view& v);
  static void work_between(process_state& p, const event_view& v);
  static void build_succeeded(process_state& p, event_view& v, const exec_state& x);
  static void builds_at_launch(process_state& p, event_view& v);
  static void builds_at_end(process_state& p, std::vector<notice>& out);
  static void count_growth(process_state& p, event_view& v, exec_state& x);
  static void leave_growth(process_state& p, exec_state& x, bool destroyed);
  static void code_unloaded(process_state& p, const event_view& v, std::uint64_t handle);
  static void edited_code(exec_state& x, std::uint32_t node);
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
  static bool find_stale(process_state& p, event_view& v, bool first);
  static void describe_origin(process_state& p, exec_state& x, const event_view& v);
  static void replace_nodes(exec_state& x, std::uint64_t handle, exec_state& fresh);

  // model_pointers.cpp
  void read_nodes(process_state& p, exec_state& x, const event_view& v, const thread_cursor& records);
  void read_node(process_state& p, exec_state& x, const event_view& v, const side_record& r);
  bool add_pointer(process_state& p, exec_state& x, pointer_use use);
  void add_host(process_state& p, exec_state& x, const event_view& v, pointer_use use, std::uint64_t bytes,
                std::uint64_t stack_high);
  void follow_table(process_state& p, exec_state& x, const pointer_use& at);
  void table_copied(process_state& p, const event_view& v, const thread_cursor& records);
  void read_parameters(process_state& p, exec_state& x, std::uint32_t node, std::span<const std::byte> block);
  void keep_dead_if_needed(process_state& p);
  static void add_block(process_state& p, const event_view& v, std::uint64_t base, std::uint64_t size,
                        std::uint64_t flags);
  void block_event(process_state& p, const event_view& v);
  void host_gone(process_state& p, const event_view& v);
  void stacks_gone(process_state& p, exec_state& x, const event_view& v);
  std::vector<trace::payload_record> descriptors_; // read, of the node that follows
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
std::string stream_name(const process_state& p, stream_key key);

} // namespace capturesan
