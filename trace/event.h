// The records of a trace. Compiled by both sides: the shim writes them into mapped memory, the analyzer reads them from
// a file that may have been cut off at any byte.
//
// Rules for changing this file
//   * Never move, resize or reuse a field; append a new record kind instead and raise format_minor (format.h), or
//   format_major if who skips the record would miss events.
//   * Every record is a whole number of 64-byte slots and begins with `kind` and `slots`; a reader skips kinds it does
//   not know.
//   * A record that belongs to an event (its graph nodes, texts, capture statuses, a new stack) is written before the
//   event, by
//     the same thread. So whoever sees an event has seen all of it.
//   * All integers are little-endian. Times are ticks of the clock described in format.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace capturesan::trace {

inline constexpr std::size_t slot_bytes = 64;

// What a record is. RECORD(name, value, meaning)
#define CAPTURESAN_RECORDS(RECORD)                                                                                     \
  RECORD(none, 0, "unused slot")                                                                                       \
  RECORD(event, 1, "one driver call")                                                                                  \
  RECORD(thread, 2, "the records that follow in this chunk belong to this thread")                                     \
  RECORD(call_name, 3, "the ABI name behind a call id of this file; written before its first use")                     \
  RECORD(stack, 4, "return addresses of one call stack, innermost first")                                              \
  RECORD(module, 5, "an ELF object mapped into the process")                                                           \
  RECORD(text, 6, "a string with a role and a key")                                                                    \
  RECORD(node, 7, "one node of a graph, as it stood when its exec was instantiated or updated")                        \
  RECORD(function, 8, "name and parameter layout of a kernel")                                                         \
  RECORD(capture_status, 9, "status of an open capture, read right after a refused call")                              \
  RECORD(lost, 10, "records that could not be written, with the span of time they fall into")                          \
  RECORD(params, 11, "packed parameters of the kernel launch that follows")                                            \
  RECORD(python_stack, 12, "Python frames of the call that follows, as text")                                          \
  RECORD(thread_end, 13,                                                                                               \
         "a thread ended that had begun a capture which was still open, or whose graphs may refer to its stack")       \
  RECORD(edges, 14,                                                                                                    \
         "edges between the nodes of a graph with memory nodes, or of a child graph in it, before the event that "     \
         "instantiates it")                                                                                            \
  RECORD(descriptor, 20, "a tensor map in the parameters of the node that follows")                                    \
  RECORD(block, 21, "a block of a framework's allocator that a node of this graph refers to")                          \
  RECORD(again, 22, "up to six calls that differ from earlier ones of this chunk in nothing but their times")          \
  RECORD(pointers, 23, "words that may be addresses of device memory, in what a copy of the event takes to the device")

enum class record_kind : std::uint8_t {
#define RECORD(name, value, meaning) name = value,
  CAPTURESAN_RECORDS(RECORD)
#undef RECORD
};

// Bits of event::flags.
enum event_flag : std::uint8_t {
  event_in_window = 1,   // at least one capture of the process was open when the call was entered
  event_eager_first = 2, // recorded although eager: the first launch of this function in this process
  event_truncated = 4,   // a record that belongs to this event is cut (node parameters, too many nodes)
  event_unfinished = 8,  // made by the reader: the call had not returned when the trace ended
  event_untimed = 16,    // made by the reader: when the call returned is not known; `end` is `begin`
};

// Capture status of a stream, as CUstreamCaptureStatus.
enum class capture_status : std::uint8_t { none = 0, active = 1, invalidated = 2, unknown = 255 };

struct event {
  record_kind kind;     // record_kind::event
  std::uint8_t slots;   // 1
  std::uint16_t call;   // id of this file; its name is in a call_name record
  std::int32_t result;  // CUresult
  std::uint64_t begin;  // ticks at entry
  std::uint64_t end;    // ticks at return
  std::uint64_t stream; // CUstream as passed: 0, 1 (legacy), 2 (per thread) are the special handles
  std::uint64_t arg[3]; // operands a, b, c of classes.def
  std::uint32_t stack;  // id of a stack record; 0 = none taken
  std::uint8_t flags;   // event_flag
  std::uint8_t reserved0;
  std::uint16_t reserved1;
};
static_assert(sizeof(event) == slot_bytes);

// Also written when a chunk passes from a thread that ended to a new one.
struct thread_record {
  record_kind kind;
  std::uint8_t slots; // 1
  std::uint16_t reserved0;
  std::uint32_t index; // unique in the process, from 1; never reused
  std::uint32_t tid;   // of the kernel; may be reused
  std::uint32_t reserved1;
  std::uint64_t started;               // ticks at the thread's first record
  std::uint64_t stack_low, stack_high; // bounds of its stack, 0 if unknown
  char name[16];                       // as in /proc/self/comm, NUL-terminated
  std::uint64_t reserved2;
};
static_assert(sizeof(thread_record) == slot_bytes);

