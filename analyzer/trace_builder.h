// Makes trace files in memory: the events of a rule's inline tests, and the traces of the unit tests. Writes what the
// shim would write, through the same structs. Times are ticks of 1 ns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/event.h"
#include "trace/format.h"

namespace capturesan {

struct built_call {
  std::string_view symbol; // ABI name
  std::int32_t result = 0;
  std::uint64_t begin = 0, end = 0; // 0: the next microsecond, 1 us long
  std::uint64_t stream = 0;
  std::array<std::uint64_t, 3> arg{};
  std::uint32_t stack = 0;
  std::uint8_t flags = 0;
};

class trace_builder {
 public:
  explicit trace_builder(std::uint32_t pid = 1000, trace::trace_level level = trace::trace_level::lite,
                         trace::driver_kind driver = trace::driver_kind::simulated);

  // Threads are numbered from 1 and exist on first use.
  void name_thread(std::uint32_t thread, std::string_view name);
  // Writes the event; returns its begin.
  std::uint64_t call(std::uint32_t thread, const built_call& c);
  // The thread's newest event once more, as one word of an `again` record; returns its begin. The event must lie in the
  // chunk that the thread is writing.
  std::uint64_t again(std::uint32_t thread);
  // The same, but the call never returned.
  std::uint64_t again_under_way(std::uint32_t thread);
  std::uint64_t again_untimed(std::uint32_t thread); // nobody took the time of its return
  bool room(std::uint32_t thread) const { return chunks_[chunk_of_.at(thread)].used < trace::slots_per_chunk; }
  std::uint64_t now() const { return now_; }
  void wait(std::uint64_t ticks) { now_ += ticks; }

  // Side records: they belong to the next call of the thread.
  void status(std::uint32_t thread, std::uint64_t stream, std::uint64_t begin, trace::capture_status status);
  void function(std::uint32_t thread, std::uint64_t handle, std::string_view name,
                std::span<const std::pair<std::uint16_t, std::uint16_t>> layout);
  void descriptor(std::uint32_t thread, trace::payload_record head);
  void node(std::uint32_t thread, trace::node_record n, std::span<const std::byte> params = {});
  void text(std::uint32_t thread, trace::text_role role, std::uint64_t key, std::string_view text);
  void lost(std::uint32_t thread, std::uint64_t count);
  // Edges of the graph that the next call instantiates: pairs of node handles, from and to.
  void edges(std::uint32_t thread, std::span<const std::uint64_t> pairs, std::uint64_t graph = 0);
  void thread_end(std::uint32_t thread);

  void stack(std::uint32_t thread, std::uint32_t id, std::span<const std::uint64_t> addresses);
  void module(std::uint32_t thread, std::uint64_t bias, std::uint64_t begin, std::uint64_t end, std::string_view path);

  // The entry of a call that never returned.
  void pending(std::uint32_t thread, std::string_view symbol, std::uint64_t stream, std::uint64_t arg = 0);

  // Words in what the next call copies to `target`: pairs of offset and word.
  void pointers(std::uint32_t thread, std::uint64_t target, std::span<const std::uint64_t> pairs);

  // Python frames of the next call of the thread.
  void python(std::uint32_t thread, std::string_view frames);

  trace::file_header& header() { return header_; }
  std::vector<std::byte> bytes() const;

 private:
  struct chunk {
    std::vector<std::byte> data;
    std::uint32_t used = 1;
    std::uint32_t event = 0; // slot of the newest event
    std::uint32_t entries = 0;
    std::uint64_t again_begin = 0;
  };
  std::uint64_t put_again(std::uint32_t thread, std::uint64_t took);
  std::byte* reserve(std::uint32_t thread, std::size_t slots);
  void payload(std::uint32_t thread, trace::payload_record head, std::span<const std::byte> first,
               std::span<const std::byte> second = {});
  std::uint16_t call_number(std::uint32_t thread, std::string_view symbol);

  trace::file_header header_{};
  std::vector<chunk> chunks_;
  std::map<std::uint32_t, std::size_t> chunk_of_;
  std::map<std::uint32_t, std::string> names_;
  std::map<std::string, std::uint16_t, std::less<>> calls_;
  std::uint64_t now_ = 1'000'000;
};

} // namespace capturesan
