// A trace file: one process, one page of header, then chunks.
//
//   offset 0                   file_header, header_bytes long
//   header_bytes + n * chunk_bytes   chunk n: chunk_header (one slot), then records
//
// A file is valid as far as it goes. A chunk counts if its magic is right; its first `used` slots are committed
// (release store by the writing thread after each record), the rest is undefined. Chunks of one thread are ordered by
// `sequence`. A trace is a folder of such files, named process-<pid>-<start>.cstrace; other files in it belong to the
// command line.
//
// Clock: ticks are TSC values on x86-64 and CNTVCT on arm64. ns = clock_ns + (ticks - clock_ticks) * ns_per_tick, where
// ns_per_tick comes from the newest pair (clock2_*) if it is set; clock_ns counts as CLOCK_MONOTONIC.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace capturesan::trace {

inline constexpr char file_magic[8] = {'C', 'A', 'P', 'S', 'A', 'N', '\r', '\n'};
inline constexpr std::uint16_t format_major = 3; // a reader refuses any it does not know
// The oldest major this version reads: 2 added `again` records, 3 entries of them without the time of the return.
inline constexpr std::uint16_t format_oldest = 1;
inline constexpr std::uint16_t format_minor = 0; // raised when something is appended that may be skipped
inline constexpr std::size_t header_bytes = 4096;
inline constexpr std::size_t chunk_bytes = 16384;
inline constexpr std::size_t slots_per_chunk = chunk_bytes / 64;
inline constexpr std::uint32_t chunk_magic = 0x4b4e4843; // "CHNK"
inline constexpr char file_suffix[] = ".cstrace";
// Beside the files: an empty folder `untraced-<pid>-<name>` of each process whose file could not be opened.
inline constexpr char untraced_prefix[] = "untraced-";

// Shared between the processes, so every atomic must be address-free.
static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);

enum class driver_kind : std::uint32_t { unknown = 0, real = 1, simulated = 2 };
enum class process_state : std::uint32_t {
  running = 1,
  ended = 2,    // exit handlers ran
  replaced = 3, // exec was about to replace the image
};
enum class trace_level : std::uint32_t { lite = 0, full = 1 };
enum class cupti_state : std::uint32_t { off = 0, on = 1, unavailable = 2, held = 3 };

struct file_header {
  char magic[8];
  std::uint16_t major, minor;
  std::uint32_t header_bytes_, chunk_bytes_, slot_bytes_; // as written; a reader refuses other sizes
  std::uint32_t pid, parent_pid;
  std::uint64_t start_time_ns; // CLOCK_REALTIME at creation
  std::uint64_t clock_ticks, clock_ns;
  std::atomic<std::uint64_t> clock2_ticks, clock2_ns; // a later pair; ticks are stored last
  std::atomic<driver_kind> driver;
  std::atomic<std::uint32_t> driver_version; // as cuDriverGetVersion: 13000
  std::atomic<trace_level> level;
  std::atomic<process_state> state;
  std::atomic<std::uint64_t> chunks;                // allocated so far
  std::atomic<std::uint64_t> lost;                  // records not written, all threads
  std::atomic<std::uint64_t> lost_first, lost_last; // ticks
  std::atomic<std::uint32_t> lost_reason;           // lost_why
  std::atomic<std::uint32_t> threads;               // thread indices given out
  std::atomic<cupti_state> cupti;
  std::atomic<std::uint32_t> open_captures;  // at this moment
  std::atomic<std::uint64_t> recycled;       // chunks used anew: what they held is no longer in the file
  char driver_string[64];                    // full driver version, such as "580.159.04"; empty if unknown
  char device[64];                           // name of device 0
  std::atomic<std::uint64_t> recycled_until; // ticks: no record that is gone this way was written later; since 2.0
  // 10 * major + minor compute capability that all devices have; 0 = not known, or they differ. Since 2.1, as is
  // operand `code` of module_load.
  std::atomic<std::uint32_t> capability;
  std::uint32_t reserved1;
  std::uint64_t reserved[13];
};
static_assert(sizeof(file_header) <= header_bytes);

enum class lost_why : std::uint32_t {
  none = 0,
  disk_full = 1,
  file_size_limit = 2,
  max_trace = 3,
  no_memory = 4,
  io = 5
};

// A sealed chunk is never written again, unless a reader that follows the process marks it as consumed (it stores
// chunk_state::consumed into the file): then the shim may use it anew, under a higher `sequence`. So a long run needs
// no more disk than its reader lags behind.
enum class chunk_state : std::uint32_t { open = 0, sealed = 1, consumed = 2 };

// Chunks of definitions (call_name, stack, module records) have no thread and are never used anew: every event may
// refer to them.
enum class chunk_purpose : std::uint32_t { events = 0, definitions = 1 };

struct chunk_header {
  std::uint32_t magic;
  std::atomic<std::uint32_t> used; // committed slots, this header included; 0 = not in use yet
  std::uint64_t sequence;          // order of allocation in the file, from 1
  // Entry of a call that may block, published before the real call and cleared after it, so that a hang leaves a trace.
  std::atomic<std::uint64_t> pending_begin; // ticks; 0 = none
  std::atomic<std::uint64_t> pending_stream;
  std::atomic<std::uint64_t> pending_arg;  // operand a
  std::atomic<std::uint32_t> pending_call; // call id of this file
  std::atomic<std::uint32_t> state;        // chunk_state
  chunk_purpose purpose;
  std::uint32_t reserved0;
  std::uint64_t sealed_at; // ticks; since 2.0
};
static_assert(sizeof(chunk_header) == 64);

} // namespace capturesan::trace