// Head of call_name, stack, module, text, function and params records; the payload follows at once, `bytes` long.
//   call_name  aux = call id; payload = name
//   stack      id = stack id; payload = `bytes`/8 return addresses (uint64)
//   module     key = load bias (run-time address = bias + ELF virtual address), value = first mapped address, value2 =
//   end;
//              aux = length of the build id; payload = build id, then path
//   text       aux = text_role; key = handle or number it belongs to; payload = text
//   function   key = CUfunction or CUkernel, aux = number of parameters, id = total parameter bytes;
//              payload = aux pairs {uint16 offset, uint16 size}, then the (mangled) name
//   python_stack  payload = text as CPython's fault handler prints it, innermost frame first: lines
//              `  File "<file>", line <n> in <function>`; other lines are to be ignored, the last one may be cut
//   edges      key = graph; payload = pairs of CUgraphNode, from and to; there may be several of them, and one without
//              payload says that there are no edges
//   pointers   key = destination of the copy, value = its bytes; payload = pairs {uint64 offset in the destination,
//   uint64
//              word}; there may be several of them. Before the event that copies, or that instantiates a graph with a
//              node that copies
//   params     key = function; payload = the parameter block as the device will see it, by the function's layout
struct payload_record {
  record_kind kind;
  std::uint8_t slots;
  std::uint16_t aux;
  std::uint32_t id;
  std::uint64_t key;
  std::uint64_t value;
  std::uint64_t value2;
  std::uint32_t bytes;
  std::uint32_t reserved;
};
static_assert(sizeof(payload_record) == 40);

// Role of a text record. TEXT_ROLE(name, value, meaning of key)
#define CAPTURESAN_TEXT_ROLES(TEXT_ROLE)                                                                               \
  TEXT_ROLE(argv, 1, "position of the argument")                                                                       \
  TEXT_ROLE(executable, 2, "none")                                                                                     \
  TEXT_ROLE(device_name, 3, "device ordinal")                                                                          \
  TEXT_ROLE(rank, 4, "rank of a distributed job; text = the variable it came from")                                    \
  TEXT_ROLE(function_name, 5, "handle of the function")                                                                \
  TEXT_ROLE(global_name, 6, "address of the global")                                                                   \
  TEXT_ROLE(uncovered, 7, "times the driver handed out an entry point that calls.def lacks")                           \
  TEXT_ROLE(cupti_holder, 8, "none")                                                                                   \
  TEXT_ROLE(cupti_count, 9, "calls of the named entry point counted by CUPTI")                                         \
  TEXT_ROLE(hook_count, 10, "calls of the named entry point counted by the shim")                                      \
  TEXT_ROLE(note, 11, "none; something the shim gave up, in words")                                                    \
  TEXT_ROLE(deepbind, 12, "none; path of an object opened with RTLD_DEEPBIND, whose calls are not covered")            \
  TEXT_ROLE(unsupported, 13, "calls of an entry point that the simulated driver lacks; text = its name")               \
  TEXT_ROLE(runtime_call, 14, "none; before an event: the CUDA runtime call that made it, by CUPTI")                   \
  TEXT_ROLE(loaded, 15, "modules that the driver loaded inside the call of the event that follows, by CUPTI")          \
  TEXT_ROLE(graph_nodes, 16, "graph nodes created in the capture windows that ended with the event, by CUPTI")         \
  TEXT_ROLE(untracked_host, 20, "host operands of graphs that could not be watched")                                   \
  TEXT_ROLE(untracked_blocks, 21, "blocks of a framework's allocator that could not be kept; text = why")

enum class text_role : std::uint16_t {
#define TEXT_ROLE(name, value, meaning) name = value,
  CAPTURESAN_TEXT_ROLES(TEXT_ROLE)
#undef TEXT_ROLE
};

// Type of a graph node, as CUgraphNodeType.
enum class node_type : std::uint16_t {
  kernel = 0,
  memcpy = 1,
  memset = 2,
  host = 3,
  graph = 4,
  empty = 5,
  wait_event = 6,
  event_record = 7,
  ext_semas_signal = 8,
  ext_semas_wait = 9,
  mem_alloc = 10,
  mem_free = 11,
  batch_mem_op = 12,
  conditional = 13,
};

