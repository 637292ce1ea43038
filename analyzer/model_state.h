// What the model keeps of the traced processes: threads and their modes, streams, events, captures, memory, graphs,
// execs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analyzer/code_reader.h"
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
// tabled: not in the node, but in memory that a parameter points to, as it was copied there. loaded: an inferred one
// that the kernel's code uses as an address.
enum class certainty : std::uint8_t { exact, typed, declared, descriptor, inferred, tabled, loaded };
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

// When what a node names was alive: from the begin of the capture that made it until its end.
struct node_window {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint64_t nodes = 0; // of the graph at the end
};

struct graph_state {
  std::unordered_map<std::uint64_t, node_window> children; // nodes that hold a copy of a captured graph
  std::vector<node_window> parts;                          // captured into it one after the other, if several were
  int capture = 0;                                         // id; 0 = built by hand
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
enum class coverage : std::uint8_t { no_kernel, resolved, takes_nothing, no_address, not_recorded, of_device };

struct exec_node {
  std::uint32_t index = 0; // in the driver's list
  std::uint64_t node = 0;  // handle
  trace::node_type type = trace::node_type::empty;
  bool enabled = true;
  bool code_gone = false; // of a kernel: what holds its function was unloaded
  // Which node of the graph it is was guessed from its position, and others look like it.
  bool doubtful = false;
  std::uint64_t named = 0; // by edits: handle in the graph that the exec was made from
  coverage covered = coverage::no_kernel;
  std::uint32_t parent = 0;                       // index + 1 of the child-graph node it is inside of
  std::shared_ptr<const function_state> function; // of a kernel node
  // As recorded; only with model::keep_parameters, or if the kernel's code may have to be asked about them.
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
  bool doubted = false;                     // inferred, because it may be the end of what another parameter points to
  bool asked = false;                       // the kernel's code, about this word
  std::string access;                       // loaded: how the code uses it
  bool guessed = false;                     // that it is of this memory follows from the place of its node only
  bool seen_early = false;                  // reported at a launch that may run before the free

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
  std::vector<std::shared_ptr<allocation>> former; // that nodes named before an edit
  std::uint64_t replays = 0;
  bool unknown = false; // changed in a way the trace does not show: judge nothing
  bool changed = true;  // since the last replay
  // An update from another graph took the place of the nodes it was made with: paired by position, or not at all.
  bool updated = false, unpaired = false;
  bool switched_off = false;  // a node of it, some time
  std::uint64_t unjudged = 0; // replays while `unknown`
  std::uint64_t bodies = 0;   // conditional nodes, whose bodies are not recorded
  std::vector<std::pair<std::uint64_t, std::uint32_t>>
      launch_sites;        // return address, stack of the first launch from there
  std::uint64_t epoch = 0; // process_state::memory_epoch() at the last replay

  exec_memory memory;
  std::vector<host_operand> host_operands;
  std::uint64_t context = 0;   // current one when it was made
  std::string context_gone_by; // the call that destroyed it; empty while it lives
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
  std::vector<std::shared_ptr<allocation>> queued_frees; // that may not have happened, of what graphs may name
  memory_map blocks;                                     // of a framework's allocator, as far as graphs are concerned
  std::vector<std::weak_ptr<allocation>> host_ranges;    // pageable memory and stacks that graphs refer to
  std::int64_t now_ns = INT64_MIN;                       // of the newest event taken in
  std::uint64_t memory_epoch() const { return memory.graph_epoch() + blocks.graph_epoch(); }
  std::unordered_map<std::uint64_t, std::uint64_t> primary_contexts; // by device
  // Loaded ones, libraries included: the context that takes them along; 0 = none (libraries), or not known.
  std::unordered_map<std::uint64_t, std::uint64_t> modules;
  std::unordered_map<std::uint64_t, std::uint64_t> code; // of modules and libraries: where their image lay
  std::unordered_map<std::uint64_t, std::shared_ptr<function_state>> functions;
  std::unordered_map<std::uint64_t, graph_state> graphs;
  std::unordered_map<std::uint64_t, std::unique_ptr<exec_state>> execs;
  std::unordered_set<std::uint64_t> gone_execs;      // handles of destroyed ones that were not given out again
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

} // namespace capturesan
