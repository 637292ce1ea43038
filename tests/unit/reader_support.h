// Shared by the tests of the reader.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "analyzer/merger.h"
#include "tests/unit/support.h"

namespace capturesan {

// Grows while it is read, as a file does.
class growing final : public byte_source {
 public:
  std::vector<std::byte> bytes;
  std::uint64_t size() override { return bytes.size(); }
  std::size_t read(std::uint64_t offset, void* to, std::size_t n) override {
    if (offset >= bytes.size()) return 0;
    n = std::min<std::size_t>(n, bytes.size() - offset);
    std::memcpy(to, bytes.data() + offset, n);
    return n;
  }
  bool write(std::uint64_t offset, const void* from, std::size_t n) override {
    std::memcpy(bytes.data() + offset, from, n);
    return true;
  }
};

inline constexpr std::int32_t not_ready = 600;

struct seen {
  std::uint32_t thread;
  std::string symbol;
  std::uint64_t argument;
  std::uint64_t begin = 0, end = 0;
  std::uint8_t flags = 0;
};

inline std::vector<seen> read_all(trace_file& file) {
  std::vector<seen> out;
  merger m;
  m.add(file);
  file.refresh();
  m.collect();
  m.drain(merger::no_horizon, [&](const merged_event& e) {
    const trace::event& event = e.cursor->current();
    out.push_back({e.cursor->thread_index(), e.call->symbol, event.arg[0], event.begin, event.end, event.flags});
  });
  return out;
}

// Three threads, graphs with nodes, statuses, stacks: every kind of record, over several chunks.
// `events`: how many it has, without the one that never returned.
inline std::vector<std::byte> varied_trace(std::size_t* events = nullptr) {
  trace_builder b;
  const std::uint64_t stack[] = {0x401000, 0x402000};
  b.module(1, 0x400000, 0x400000, 0x500000, "/usr/bin/program");
  std::size_t again = 0;
  for (std::uint32_t i = 0; i < 300; ++i) {
    const std::uint32_t t = 1 + i % 3;
    b.stack(t, 100 + i % 7, stack);
    const std::uint64_t begin = b.call(t, {.symbol = "cuStreamBeginCapture_v2", .stream = 0x1000 + t});
    const std::pair<std::uint16_t, std::uint16_t> layout[] = {{0, 8}, {8, 4}};
    b.function(t, 0x77, "kernel", layout);
    b.status(t, 0x1000 + t, begin, trace::capture_status::active);
    b.call(t, {.symbol = "cuMemcpyBatchAsync", .result = 900, .stream = 0x1000 + t, .stack = 100 + i % 7});
    b.call(t, {.symbol = "cuStreamEndCapture", .stream = 0x1000 + t, .arg = {0x5000 + i, 1, 0}});
    trace::node_record n{};
    n.type = trace::node_type::kernel;
    n.value[0] = 0x77;
    const std::uint64_t words[] = {0x10000000ull * i, 7};
    b.node(t, n, std::as_bytes(std::span(words)));
    b.call(t, {.symbol = "cuGraphInstantiateWithFlags", .arg = {0x9000 + i, 0x5000 + i, 0}});
    b.call(t, {.symbol = "cuGraphLaunch", .stream = 2, .arg = {0x9000 + i, 0x401000, 0}});
    for (std::uint32_t k = 0; k < i % 9 && b.room(t); ++k, ++again) b.again(t);
    b.text(t, trace::text_role::note, 0, "something");
  }
  b.lost(2, 3);
  b.pending(3, "cuStreamSynchronize", 0x1003);
  if (events != nullptr) *events = std::size_t{5} * 300 + again;
  return b.bytes();
}

} // namespace capturesan
