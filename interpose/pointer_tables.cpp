#include "interpose/pointer_tables.h"

#include <sys/uio.h>

#include "interpose/writer.h"

namespace capturesan::shim {

namespace {

std::atomic<u64> lowest, highest; // of device memory; both 0 while there was none

// The source of a captured copy need not be there before the graph runs, so it is read by a call that may fail.
bool read_memory(u64 from, void* to, std::size_t bytes) {
  iovec local{to, bytes};
  iovec remote{reinterpret_cast<void*>(from), bytes};
  return raw(SYS_process_vm_readv, raw(SYS_getpid), word(&local), 1, word(&remote), 1, 0) == static_cast<long>(bytes);
}

struct found_word {
  u64 offset, address;
};

} // namespace

void note_device_memory(u64 base, u64 bytes) {
  u64 low = lowest.load(std::memory_order_relaxed);
  while ((low == 0 || base < low) && !lowest.compare_exchange_weak(low, base, std::memory_order_relaxed)) {
  }
  u64 high = highest.load(std::memory_order_relaxed);
  while (base + bytes > high && !highest.compare_exchange_weak(high, base + bytes, std::memory_order_relaxed)) {
  }
}

void write_pointer_table(thread_state* t, u64 target, u64 source, u64 bytes) {
  constexpr std::size_t piece = 2048, most_found = 128;
  const u64 low = lowest.load(std::memory_order_relaxed);
  const u64 high = highest.load(std::memory_order_relaxed);
  if (bytes < sizeof(u64) || bytes > max_table_bytes || low == 0 || target == 0 || source == 0) {
    return;
  }
  trace::payload_record head{};
  head.kind = trace::record_kind::pointers;
  head.key = target;
  head.value = bytes;
  u64 words[piece / sizeof(u64)];
  found_word found[most_found];
  std::size_t n = 0;
  for (u64 at = 0; at < bytes; at += piece) {
    const u64 size = bytes - at < piece ? bytes - at : piece;
    if (!read_memory(source + at, words, size)) {
      break;
    }
    for (u64 i = 0; i < size / sizeof(u64); ++i) {
      if (words[i] - low >= high - low) {
        continue;
      }
      found[n++] = {at + i * sizeof(u64), words[i]};
      if (n == most_found) {
        write_payload(t, head, found, sizeof(found));
        n = 0;
      }
    }
  }
  if (n != 0) {
    write_payload(t, head, found, n * sizeof(found_word));
  }
}

} // namespace capturesan::shim
