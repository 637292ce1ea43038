#include "interpose/blocks.h"

#include <dlfcn.h>

#include "interpose/events.h"
#include "interpose/poison.h"
#include "interpose/python.h"
#include "interpose/range_index.h"
#include "interpose/real.h"
#include "interpose/writer.h"

namespace capturesan::shim {

namespace {

enum block_flag : u64 { block_private = 1, block_in_graph = 4 };
constexpr u64 known_before = 2; // of a block record; with block_private

struct block_tables {
  range_index<u64{1} << 29> live; // 256 GiB
  range_filter of_graphs;
};
std::atomic<block_tables*> tables; // mapped by the first report; the kernel wipes it on fork
std::atomic<u32> live_execs;

block_tables* make_tables() {
  if (block_tables* there = tables.load(std::memory_order_acquire)) {
    return there;
  }
  const long at = raw(SYS_mmap, 0, sizeof(block_tables), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == -1) {
    return nullptr;
  }
  raw(SYS_madvise, at, sizeof(block_tables), MADV_WIPEONFORK);
  block_tables* none = nullptr;
  if (!tables.compare_exchange_strong(none, reinterpret_cast<block_tables*>(at))) {
    raw(SYS_munmap, at, sizeof(block_tables));
    return none;
  }
  find_python_line();
  return reinterpret_cast<block_tables*>(at);
}

void write_block_event(trace::foreign_id id, u64 base, u64 bytes, u64 flags) {
  const errno_keeper keep;
  if (process->session.load(std::memory_order_relaxed) == 0) {
    return; // no trace, or a child that has not called the driver
  }
  thread_state* t = enter_thread();
  if (t == nullptr || t->busy != 0) {
    return;
  }
  const own_calls own;
  write_foreign_event(t, id, base, bytes, flags, false);
}

void block_out(u64 base, u64 bytes) {
  block_tables* b = make_tables();
  if (b == nullptr) {
    return;
  }
  const u64 line =
      python_line(); // who was given the block: no stack can be taken here, under the lock of the allocator
  bool is_private = false;
  if (window_is_open()) {
    const thread_state* t = thread_if_any();
    is_private = t != nullptr && t->asked_capturing != 0;
  }
  auto* s = b->live.put(base, bytes, is_private ? u64{block_private} : 0, line);
  if (live_execs.load(std::memory_order_relaxed) != 0 && b->of_graphs.meets(base, bytes)) {
    if (s != nullptr) {
      s->add_flags(block_in_graph); // where a graph's memory was: its end matters too
    }
    write_block_event(trace::foreign_id::framework_block_alloc, base, bytes, (is_private ? 1 : 0) | line << 32);
  }
}

void block_back(u64 base, u64 bytes) {
  block_tables* b = tables.load(std::memory_order_acquire);
  auto* s = b == nullptr ? nullptr : b->live.at(base);
  if (s == nullptr || s->bytes() == 0) {
    return;
  }
  const bool told = (s->flags() & block_in_graph) != 0;
  b->live.remove(*s);
  if (told) {
    if (options.poison) {
      poison_block_skipped();
    }
    write_block_event(trace::foreign_id::framework_block_free, base, bytes, 0);
  }
}

void note_address(block_tables* b, thread_state* t, u64 address) {
  if (options.poison) {
    poison_note_address(address);
  }
  auto* s = b == nullptr ? nullptr : b->live.find(address);
  if (s == nullptr) {
    return;
  }
  const u64 flags = s->add_flags(block_in_graph);
  const u64 base = s->base();
  const u64 bytes = s->bytes();
  if ((flags & block_in_graph) != 0 || bytes == 0) {
    return; // its end will be recorded anyway
  }
  b->of_graphs.add(base, bytes);
  trace::payload_record head{};
  head.kind = trace::record_kind::block;
  head.aux = static_cast<u16>((flags & block_private) | known_before);
  head.id = static_cast<u32>(s->note());
  head.key = base;
  head.value = bytes;
  write_payload(t, head, nullptr, 0);
}

} // namespace

void note_operands(node_writer& w, const node_out& out) {
  block_tables* b = tables.load(std::memory_order_acquire);
  if (b == nullptr && !options.poison) {
    return;
  }
  const u64* v = out.record.value;
  switch (out.record.type) {
  case trace::node_type::memcpy:
    note_address(b, w.t, v[0]);
    note_address(b, w.t, v[1]);
    break;
  case trace::node_type::memset:
    note_address(b, w.t, v[0]);
    break;
  case trace::node_type::kernel:
  case trace::node_type::batch_mem_op:
    for (u32 at = 0; at + sizeof(u64) <= out.record.bytes; at += sizeof(u64)) {
      u64 address = 0;
      std::memcpy(&address, static_cast<const u8*>(out.payload) + at, sizeof(address));
      u64& before = w.seen[(address >> 9) % node_writer::seen_size];
      if (before != address) { // graphs repeat their operands
        before = address;
        note_address(b, w.t, address);
      }
    }
    break;
  default:
    break;
  }
}

void note_capture_answer(thread_state* t, bool active) { t->asked_capturing = active ? 1 : 0; }

void exec_made() { live_execs.fetch_add(1, std::memory_order_relaxed); }

bool graphs_alive() { return live_execs.load(std::memory_order_relaxed) != 0; }

void exec_gone() {
  if (live_execs.load(std::memory_order_relaxed) == 0 || live_execs.fetch_sub(1, std::memory_order_relaxed) != 1) {
    return;
  }
  if (block_tables* b = tables.load(std::memory_order_acquire)) {
    b->of_graphs.clear();
  }
}

void write_block_losses() {
  block_tables* b = tables.load(std::memory_order_acquire);
  thread_state* t = b == nullptr || b->live.lost() == 0 || process->session.load() == 0 ? nullptr : enter_thread();
  if (t == nullptr || t->busy != 0) {
    return;
  }
  const own_calls own;
  t->busy = 1;
  write_text(t, trace::text_role::untracked_blocks, b->live.lost(),
             "blocks of PyTorch's allocator could not be followed");
  t->busy = 0;
}

void describe_framework(thread_state* t) {
  static std::atomic<u32> done;
  if (tables.load(std::memory_order_relaxed) != nullptr || done.exchange(1) != 0) {
    return;
  }
  using open_fn = void* (*)(const char*, int);
  auto open = reinterpret_cast<open_fn>(libc_dlsym(RTLD_NEXT, "dlopen"));
  if (open != nullptr && open("libc10_cuda.so", RTLD_LAZY | RTLD_NOLOAD) != nullptr) {
    write_text(
        t, trace::text_role::note, 0,
        "PyTorch is loaded and its allocator reports no blocks (cudaMallocAsync, or a pluggable one): memory that "
        "it recycles is not seen");
  }
}

} // namespace capturesan::shim

