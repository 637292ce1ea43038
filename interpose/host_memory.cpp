#include "interpose/host_memory.h"

#include <dlfcn.h>

#include "interpose/events.h"
#include "interpose/real.h"
#include "interpose/registered.h"
#include "interpose/writer.h"

namespace capturesan::shim {

namespace {

struct host_range {
  std::atomic<u64> begin, end; // begin 0 = free
  std::atomic<u64> exec;
  std::atomic<u64> leaving; // number of the call that may be taking it away just now; 0 = none
};
// Not in process_state: `free` may come before anything else. A forked child is recognised by its session.
host_range ranges[max_host_ranges];
std::atomic<u32> armed; // ranges in use; 0 = `free` looks at nothing else
std::atomic<u64> highest;
std::atomic<u32> top; // one past the last slot ever used
std::atomic<u64> not_kept;
std::atomic<u64> owner_session;
std::atomic<u64> departures; // numbers given to calls so far
spin_lock table_lock;        // writers only

// Where ranges lie, by hash: a program frees thousands of times a second, and nearly all of it is elsewhere. A range is
// marked in units of its own order of size, so that neither a small one nor a large one is met by what lies beside it.
class range_marks {
 public:
  void add(u64 begin, u64 end) { // under table_lock
    std::size_t level = 0;
    while (level + 1 < levels && units(level, begin, end) > most) {
      ++level;
    }
    if (units(level, begin, end) > most) {
      everywhere_.store(1, std::memory_order_relaxed);
      return;
    }
    each_word(level, begin, end, [&](std::atomic<u64>& word, u64 mask) {
      word.fetch_or(mask, std::memory_order_relaxed);
      return false;
    });
    used_.fetch_or(1u << level, std::memory_order_release);
  }
  bool meet(u64 begin, u64 end) const {
    if (everywhere_.load(std::memory_order_relaxed) != 0) {
      return true;
    }
    const u32 used = used_.load(std::memory_order_acquire);
    for (std::size_t level = 0; level < levels; ++level) {
      if ((used >> level & 1) == 0) {
        continue;
      }
      if (units(level, begin, end) > most_asked ||
          each_word(level, begin, end, [](const std::atomic<u64>& word, u64 mask) {
            return (word.load(std::memory_order_relaxed) & mask) != 0;
          })) {
        return true;
      }
    }
    return false;
  }
  void clear() { // under table_lock
    used_.store(0, std::memory_order_relaxed);
    everywhere_.store(0, std::memory_order_relaxed);
    for (auto& level : bits_) {
      for (std::atomic<u64>& word : level) {
        word.store(0, std::memory_order_relaxed);
      }
    }
  }

 private:
  // Units of 64 bytes, 4 KiB, 256 KiB, 16 MiB and 1 GiB.
  static constexpr std::size_t levels = 5;
  static constexpr u64 shift(std::size_t level) { return 6 + 6 * level; }
  static constexpr u64 words = 1024;
  static constexpr u64 most = 64;        // units that a range marks; what is longer takes larger ones
  static constexpr u64 most_asked = 256; // units that are asked for; what is longer is looked for in the table
  static u64 units(std::size_t level, u64 begin, u64 end) {
    return ((end - 1) >> shift(level)) - (begin >> shift(level)) + 1;
  }
  // A word has the marks of 64 neighbours. True as soon as `f` is.
  template <class Self, class F>
  static bool each_word_of(Self& self, std::size_t level, u64 begin, u64 end, F&& f) {
    const u64 last = (end - 1) >> shift(level);
    for (u64 unit = begin >> shift(level); unit <= last; unit = (unit / 64 + 1) * 64) {
      const u64 bit = unit % 64;
      const u64 n = last - unit + 1 < 64 - bit ? last - unit + 1 : 64 - bit;
      const u64 mask = (n == 64 ? ~u64{0} : (u64{1} << n) - 1) << bit;
      if (f(self.bits_[level][mix(unit / 64) % words], mask)) {
        return true;
      }
    }
    return false;
  }
  template <class F>
  bool each_word(std::size_t level, u64 begin, u64 end, F&& f) {
    return each_word_of(*this, level, begin, end, f);
  }
  template <class F>
  bool each_word(std::size_t level, u64 begin, u64 end, F&& f) const {
    return each_word_of(*this, level, begin, end, f);
  }

