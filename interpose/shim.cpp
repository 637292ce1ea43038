// Start, threads, fork and end: nothing here knows a driver call.
#include <csignal>
#include <cstdlib>

#include <dlfcn.h>

#include "interpose/blocks.h"
#include "interpose/cuda_abi.h"
#include "interpose/cupti.h"
#include "interpose/driver_facts.h"
#include "interpose/events.h"
#include "interpose/host_memory.h"
#include "interpose/node_params.h"
#include "interpose/poison.h"
#include "interpose/real.h"
#include "interpose/window.h"
#include "interpose/writer.h"

extern char** environ;

namespace capturesan::shim {

process_state* process;
settings options;
std::atomic<u32> attention{attention_unresolved};
__thread thread_state* current_thread;
__thread u32 own_depth;
__thread u64 own_frame;
__thread u32 held_locks;

namespace {

std::atomic<u32> started; // 0 no, 1 being done, 2 done
std::atomic<u32> starter; // thread that does it
u32 first_pid;
pthread_key_t thread_key;
bool have_thread_key;

bool text_is(const char* a, const char* b) { return a != nullptr && std::strcmp(a, b) == 0; }

u64 parse_number(const char* text, u64 otherwise) {
  if (text == nullptr || *text < '0' || *text > '9') {
    return otherwise;
  }
  u64 n = 0;
  for (; *text >= '0' && *text <= '9'; ++text) {
    n = n * 10 + static_cast<u64>(*text - '0');
  }
  return n;
}

// The value in an entry of the environment; null if it is another variable's.
char* value_in(char* entry, const char* name) {
  const std::size_t size = std::strlen(name);
  return std::strncmp(entry, name, size) == 0 && entry[size] == '=' ? entry + size + 1 : nullptr;
}

// Not by getenv and its like: a program may have its own ones, as bash does, which know only what its shell has set.
char** environment_entry(const char* name) {
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    if (value_in(*at, name) != nullptr) {
      return at;
    }
  }
  return nullptr;
}

void remove_variable(const char* name) {
  while (char** at = environment_entry(name)) {
    for (; *at != nullptr; ++at) {
      *at = at[1];
    }
  }
}

// A hook may run before libc has set `environ` (from .preinit_array); the kernel has the same strings.
const char* setting(const char* name) {
  if (environ != nullptr) {
    char** entry = environment_entry(name);
    return entry == nullptr ? nullptr : value_in(*entry, name);
  }
  static char block[65536];
  static long length = -1;
  if (length < 0) {
    length = 0;
    const long fd = raw(SYS_openat, AT_FDCWD, word("/proc/self/environ"), O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
      const long n = raw(SYS_read, fd, word(block), sizeof(block) - 1);
      raw(SYS_close, fd);
      length = n > 0 ? n : 0;
    }
  }
  const std::size_t size = std::strlen(name);
  for (const char* at = block; at < block + length; at += std::strlen(at) + 1) {
    if (std::strncmp(at, name, size) == 0 && at[size] == '=') {
      return at + size + 1;
    }
  }
  return nullptr;
}

void read_environment() {
  options.off = text_is(setting("CAPTURESAN"), "off");
  options.full = text_is(setting("CAPTURESAN_LEVEL"), "full");
  const char* cupti = setting("CAPTURESAN_CUPTI");
  options.cupti = text_is(cupti, "verify")    ? cupti_use::verify
                  : text_is(cupti, "require") ? cupti_use::require
                  : text_is(cupti, "auto")    ? cupti_use::automatic
                                              : cupti_use::off;
  options.children = !text_is(setting("CAPTURESAN_CHILDREN"), "none");
  options.strip_deepbind = text_is(setting("CAPTURESAN_STRIP_DEEPBIND"), "1");
  options.keep_trace = text_is(setting("CAPTURESAN_KEEP_TRACE"), "1");
  options.poison = text_is(setting("CAPTURESAN_POISON"), "1");
  options.max_trace = parse_number(setting("CAPTURESAN_MAX_TRACE"), u64{1} << 30);
  const char* output = setting("CAPTURESAN_OUTPUT");
  if (output == nullptr || *output == 0) {
    output = "capturesan-trace";
  }
  if (::strnlen(output, sizeof(options.output)) >= sizeof(options.output)) {
    options.off = true; // a path that long cannot be written; the analyzer reports that nothing was traced
    return;
  }
  std::strcpy(options.output, output);
  const char* session = setting("CAPTURESAN_SESSION");
  if (session != nullptr && ::strnlen(session, sizeof(options.session)) < sizeof(options.session) &&
      std::strchr(session, '/') == nullptr) {
    std::strcpy(options.session, session);
  }
}

// --children none: what the program starts shall not know of us. The user's own preload entries stay.
void strip_environment() {
  Dl_info self{};
  using dladdr_fn = int (*)(const void*, Dl_info*);
  auto ask = reinterpret_cast<dladdr_fn>(libc_dlsym(RTLD_NEXT, "dladdr"));
  char** entry = environment_entry("LD_PRELOAD");
  if (entry == nullptr || ask == nullptr || ask(reinterpret_cast<void*>(&strip_environment), &self) == 0) {
    return;
  }
  // Written where it stands: what is kept is no longer than what was there.
  char* const kept = value_in(*entry, "LD_PRELOAD");
  std::size_t n = 0;
  for (const char* at = kept; *at != 0;) {
    const std::size_t length = std::strcspn(at, ": ");
    const bool ours = length == std::strlen(self.dli_fname) && std::strncmp(at, self.dli_fname, length) == 0;
    const bool more = at[length] != 0;
    if (!ours && length > 0) {
      if (n > 0) {
        kept[n++] = ':';
      }
      std::memmove(kept + n, at, length);
      n += length;
    }
    at += length + (more ? 1 : 0);
  }
  kept[n] = 0;
  if (n == 0) {
    remove_variable("LD_PRELOAD");
  }
  for (const char* name :
       {"CAPTURESAN_OUTPUT", "CAPTURESAN_LEVEL", "CAPTURESAN_CUPTI", "CAPTURESAN_CHILDREN", "CAPTURESAN_MAX_TRACE",
        "CAPTURESAN_SESSION", "CAPTURESAN_STRIP_DEEPBIND", "CAPTURESAN_KEEP_TRACE", "CAPTURESAN_POISON"}) {
    remove_variable(name);
  }
}

void on_fork_in_child() { // only where the kernel cannot wipe
  std::memset(static_cast<void*>(process), 0, sizeof(*process));
  current_thread = nullptr;
}

bool map_state() {
  const long at = raw(SYS_mmap, 0, sizeof(process_state), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == -1) {
    return false;
  }
  process = reinterpret_cast<process_state*>(at);
  if (raw(SYS_madvise, at, sizeof(process_state), MADV_WIPEONFORK) != 0) {
    ::pthread_atfork(nullptr, nullptr, on_fork_in_child);
  }
  return true;
}

void on_thread_end(void* state) {
  auto* t = static_cast<thread_state*>(state);
  const own_calls own;
  current_thread = nullptr;
  if (process->session.load() != 0 && t->session == process->session.load()) {
    if (thread_captures(t->index) || asked_for_own_stack()) {
      write_thread_end(t);
    }
    release_thread(t);
  }
}

// Facts about the process that rules and reports need, as the first records of the first thread.
void describe_process(thread_state* t) {
  char text[4096];
  long n = raw(SYS_readlinkat, AT_FDCWD, word("/proc/self/exe"), word(text), sizeof(text) - 1);
  if (n > 0) {
    text[n] = 0;
    write_text(t, trace::text_role::executable, 0, text);
  }
  const long fd = raw(SYS_openat, AT_FDCWD, word("/proc/self/cmdline"), O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    n = raw(SYS_read, fd, word(text), sizeof(text) - 1);
    raw(SYS_close, fd);
    u64 position = 0;
    for (long at = 0; at < n && position < 64; ++position) {
      text[n] = 0;
      write_text(t, trace::text_role::argv, position, text + at);
      at += static_cast<long>(std::strlen(text + at)) + 1;
    }
  }
  for (const char* name : {"RANK", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_RANK",
                           "SLURM_PROCID", "SLURM_LOCALID"}) {
    const char* value = setting(name);
    if (value != nullptr && *value >= '0' && *value <= '9') {
      write_text(t, trace::text_role::rank, parse_number(value, 0), name);
    }
  }
}

// The first hook of a process, or of a forked child: opens the trace. One thread does it, the others wait.
bool start_session() {
  process_state& p = *process;
  if (p.failed.load(std::memory_order_acquire) != 0) {
    return false;
  }
  locked guard(p.file_lock);
  if (p.session.load(std::memory_order_acquire) != 0) {
    return true;
  }
  if (p.failed.load(std::memory_order_relaxed) != 0) {
    return false;
  }
  const u32 pid = static_cast<u32>(raw(SYS_getpid));
  if ((!options.children && pid != first_pid) || !open_trace()) {
    p.failed.store(1, std::memory_order_release);
    return false;
  }
  u32 bits = (options.full ? attention_full : 0u) | (options.cupti == cupti_use::verify ? attention_count : 0u);
  bits |= attention.load() & (attention_unresolved | attention_off);
  attention.store(bits, std::memory_order_release);
  p.session.store((mix(clock_now_ns(CLOCK_MONOTONIC)) ^ pid) | 1, std::memory_order_release);
  return true;
}

thread_state* new_thread_state() { // under file_lock
  process_state& p = *process;
  if (p.free_threads != nullptr) {
    thread_state* t = p.free_threads;
    p.free_threads = t->next_free;
    return t;
  }
  if (p.slab_left == 0) {
    constexpr u32 per_slab = 256;
    const long at =
        raw(SYS_mmap, 0, per_slab * sizeof(thread_state), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == -1) {
      return nullptr;
    }
    raw(SYS_madvise, at, per_slab * sizeof(thread_state), MADV_WIPEONFORK); // a child must not write into our chunks
    p.slab = reinterpret_cast<thread_state*>(at);
    p.slab_left = per_slab;
  }
  return &p.slab[--p.slab_left];
}

thread_state* start_thread() {
  if (!start_session()) {
    return nullptr;
  }
  process_state& p = *process;
  thread_state* t = nullptr;
  {
    locked guard(p.file_lock);
    t = new_thread_state();
  }
  if (t == nullptr) {
    count_lost(trace::lost_why::no_memory, 1);
    return nullptr;
  }
  std::memset(static_cast<void*>(t), 0, sizeof(*t));
  t->index = p.header->threads.fetch_add(1, std::memory_order_relaxed) + 1;
  t->tid = static_cast<u32>(raw(SYS_gettid));
  t->session = p.session.load(std::memory_order_relaxed);
  current_thread = t;
  if (have_thread_key) {
    pthread_setspecific(thread_key, t);
  }
  t->busy = 1;
  take_chunk(t);
  if (t->index == 1) {
    describe_process(t);
  }
  t->busy = 0;
  return t;
}

} // namespace