using namespace capturesan::shim;

namespace {

struct c10_device {
  signed char type, index;
};
constexpr signed char c10_cuda = 1;
using report_fn = void (*)(void*, std::int64_t, std::size_t, std::size_t, c10_device);

constexpr char report_name[] = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE";

report_fn original_report() {
  static std::atomic<report_fn> found;
  report_fn f = found.load(std::memory_order_acquire);
  if (f != nullptr) {
    return f;
  }
  using open_fn = void* (*)(const char*, int);
  auto open = reinterpret_cast<open_fn>(libc_dlsym(RTLD_NEXT, "dlopen"));
  // Loaded without RTLD_GLOBAL, so RTLD_NEXT does not find it.
  void* c10 = open == nullptr ? nullptr : open("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
  f = c10 == nullptr ? nullptr : reinterpret_cast<report_fn>(libc_dlsym(c10, report_name));
  if (f != nullptr) {
    found.store(f, std::memory_order_release);
  }
  return f;
}

} // namespace

extern "C" __attribute__((visibility("default"))) void
capturesan_report_memory(void* block, std::int64_t bytes, std::size_t allocated, std::size_t reserved,
                         c10_device device) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");

extern "C" void capturesan_report_memory(void* block, std::int64_t bytes, std::size_t allocated, std::size_t reserved,
                                         c10_device device) {
  if (device.type == c10_cuda && process != nullptr && !options.off && block != nullptr) {
    const u64 base = reinterpret_cast<u64>(block);
    if (bytes > 0) {
      block_out(base, static_cast<u64>(bytes));
    } else if (bytes < 0) {
      block_back(base, static_cast<u64>(-bytes));
    }
  }
  if (report_fn forward = original_report()) {
    forward(block, bytes, allocated, reserved, device);
  }
}