  std::atomic<u64> bits_[levels][words];
  std::atomic<u32> used_; // levels
  std::atomic<u32> everywhere_;
};
// One is asked, the other is made anew once many ranges have gone: marks cannot be taken away one by one.
range_marks marks[2];
std::atomic<u32> marks_in_use;
u32 gone_since_made; // under table_lock

range_marks& current_marks() { return marks[marks_in_use.load(std::memory_order_acquire)]; }

// One range less; under table_lock.
void disarm_one() {
  if (armed.fetch_sub(1, std::memory_order_relaxed) == 1) {
    current_marks().clear();
    gone_since_made = 0;
    return;
  }
  if (++gone_since_made < max_host_ranges / 4) {
    return;
  }
  gone_since_made = 0;
  const u32 other = 1 - marks_in_use.load(std::memory_order_relaxed);
  marks[other].clear();
  for (const host_range& r : ranges) {
    if (const u64 begin = r.begin.load(std::memory_order_relaxed); begin != 0) {
      marks[other].add(begin, r.end.load(std::memory_order_relaxed));
    }
  }
  marks_in_use.store(other, std::memory_order_release);
}

// Memory of the driver's own: it is told when that goes.
bool is_drivers(u64 address) {
  auto* ask = driver_function<decltype(cuPointerGetAttribute)>(call_id::cuPointerGetAttribute);
  unsigned type = 0;
  return ask != nullptr && ask(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_SUCCESS &&
         !is_registered(address);
}

// At the first one: a process that is killed says nothing at its exit.
void could_not_keep(thread_state* t) {
  if (not_kept.fetch_add(1, std::memory_order_relaxed) == 0) {
    write_text(t, trace::text_role::untracked_host, 1, "host operands of graphs");
  }
}

void add_range(thread_state* t, u64 exec, u64 begin, u64 bytes) {
  if (begin == 0 || own_stack().holds(begin) || is_drivers(begin)) {
    return;
  }
  const u64 end = begin + (bytes == 0 ? 1 : bytes);
  locked guard(table_lock);
  const u64 session = process->session.load(std::memory_order_relaxed);
  if (owner_session.exchange(session) != session) { // a child: what was here is its parent's
    for (host_range& r : ranges) {
      r.begin.store(0, std::memory_order_relaxed);
    }
    armed.store(0, std::memory_order_relaxed);
    current_marks().clear();
  }
  for (u32 i = 0; i < max_host_ranges; ++i) {
    host_range& r = ranges[i];
    if (r.begin.load(std::memory_order_relaxed) != 0) {
      continue;
    }
    if (i >= top.load(std::memory_order_relaxed)) {
      top.store(i + 1, std::memory_order_relaxed);
    }
    r.end.store(end, std::memory_order_relaxed);
    r.exec.store(exec, std::memory_order_relaxed);
    r.leaving.store(0, std::memory_order_relaxed);
    r.begin.store(begin, std::memory_order_release);
    current_marks().add(begin, end);
    if (end > highest.load(std::memory_order_relaxed)) {
      highest.store(end, std::memory_order_relaxed);
    }
    armed.fetch_add(1, std::memory_order_release);
    return;
  }
  could_not_keep(t);
}

// True if a range meets [begin, end) that no other call is taking away; marks it as leaving by `call`.
bool mark_leaving(u64 begin, u64 end, u64 call) {
  bool met = false;
  const u32 used = top.load(std::memory_order_relaxed);
  for (u32 i = 0; i < used; ++i) {
    host_range& r = ranges[i];
    const u64 b = r.begin.load(std::memory_order_acquire);
    if (b == 0 || b >= end || r.end.load(std::memory_order_relaxed) <= begin) {
      continue;
    }
    locked guard(table_lock);
    if (r.begin.load(std::memory_order_relaxed) == b && r.leaving.load(std::memory_order_relaxed) == 0) {
      r.leaving.store(call, std::memory_order_relaxed);
      met = true;
    }
  }
  return met;
}

// What `call` marked is out of the table, or stays as if it had not been asked for.
void end_leaving(u64 call, bool gone) {
  locked guard(table_lock);
  for (host_range& r : ranges) {
    if (r.begin.load(std::memory_order_relaxed) == 0 || r.leaving.load(std::memory_order_relaxed) != call) {
      continue;
    }
    r.leaving.store(0, std::memory_order_relaxed);
    if (gone) {
      r.begin.store(0, std::memory_order_relaxed);
      disarm_one();
    }
  }
}

} // namespace

void note_host_operands(node_writer& w, const node_out& out) {
  const u64* v = out.record.value;
  if (w.exec == 0) {
    return;
  }
  if (out.record.type == trace::node_type::memcpy) {
    if ((v[3] & 1) != 0) {
      add_range(w.t, w.exec, v[0], v[2]);
    }
    if ((v[3] & 2) != 0) {
      add_range(w.t, w.exec, v[1], v[2]);
    }
  } else if (out.record.type == trace::node_type::host) {
    add_range(w.t, w.exec, v[1], 1);
  }
}

void forget_host_ranges(u64 exec) {
  if (armed.load(std::memory_order_relaxed) == 0) {
    return;
  }
  locked guard(table_lock);
  for (host_range& r : ranges) {
    if (r.begin.load(std::memory_order_relaxed) != 0 && r.exec.load(std::memory_order_relaxed) == exec) {
      r.begin.store(0, std::memory_order_relaxed);
      disarm_one();
    }
  }
}

void write_host_losses() {
  const u64 n = not_kept.load(std::memory_order_relaxed);
  thread_state* t = n == 0 || process->session.load() == 0 ? nullptr : enter_thread();
  if (t == nullptr || t->busy != 0) {
    return;
  }
  const own_calls own;
  t->busy = 1;
  write_text(t, trace::text_role::untracked_host, n, "host operands of graphs");
  t->busy = 0;
}

namespace {

// A call that may take memory away. Ranges are marked before it is made: as soon as the memory is gone another thread
// may get the same addresses and give them to a graph, and those must stay.
struct departure {
  u64 call = 0; // 0: nothing of ours is there
  u64 begin = 0, end = 0;
  u64 ticks = 0; // before the call
};

departure depart(u64 begin, u64 end) {
  departure d;
  if (begin >= highest.load(std::memory_order_relaxed) || !current_marks().meet(begin, end) || process == nullptr ||
      owner_session.load(std::memory_order_relaxed) != process->session.load(std::memory_order_relaxed) ||
      inside_own_calls()) {
    return d;
  }
  const errno_keeper keep;
  const u64 call = departures.fetch_add(1, std::memory_order_relaxed) + 1;
  const u64 ticks = now_ticks();
  if (mark_leaving(begin, end, call)) {
    d = {call, begin, end, ticks};
  }
  return d;
}

void settle(const departure& d, trace::foreign_id id, bool gone) {
  if (d.call == 0) {
    return;
  }
  const errno_keeper keep;
  end_leaving(d.call, gone);
  if (!gone) {
    return;
  }
  thread_state* t = enter_thread();
  if (t == nullptr || t->busy != 0) {
    return;
  }
  const own_calls own;
  write_foreign_event(t, id, d.begin, d.end - d.begin, 0, true, d.ticks);
}

// Size 0: not known.
departure depart_block(void* p, u64 bytes) {
  const u64 begin = reinterpret_cast<u64>(p);
  return depart(begin, begin + (bytes == 0 ? 1 : bytes));
}

// The kernel takes whole pages; what it will refuse in any case is not looked for.
departure depart_pages(void* p, u64 bytes) {
  constexpr u64 page_bytes = 4096; // the smallest there is
  const u64 begin = reinterpret_cast<u64>(p);
  const u64 whole = (bytes + page_bytes - 1) / page_bytes * page_bytes;
  if (begin % page_bytes != 0 || whole < bytes || whole == 0 || begin + whole < begin) {
    return {};
  }
  return depart(begin, begin + whole);
}

} // namespace

} // namespace capturesan::shim

using namespace capturesan::shim;

namespace {

using free_fn = void (*)(void*);
using realloc_fn = void* (*)(void*, std::size_t);
using munmap_fn = int (*)(void*, std::size_t);
using usable_fn = std::size_t (*)(void*);

void first_free(void* p);
void* first_realloc(void* p, std::size_t n);
int first_munmap(void* p, std::size_t n);

// The next definitions behind ours: the allocator of the process, whoever that is. Found at the first call, which may
// come before any constructor.
std::atomic<free_fn> next_free{first_free};
std::atomic<realloc_fn> next_realloc{first_realloc};
std::atomic<munmap_fn> next_munmap{first_munmap};
std::atomic<usable_fn> next_usable; // only of the same allocator

bool same_object(const void* a, const void* b) {
  using dladdr_fn = int (*)(const void*, Dl_info*);
  auto ask = reinterpret_cast<dladdr_fn>(libc_dlsym(RTLD_NEXT, "dladdr"));
  Dl_info x{};
  Dl_info y{};
  return ask != nullptr && ask(a, &x) != 0 && ask(b, &y) != 0 && x.dli_fbase == y.dli_fbase;
}

void find_allocator() {
  const errno_keeper keep;
  const own_calls own;
  auto found = reinterpret_cast<free_fn>(libc_dlsym(RTLD_NEXT, "free"));
  auto again = reinterpret_cast<realloc_fn>(libc_dlsym(RTLD_NEXT, "realloc"));
  auto usable = reinterpret_cast<usable_fn>(libc_dlsym(RTLD_NEXT, "malloc_usable_size"));
  if (usable != nullptr && found != nullptr &&
      same_object(reinterpret_cast<void*>(usable), reinterpret_cast<void*>(found))) {
    next_usable.store(usable, std::memory_order_relaxed);
  }
  next_realloc.store(again, std::memory_order_relaxed);
  next_free.store(found, std::memory_order_release);
}

void first_free(void* p) {
  if (inside_own_calls()) {
    return; // dlsym drops the text of an error that nobody has asked for: left behind, once
  }
  find_allocator();
  next_free.load(std::memory_order_acquire)(p);
}
void* first_realloc(void* p, std::size_t n) {
  find_allocator();
  return next_realloc.load(std::memory_order_acquire)(p, n);
}

u64 usable_size(void* p) {
  usable_fn f = next_usable.load(std::memory_order_relaxed);
  return f == nullptr ? 0 : f(p);
}

// Until the constructor has run there is no neighbour to pass it on to, and looking for one could call an allocator
// that is just being set up.
int first_munmap(void* p, std::size_t n) { return static_cast<int>(raw(SYS_munmap, word(p), static_cast<long>(n))); }

} // namespace

__attribute__((constructor)) static void on_load_host_memory() {
  const errno_keeper keep;
  find_allocator();
  if (auto f = reinterpret_cast<munmap_fn>(libc_dlsym(RTLD_NEXT, "munmap"))) {
    next_munmap.store(f, std::memory_order_release);
  }
}

extern "C" {

__attribute__((visibility("default"))) void free(void* p) {
  if (armed.load(std::memory_order_relaxed) != 0 && p != nullptr) [[unlikely]] {
    settle(depart_block(p, usable_size(p)), capturesan::trace::foreign_id::heap_free, true);
  }
  next_free.load(std::memory_order_relaxed)(p);
}

__attribute__((visibility("default"))) void* realloc(void* p, std::size_t n) {
  if (armed.load(std::memory_order_relaxed) == 0 || p == nullptr) [[likely]] {
    return next_realloc.load(std::memory_order_relaxed)(p, n);
  }
  const departure d = depart_block(p, usable_size(p));
  void* to = next_realloc.load(std::memory_order_relaxed)(p, n);
  settle(d, capturesan::trace::foreign_id::heap_realloc, to != nullptr && reinterpret_cast<u64>(to) != d.begin);
  return to;
}

__attribute__((visibility("default"))) int munmap(void* p, std::size_t n) {
  if (armed.load(std::memory_order_relaxed) == 0) [[likely]] {
    return next_munmap.load(std::memory_order_relaxed)(p, n);
  }
  const departure d = depart_pages(p, n);
  const int failed = next_munmap.load(std::memory_order_relaxed)(p, n);
  settle(d, capturesan::trace::foreign_id::heap_munmap, failed == 0);
  return failed;
}
}

namespace capturesan::shim {

const void* libc_function_behind(const void* address) {
  if (address == reinterpret_cast<void*>(&::free)) {
    return reinterpret_cast<void*>(next_free.load());
  }
  if (address == reinterpret_cast<void*>(&::realloc)) {
    return reinterpret_cast<void*>(next_realloc.load());
  }
  return address == reinterpret_cast<void*>(&::munmap) ? reinterpret_cast<void*>(next_munmap.load()) : nullptr;
}

} // namespace capturesan::shim