void start() {
  if (started.load(std::memory_order_acquire) == 2) [[likely]] {
    return;
  }
  u32 none = 0;
  if (!started.compare_exchange_strong(none, 1, std::memory_order_acquire)) {
    // What is called below may be somebody else's, who may look for a symbol and so come back here.
    if (starter.load(std::memory_order_relaxed) == static_cast<u32>(raw(SYS_gettid))) {
      return;
    }
    while (started.load(std::memory_order_acquire) != 2) {
      raw(SYS_sched_yield);
    }
    return;
  }
  starter.store(static_cast<u32>(raw(SYS_gettid)), std::memory_order_relaxed);
  read_environment();
  first_pid = static_cast<u32>(raw(SYS_getpid));
  if (!options.off && !map_state()) {
    options.off = true;
  }
  if (options.off) {
    attention.fetch_or(attention_off);
  }
  have_thread_key =
      !options.off && pthread_key_create != nullptr && pthread_key_create(&thread_key, on_thread_end) == 0;
  started.store(2, std::memory_order_release);
}

thread_state* thread_if_any() {
  thread_state* t = current_thread;
  return t != nullptr && t->session != 0 && t->session == process->session.load(std::memory_order_relaxed) ? t
                                                                                                           : nullptr;
}

namespace {

// Whether the code of the shim that this thread was in was left by a jump, out of a signal handler that had interrupted
// it (siglongjmp): a frame of a stack that the program has come back from is gone. Where two stacks may be at play
// nothing is known: in a handler with a stack of its own (sigaltstack), and in stacks the program made itself, which
// lie further off than a jump goes. A lock that was held will never be given back: who waited for it would wait for
// ever.
bool left_by_jump(u64 entry) {
  constexpr u64 far = u64{1} << 20;
  if (entry <= own_frame || entry - own_frame > far || held_locks != 0) {
    return false;
  }
  stack_t other{};
  if (raw(SYS_sigaltstack, 0, word(&other)) != 0 || (other.ss_flags & SS_ONSTACK) != 0) {
    return false;
  }
  const u64 begin = reinterpret_cast<u64>(other.ss_sp);
  return (other.ss_flags & SS_DISABLE) != 0 || own_frame < begin || own_frame - begin >= other.ss_size;
}

} // namespace

