// The shim's state. Everything that must not be shared with a forked child lives in one mapping that the kernel wipes
// on fork (MADV_WIPEONFORK): the child then finds `session == 0` at its next hook, without a handler having run, and
// starts its own file.
#pragma once

#include "interpose/platform.h"
#include "trace/event.h"
#include "trace/format.h"

namespace capturesan::shim {

inline constexpr std::size_t max_open_captures = 64;

// An open capture, keyed by its origin stream.
struct open_capture {
  u64 stream;  // handle; never destroyed while it is in the table
  u64 begin;   // ticks at entry of the begin call
  u64 context; // current context at the begin call
  u32 thread;  // index of the thread that began it
  u32 used;
};

// A tensor map by the hash of its bytes (tensor_maps.h).
struct descriptor_slot {
  std::atomic<u64> key, address, bytes;
};
inline constexpr std::size_t max_descriptors = 8192;

inline constexpr u64 unknown_context = ~u64{0};

struct alignas(64) thread_state {
  // One cache line with all that a repeated call looks at.
  u64 session;                // == process_state::session while this state is valid
  trace::chunk_header* chunk; // may be null: no chunk could be had
  const trace::event* last;   // of this chunk: the one that the last repeatable call was or equalled; null = none
  u64* word;                  // next entry of the open `again` record; null: there is none, or it is full
  u64 again_begin;            // of the entry before `word`
  u64 context;                // last context recorded as current
  u32 used;                   // committed slots of the chunk
  u32 busy;                   // the shim is writing on this thread: a nested hook (signal handler) passes through
  u32 asked_capturing;        // whether the stream that this thread asked about last was capturing
  u32 index;                  // from 1
  // Slots of events that later calls may equal, by hash; 0 = none.
  u8 like[64];
  u64 last_site; // of the last graph launch
  thread_state* next_free;
  // Inside a callback-watched window only: the CUDA runtime call that this thread is in, modules loaded since its last
  // event.
  const char* runtime_call;
  u32 runtime_window; // process_state::cupti_windows at that time
  u32 modules_loaded;
  u32 last_call; // call id + 1: a repeated call need not look up whether its name is written
  u32 tid;
};
static_assert(offsetof(thread_state, like) == 64 && sizeof(thread_state) <= 192);

struct process_state {
  std::atomic<u64> session; // 0 = not started in this process
  std::atomic<u32> failed;  // no trace can be written; hooks pass through

  spin_lock file_lock; // guards what follows up to `window_lock`
  trace::file_header* header;
  u64 file_bytes;   // mapped so far
  u64 max_bytes;    // --max-trace
  u8* segment;      // chunks not yet handed out
  u32 segment_left; // chunks
  u32 segment_next; // chunks to map next time
  u64 next_sequence;
  thread_state* free_threads;
  thread_state* slab;
  u32 slab_left;
  trace::chunk_header* free_chunks[256]; // left by threads that ended, not full
  u32 free_chunk_count;
  trace::chunk_header** chunk_table; // every chunk of the file, in order of allocation
  u32 chunk_count, chunk_capacity;
  u32 recycle_cursor;
  char path[1024];

  spin_lock definition_lock;
  thread_state definitions; // the chunk that call_name, stack and module records go to, whoever writes them

  spin_lock window_lock; // guards the table; held while statuses are read
  open_capture captures[max_open_captures];
  std::atomic<u32> open_count; // captures open or about to open

  spin_lock module_lock;
  u64 module_adds;
  word_set<8192> modules;
  word_set<1024> uncovered; // hashes of names already reported

  std::atomic<u32> descriptor_count; // 0 = there is none yet
  descriptor_slot descriptors[max_descriptors];

  word_set<65536> stacks;
  word_set<16384> functions;         // function records written
  word_set<16384> launched;          // functions that were launched at least once
  word_set<4096> launch_sites;       // (exec, return address) pairs
  std::atomic<u8> named_calls[1024]; // call_name record written
  std::atomic<u64> counts[1024];     // per call, --cupti=verify only

  std::atomic<u32> cupti_slot;          // cupti.cpp
  std::atomic<u32> cupti_windows;       // times the slot was held, from 1
  std::atomic<u32> cupti_refusals;      // windows without it because somebody else holds it
  std::atomic<u64> cupti_nodes_created; // in the windows that are open
};

extern process_state* process; // mapped by the constructor, or by the first hook before it

// A few words of static TLS: programs that dlopen large libraries run out of it easily.
extern __thread thread_state* current_thread __attribute__((tls_model("initial-exec")));
extern __thread u32 own_depth __attribute__((tls_model("initial-exec")));
extern __thread u64 own_frame __attribute__((tls_model("initial-exec"))); // where the outermost own_calls is, or was

// Bits that send a hook into its slow path.
enum attention_bit : u32 {
  attention_unresolved = 1, // the real entry points are not known yet
  attention_window = 2,     // a capture is open
  attention_full = 4,       // level full
  attention_count = 8,      // every call is counted (--cupti=verify)
  attention_off = 16,       // inert: hooks that still get here pass through
};
extern std::atomic<u32> attention;

enum class cupti_use : u32 { automatic, off, require, verify };

struct settings {
  bool off;
  bool full;
  cupti_use cupti;
  bool children; // --children all
  bool strip_deepbind;
  bool keep_trace;
  bool poison;
  u64 max_trace;
  char output[768];
  char session[64]; // of the command that started it; empty = none
};
extern settings options;

// Reads the environment once; called by the constructor and by hooks that run before it.
void start();

// The calling thread's state, or null: the hook then calls through and records nothing. Not while own_calls lives.
// `entry`: stack pointer at which the program called the hook; 0 = not known.
thread_state* enter_thread(u64 entry = 0);

// While one lives, this thread runs code of the shim. A hook entered meanwhile comes from a signal handler, in whatever
// state locks and records are: it passes through and is counted as lost. Driver calls made meanwhile are the shim's
// own: CUPTI counts them,
// --cupti=verify must not.
class own_calls {
 public:
  own_calls() {
    if (own_depth++ == 0) {
      own_frame = reinterpret_cast<u64>(this);
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~own_calls() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    --own_depth;
  }
  own_calls(const own_calls&) = delete;
  own_calls& operator=(const own_calls&) = delete;
};
inline bool inside_own_calls() { return own_depth != 0; }

// Ends recording in this image; the file stays valid. For exit handlers.
void mark_ended(trace::process_state why);

} // namespace capturesan::shim