// One node of the exec or graph named by the event that follows. Before an exec_edit event it holds the new parameters
// of the node that the event names (`node` is its handle; index and parent say nothing); an edit without one changed
// something that has no address. Children of a child-graph node come after it and carry its index + 1 in `parent`; an
// edit of a child-graph node has index 0 and is followed by all new nodes below it.
// value[] by type:
//   kernel      function, grid (x | y<<32 | z<<48), block (x | y<<16 | z<<32 | shared KiB<<48), CUkernel of the
//               function or 0 (since 3.0), 1 if the device may change its parameters or that is not known (since 3.0);
//               payload = packed parameters, by the layout of the function record
//   memcpy      destination address, source address, bytes; host operands have bit 0 (destination) / bit 1 (source) of
//               value[3] set, array operands bits 2 and 3; bits 4 and 5: on the stack of the calling thread,
//               whose upper end is value[4]; bit 6: in rows, with gaps between them (since 3.0)
//   memset      destination address, value, bytes, bit 6 as of a memcpy
//   host        function, user data, upper end of the calling thread's stack if the user data lie there, else 0
//   graph       handle of the child graph
//   wait_event, event_record   event
//   mem_alloc   address, bytes        mem_free   address
//   batch_mem_op   number of operations; payload = for each {uint64 address, uint64 operation}, address 0 = none
// A block record before the event: payload_record with key = address, value = bytes, aux = flags of a block_alloc
// event, id = where it was handed out (classes.def). A descriptor record before a kernel node: payload_record with aux
// = byte of the parameter block where the tensor map lies, key = address that it was encoded with, value = bytes from
// there to the end of the tensor.
struct node_record {
  record_kind kind;
  std::uint8_t slots;
  node_type type;
  std::uint32_t index;  // position in the list of the driver, over all nesting levels
  std::uint64_t node;   // CUgraphNode
  std::uint32_t parent; // index + 1 of the child-graph node this one is inside of; 0 = top level
  std::uint32_t bytes;  // of the payload
  std::uint64_t value[5];
};
static_assert(sizeof(node_record) == slot_bytes);

struct capture_status_record {
  record_kind kind;
  std::uint8_t slots; // 1
  capture_status status;
  std::uint8_t reserved0;
  std::uint32_t reserved1;
  std::uint64_t stream; // origin stream of the capture
  std::uint64_t begin;  // ticks at entry of its begin call: with `stream`, the identity of the capture
  std::uint64_t reserved2[5];
};
static_assert(sizeof(capture_status_record) == slot_bytes);

struct thread_end_record {
  record_kind kind;
  std::uint8_t slots; // 1
  std::uint16_t reserved0;
  std::uint32_t index; // as in its thread record
  std::uint64_t ended; // ticks
  std::uint64_t reserved1[6];
};
static_assert(sizeof(thread_end_record) == slot_bytes);

// Calls like earlier ones. An entry stands for an event equal to the one in `slot` of the same chunk, but for its
// times; that one was written by the same thread and has neither stack nor flags. An entry is one word, stored with
// release order: a word that is not zero is whole, the first zero ends the record. Entries are appended as long as
// nothing else follows in the chunk, so the last record of a chunk that is being written may still grow.
//   bits 0-7 slot, 8-35 ticks from the entry before to this one's begin (0 for the first), 36-63 ticks from begin to
//   end, all ones: the call has not returned, or its event stands elsewhere because calls were made meanwhile; one
//   less: it has returned, nobody took the time (launches of graphs at level lite; since 3.0)
struct again_record {
  record_kind kind;
  std::uint8_t slots; // 1
  std::uint16_t reserved0;
  std::uint32_t reserved1;
  std::uint64_t begin; // ticks at entry of the first call
  std::uint64_t entry[6];
};
static_assert(sizeof(again_record) == slot_bytes);
inline constexpr unsigned again_tick_bits = 28;
inline constexpr std::uint64_t again_tick_mask = (std::uint64_t{1} << again_tick_bits) - 1;
inline constexpr std::uint64_t again_under_way = again_tick_mask, again_untimed = again_tick_mask - 1;

struct lost_record {
  record_kind kind;
  std::uint8_t slots; // 1
  std::uint16_t reserved0;
  std::uint32_t reserved1;
  std::uint64_t count;       // records
  std::uint64_t first, last; // ticks
  std::uint64_t reserved2[4];
};
static_assert(sizeof(lost_record) == slot_bytes);

constexpr std::size_t slots_for(std::size_t head, std::size_t payload) {
  return (head + payload + slot_bytes - 1) / slot_bytes;
}

} // namespace capturesan::trace