thread_state* enter_thread(u64 entry) {
  if (own_depth != 0) {
    if (process->header != nullptr) {
      count_lost(trace::lost_why::none, 1);
    }
    if (!left_by_jump(entry)) {
      return nullptr;
    }
    own_depth = 0;
    if (thread_state* t = current_thread) {
      t->busy = 0;
    }
  }
  const own_calls own;
  thread_state* t = current_thread;
  const u64 session = process->session.load(std::memory_order_relaxed);
  if (t == nullptr || t->session != session || session == 0) [[unlikely]] {
    t = start_thread();
    if (t == nullptr) {
      return nullptr;
    }
  }
  return t;
}

void mark_ended(trace::process_state why) {
  process_state* p = process;
  if (p == nullptr || p->session.load() == 0 || p->header == nullptr) {
    return;
  }
  refresh_clock();
  p->header->state.store(why, std::memory_order_release);
}

} // namespace capturesan::shim

using namespace capturesan::shim;

__attribute__((constructor)) static void on_load() {
  const errno_keeper keep;
  start();
  if (!options.off && !options.children) {
    strip_environment();
  }
}

// Hooks stay valid after this: other exit handlers may still call the driver.
__attribute__((destructor)) static void on_exit_of_program() {
  const errno_keeper keep;
  if (!options.off && process != nullptr) {
    cupti_finish();
    write_unsupported_calls();
    write_block_losses();
    write_host_losses();
    write_poison_counts();
    mark_ended(capturesan::trace::process_state::ended);
  }
}
