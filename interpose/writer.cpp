#include "interpose/writer.h"

#include <cerrno>

#include <sys/prctl.h>

#include "trace/sign.h"

namespace capturesan::shim {

namespace {

using trace::chunk_header;
using trace::lost_why;

// The first mapping fits, header included, into a file of 64 KiB; later ones grow so that mapping stays rare.
constexpr u32 first_segment_chunks = 3;
constexpr u32 largest_segment_chunks = 64;
// Up to this size (130,000 whole events) a trace is kept whole, so that it can be judged again later. Above it consumed
// chunks are used anew: a fresh page of a mapped file costs several times what its 64 records do.
constexpr u64 keep_whole_bytes = u64{8} << 20;

void append(char*& at, const char* end, const char* text) {
  while (*text != 0 && at < end) {
    *at++ = *text++;
  }
  *at = 0;
}
void append(char*& at, const char* end, u64 number) {
  char digits[24];
  int n = 0;
  do {
    digits[n++] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  while (n > 0 && at < end) {
    *at++ = digits[--n];
  }
  *at = 0;
}

void make_path() {
  process_state& p = *process;
  char* at = p.path;
  const char* end = p.path + sizeof(p.path) - 1;
  append(at, end, options.output);
  append(at, end, "/process-");
  append(at, end, static_cast<u64>(raw(SYS_getpid)));
  append(at, end, "-");
  append(at, end, clock_now_ns(CLOCK_REALTIME));
  append(at, end, trace::file_suffix);
}

// A process whose trace cannot be opened says so without a file: a folder needs no descriptor and no room for data.
bool leave_sign(const char* folder, const char* prefix, const char* session) {
  char path[sizeof(process_state::path)];
  char* at = path;
  const char* end = path + sizeof(path) - 1;
  append(at, end, folder);
  append(at, end, "/");
  append(at, end, prefix);
  append(at, end, session);
  append(at, end, *session == 0 ? "" : "-");
  append(at, end, static_cast<u64>(raw(SYS_getpid)));
  append(at, end, "-");
  char name[17] = {};
  raw(SYS_prctl, PR_GET_NAME, word(name));
  for (char& c : name) {
    c = c == '/' ? '_' : c;
  }
  append(at, end, name);
  return raw(SYS_mkdirat, AT_FDCWD, word(path), 0700) == 0;
}

// A process that changed its user may not write into the folder either. Making it writable for everybody would let them
// put files there that the analyzer reads; a name elsewhere tells as much and opens nothing.
void leave_sign() {
  if (leave_sign(options.output, trace::untraced_prefix, "") || errno != EACCES) {
    return;
  }
  if (options.session[0] != 0) {
    leave_sign(trace::sign_folder, trace::sign_prefix, options.session);
  }
}

// Gives the file `bytes` real bytes on disk from `offset` on. A hole would be a SIGBUS in the program on a full disk;
// growing beyond RLIMIT_FSIZE would be a SIGXFSZ, so that limit is asked first.
lost_why extend(int fd, u64 offset, u64 bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && offset + bytes > limit.rlim_cur) {
    return lost_why::file_size_limit;
  }
  if (raw(SYS_fallocate, fd, 0, static_cast<long>(offset), static_cast<long>(bytes)) == 0) {
    return lost_why::none;
  }
  if (errno != EOPNOTSUPP && errno != ENOSYS) {
    return errno == ENOSPC || errno == EDQUOT ? lost_why::disk_full : lost_why::io;
  }
  static const char zeros[4096] = {};
  for (u64 done = 0; done < bytes;) {
    const long n = raw(SYS_pwrite64, fd, word(zeros), static_cast<long>(bytes - done < 4096 ? bytes - done : 4096),
                       static_cast<long>(offset + done));
    if (n <= 0) {
      return errno == ENOSPC || errno == EDQUOT ? lost_why::disk_full : lost_why::io;
    }
    done += static_cast<u64>(n);
  }
  return lost_why::none;
}

// MAP_POPULATE would only read the pages of a shared mapping; each first write would be a fault still, and the two
// together cost more than populating for writing. Before Linux 5.14 that is refused, and pages come with their faults.
void* map_part(int fd, u64 offset, u64 bytes) {
  constexpr int populate_write = 23; // MADV_POPULATE_WRITE
  const long p =
      raw(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<long>(offset));
  if (p == -1) {
    return nullptr;
  }
  raw(SYS_madvise, p, static_cast<long>(bytes), populate_write);
  return reinterpret_cast<void*>(p);
}

// Maps the next chunks. Called under file_lock. No descriptor stays open: programs that close all of them would close
// ours.
lost_why grow() {
  process_state& p = *process;
  u32 want = p.segment_next == 0 ? first_segment_chunks : p.segment_next;
  lost_why why = lost_why::max_trace;
  for (; want > 0; want /= 2) {
    const u64 bytes = u64{want} * trace::chunk_bytes;
    if (p.file_bytes + bytes > p.max_bytes) {
      continue;
    }
    const long fd = raw(SYS_openat, AT_FDCWD, word(p.path), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
      return lost_why::io;
    }
    why = extend(static_cast<int>(fd), p.file_bytes, bytes);
    void* at = why == lost_why::none ? map_part(static_cast<int>(fd), p.file_bytes, bytes) : nullptr;
    raw(SYS_close, fd);
    if (at != nullptr) {
      p.segment = static_cast<u8*>(at);
      p.segment_left = want;
      p.segment_next =
          p.segment_next == 0 ? 16 : (want * 4 > largest_segment_chunks ? largest_segment_chunks : want * 4);
      p.file_bytes += bytes;
      return lost_why::none;
    }
    if (why == lost_why::none) {
      return lost_why::no_memory;
    }
  }
  return why;
}

// A chunk that the reader has done with; null if there is none near the cursor. Readers consume in about the order of
// allocation.
chunk_header* recycled_chunk() { // under file_lock
  process_state& p = *process;
  if (options.keep_trace || p.file_bytes < keep_whole_bytes || p.chunk_count == 0) {
    return nullptr;
  }
  for (int probes = 0; probes < 16; ++probes) {
    p.recycle_cursor = (p.recycle_cursor + 1) % p.chunk_count;
    chunk_header* c = p.chunk_table[p.recycle_cursor];
    if (c->state.load(std::memory_order_acquire) == static_cast<u32>(trace::chunk_state::consumed) &&
        c->purpose == trace::chunk_purpose::events) {
      c->used.store(0, std::memory_order_release); // a reader that looks now sees an empty chunk
      c->pending_begin.store(0, std::memory_order_relaxed);
      c->sequence = ++p.next_sequence;
      c->state.store(static_cast<u32>(trace::chunk_state::open), std::memory_order_release);
      c->used.store(1, std::memory_order_release);
      if (c->sealed_at > p.header->recycled_until.load(std::memory_order_relaxed)) {
        p.header->recycled_until.store(c->sealed_at, std::memory_order_relaxed);
      }
      p.header->recycled.fetch_add(1, std::memory_order_relaxed);
      return c;
    }
  }
  return nullptr;
}

chunk_header* new_chunk() { // under file_lock
  process_state& p = *process;
  if (p.free_chunk_count > 0) {
    return p.free_chunks[--p.free_chunk_count];
  }
  if (p.segment_left == 0) {
    if (chunk_header* c = recycled_chunk()) {
      return c;
    }
    const lost_why why = grow();
    if (why != lost_why::none) {
      count_lost(why, 0);
      return nullptr;
    }
  }
  auto* c = reinterpret_cast<chunk_header*>(p.segment);
  p.segment += trace::chunk_bytes;
  --p.segment_left;
  if (p.chunk_table != nullptr && p.chunk_count < p.chunk_capacity) {
    p.chunk_table[p.chunk_count++] = c;
  }
  c->sequence = ++p.next_sequence;
  c->magic = trace::chunk_magic;
  c->used.store(1, std::memory_order_release);
  p.header->chunks.fetch_add(1, std::memory_order_release); // a reader that counts it finds it made
  return c;
}

void seal(chunk_header* c) {
  c->sealed_at = now_ticks();
  c->state.store(static_cast<u32>(trace::chunk_state::sealed), std::memory_order_release);
}

void fill_thread_record(trace::thread_record& r, const thread_state* t, u64 started) {
  r.kind = trace::record_kind::thread;
  r.slots = 1;
  r.index = t->index;
  r.tid = t->tid;
  r.started = started;
  raw(SYS_prctl, PR_GET_NAME, word(r.name));
}

} // namespace

bool open_trace() {
  process_state& p = *process;
  p.max_bytes = options.max_trace;
  raw(SYS_mkdirat, AT_FDCWD, word(options.output), 0700);
  make_path();
  const long fd = raw(SYS_openat, AT_FDCWD, word(p.path), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    leave_sign();
    return false;
  }
  void* at = nullptr;
  if (extend(static_cast<int>(fd), 0, trace::header_bytes) == lost_why::none) {
    at = map_part(static_cast<int>(fd), 0, trace::header_bytes);
  }
  raw(SYS_close, fd);
  if (at == nullptr) {
    return false; // the empty file stays: it tells the reader that a process could not be watched
  }
  auto* h = static_cast<trace::file_header*>(at);
  h->major = trace::format_major;
  h->minor = trace::format_minor;
  h->header_bytes_ = trace::header_bytes;
  h->chunk_bytes_ = trace::chunk_bytes;
  h->slot_bytes_ = trace::slot_bytes;
  h->pid = static_cast<u32>(raw(SYS_getpid));
  h->parent_pid = static_cast<u32>(raw(SYS_getppid));
  h->start_time_ns = clock_now_ns(CLOCK_REALTIME);
  h->clock_ns = clock_now_ns(CLOCK_MONOTONIC);
  h->clock_ticks = now_ticks();
  h->level.store(options.full ? trace::trace_level::full : trace::trace_level::lite);
  h->state.store(trace::process_state::running);
  std::memcpy(h->magic, trace::file_magic, sizeof(h->magic)); // last: a reader that sees it sees the rest
  p.header = h;
  p.file_bytes = trace::header_bytes;
  const u64 capacity = p.max_bytes / trace::chunk_bytes;
  const u64 table_bytes = (capacity < (u64{1} << 22) ? capacity : u64{1} << 22) * sizeof(chunk_header*);
  const long table = raw(SYS_mmap, 0, static_cast<long>(table_bytes | 4095), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (table != -1) {
    p.chunk_table = reinterpret_cast<chunk_header**>(table);
    p.chunk_capacity = static_cast<u32>(table_bytes / sizeof(chunk_header*));
  }
  return true;
}

void refresh_clock() {
  trace::file_header* h = process->header;
  if (h == nullptr) {
    return;
  }
  const u64 ns = clock_now_ns(CLOCK_MONOTONIC);
  h->clock2_ns.store(ns, std::memory_order_relaxed);
  h->clock2_ticks.store(now_ticks(), std::memory_order_release);
}

void count_lost(lost_why why, u64 records) {
  trace::file_header* h = process->header;
  if (h == nullptr) {
    return;
  }
  const u64 t = now_ticks();
  u64 none = 0;
  h->lost_first.compare_exchange_strong(none, t, std::memory_order_relaxed);
  h->lost_last.store(t, std::memory_order_relaxed);
  if (why != lost_why::none) {
    h->lost_reason.store(static_cast<u32>(why), std::memory_order_relaxed);
  }
  h->lost.fetch_add(records, std::memory_order_relaxed);
}

bool is_definition(trace::record_kind k) {
  return k == trace::record_kind::call_name || k == trace::record_kind::stack || k == trace::record_kind::module;
}

bool take_chunk(thread_state* t) {
  // Before the chunk is taken: a reader concludes from it that chunks behind this one are younger.
  const u64 started = now_ticks();
  chunk_header* c = nullptr;
  {
    locked guard(process->file_lock);
    c = new_chunk();
  }
  refresh_clock();
  t->chunk = c;
  if (c == nullptr) {
    return false;
  }
  t->used = c->used.load(std::memory_order_relaxed);
  t->last = nullptr;
  t->word = nullptr;
  std::memset(t->like, 0, sizeof(t->like));
  if (t == &process->definitions) {
    c->purpose = trace::chunk_purpose::definitions;
    return true;
  }
  auto* r = static_cast<trace::thread_record*>(slot_of(c, t->used));
  std::memset(static_cast<void*>(r), 0, sizeof(*r));
  fill_thread_record(*r, t, started);
  commit(t, 1);
  return true;
}

void release_thread(thread_state* t) {
  locked guard(process->file_lock);
  if (t->chunk != nullptr) {
    process_state& p = *process;
    // Worth keeping only if a thread record and some events still fit; the table is bounded, the rest stays as it is.
    if (t->used + 8 < trace::slots_per_chunk && p.free_chunk_count < sizeof(p.free_chunks) / sizeof(p.free_chunks[0])) {
      p.free_chunks[p.free_chunk_count++] = t->chunk;
    } else {
      seal(t->chunk);
    }
  }
  t->chunk = nullptr;
  t->session = 0;
  t->next_free = process->free_threads;
  process->free_threads = t;
}

void* reserve_unset(thread_state* t, std::size_t slots) {
  if (t->chunk == nullptr || t->used + slots > trace::slots_per_chunk) {
    if (slots >= trace::slots_per_chunk - 1) {
      count_lost(lost_why::io, 1);
      return nullptr;
    }
    if (t->chunk != nullptr) {
      seal(t->chunk);
      t->chunk = nullptr;
    }
    // A recycled chunk may be too full for a large record; the next one is not.
    for (int tries = 0; t->chunk == nullptr && tries < 4; ++tries) {
      if (!take_chunk(t)) {
        count_lost(lost_why::none, 1);
        return nullptr;
      }
      if (t->used + slots > trace::slots_per_chunk) {
        seal(t->chunk);
        t->chunk = nullptr;
      }
    }
    if (t->chunk == nullptr) {
      count_lost(lost_why::io, 1);
      return nullptr;
    }
  }
  return slot_of(t->chunk, t->used);
}

void* reserve(thread_state* t, std::size_t slots) {
  void* at = reserve_unset(t, slots);
  if (at != nullptr) {
    std::memset(at, 0, slots * trace::slot_bytes); // a chunk that is used anew has its old records
  }
  return at;
}

void commit(thread_state* t, std::size_t slots) {
  t->used += static_cast<u32>(slots);
  t->word = nullptr; // an `again` record grows only while it is the last one
  t->chunk->used.store(t->used, std::memory_order_release);
  // The next slot is cold: the reader on another core had it last, or nobody. Fetched for writing now, it is here by
  // the next call. Beyond the end of the chunk this does nothing.
  __builtin_prefetch(reinterpret_cast<const u8*>(t->chunk) + t->used * trace::slot_bytes, 1);
}

namespace {

bool write_whole(thread_state* t, trace::payload_record head, const void* first, std::size_t first_bytes,
                 const void* second, std::size_t second_bytes) {
  constexpr std::size_t largest = (trace::slots_per_chunk - 4) * trace::slot_bytes - sizeof(trace::payload_record);
  bool whole = true;
  if (first_bytes > largest) {
    first_bytes = largest;
    whole = false;
  }
  if (first_bytes + second_bytes > largest) {
    second_bytes = largest - first_bytes;
    whole = false;
  }
  const std::size_t slots = trace::slots_for(sizeof(head), first_bytes + second_bytes);
  void* at = reserve(t, slots);
  if (at == nullptr) {
    return false;
  }
  head.slots = static_cast<u8>(slots);
  head.bytes = static_cast<u32>(first_bytes + second_bytes);
  std::memcpy(at, &head, sizeof(head));
  auto* to = static_cast<u8*>(at) + sizeof(head);
  std::memcpy(to, first, first_bytes);
  if (second_bytes > 0) {
    std::memcpy(to + first_bytes, second, second_bytes);
  }
  commit(t, slots);
  return whole;
}

} // namespace

bool write_payload(thread_state* t, trace::payload_record head, const void* first, std::size_t first_bytes,
                   const void* second, std::size_t second_bytes) {
  if (is_definition(head.kind)) {
    locked guard(process->definition_lock);
    return write_whole(&process->definitions, head, first, first_bytes, second, second_bytes);
  }
  return write_whole(t, head, first, first_bytes, second, second_bytes);
}

void write_thread_end(thread_state* t) {
  auto* r = static_cast<trace::thread_end_record*>(reserve(t, 1));
  if (r == nullptr) {
    return;
  }
  r->kind = trace::record_kind::thread_end;
  r->slots = 1;
  r->index = t->index;
  r->ended = now_ticks();
  commit(t, 1);
}

void write_text(thread_state* t, trace::text_role role, u64 key, const char* text) {
  if (text == nullptr) {
    return;
  }
  trace::payload_record head{};
  head.kind = trace::record_kind::text;
  head.aux = static_cast<u16>(role);
  head.key = key;
  write_payload(t, head, text, ::strnlen(text, 4096));
}

} // namespace capturesan::shim
