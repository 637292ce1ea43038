// The reader on traces that grow, and whose chunks are used anew. Expected values: the events that were written.
#include <cstring>

#include "tests/unit/reader_support.h"

using namespace capturesan;

TEST_CASE("a growing file is followed") {
  trace_builder b;
  auto owned = std::make_unique<growing>();
  growing& source = *owned;
  b.call(1, {.symbol = "cuInit", .arg = {0}});
  source.bytes = b.bytes();
  auto file = trace_file::open(std::move(owned), "t");
  REQUIRE(file);
  merger m;
  m.add(*file.value());
  std::vector<std::uint64_t> got;
  const auto read = [&] {
    file.value()->refresh();
    m.collect();
    m.drain(merger::no_horizon, [&](const merged_event& e) { got.push_back(e.cursor->current().arg[0]); });
  };
  read();
  CHECK(got.size() == 1);
  for (std::uint64_t i = 1; i < 2000; ++i) {
    b.call(static_cast<std::uint32_t>(1 + i % 3), {.symbol = "cuStreamQuery", .arg = {i}});
    if (i % 37 == 0) {
      source.bytes = b.bytes();
      read();
    }
  }
  source.bytes = b.bytes();
  read();
  REQUIRE(got.size() == 2000);
  std::sort(got.begin(), got.end());
  for (std::uint64_t i = 0; i < got.size(); ++i) REQUIRE(got[i] == i);
}

TEST_CASE("a horizon holds back what is younger") {
  trace_builder b;
  b.call(1, {.symbol = "cuInit", .begin = 100, .end = 200});
  b.call(1, {.symbol = "cuInit", .begin = 300, .end = 400});
  auto file = trace_file::open(from_memory(b.bytes()), "t");
  REQUIRE(file);
  merger m;
  m.add(*file.value());
  file.value()->refresh();
  m.collect();
  int n = 0;
  m.drain(250, [&](const merged_event&) { ++n; });
  CHECK(n == 1);
  m.drain(merger::no_horizon, [&](const merged_event&) { ++n; });
  CHECK(n == 2);
}

// A second reader, beside the one that the process works for: what it had not read is gone, and what it reads is the
// new thread's.

TEST_CASE("a chunk that was used anew before it was read to its end") {
  trace_builder first;
  for (std::uint64_t i = 0; i < 100; ++i) first.call(1, {.symbol = "cuStreamQuery", .arg = {i}});
  trace_builder second;
  second.call(2, {.symbol = "cuStreamQuery", .arg = {1000}}); // names its calls by the same ids
  for (std::uint64_t i = 1; i < 200; ++i) second.call(2, {.symbol = "cuStreamQuery", .arg = {1000 + i}});
  for (trace_builder* b : {&first, &second}) b->header().state = trace::process_state::running;
  auto owned = std::make_unique<growing>();
  growing& source = *owned;
  source.bytes = first.bytes();
  auto file = trace_file::open(std::move(owned), "t");
  REQUIRE(file);
  file.value()->refresh(); // indexed, not read
  second.header().recycled = 1;
  source.bytes = second.bytes();
  const std::uint64_t sequence = 2;
  std::memcpy(source.bytes.data() + trace::header_bytes + offsetof(trace::chunk_header, sequence), &sequence, 8);
  file.value()->refresh();
  const std::vector<seen> all = read_all(*file.value());
  CHECK(all.size() == 200);
  for (const seen& s : all) CHECK((s.thread == 2 && s.argument >= 1000));
  CHECK(file.value()->process().recycled > 0);
}

TEST_CASE("consumed chunks that are used anew are read again, nothing twice") {
  trace_builder b;
  for (std::uint64_t i = 0; i < 600; ++i) b.call(1, {.symbol = "cuStreamQuery", .arg = {i}});
  auto owned = std::make_unique<growing>();
  growing& source = *owned;
  source.bytes = b.bytes();
  const auto header = [&](std::size_t chunk) {
    return source.bytes.data() + trace::header_bytes + chunk * trace::chunk_bytes;
  };
  const auto put = [](std::byte* at, auto v) { std::memcpy(at, &v, sizeof(v)); };
  const std::uint32_t sealed = 1;
  put(header(0) + offsetof(trace::chunk_header, state), sealed);
  put(header(1) + offsetof(trace::chunk_header, state), sealed);
  auto file = trace_file::open(std::move(owned), "t");
  REQUIRE(file);
  merger m;
  m.add(*file.value());
  std::vector<std::uint64_t> got;
  const auto read = [&] {
    file.value()->refresh();
    m.collect();
    m.drain(merger::no_horizon, [&](const merged_event& e) { got.push_back(e.cursor->current().arg[0]); });
    file.value()->release_consumed();
  };
  read();
  REQUIRE(got.size() == 600);
  std::uint32_t state = 0;
  std::memcpy(&state, header(0) + offsetof(trace::chunk_header, state), 4);
  REQUIRE(state == 2); // consumed
  // The shim takes chunk 0 again: a thread record and one event.
  std::memset(header(0) + 64, 0, trace::chunk_bytes - 64);
  trace::thread_record r{};
  r.kind = trace::record_kind::thread;
  r.slots = 1;
  r.index = 7;
  r.started = b.now() + 10;
  std::memcpy(header(0) + 64, &r, 64);
  trace::event e{};
  e.kind = trace::record_kind::event;
  e.slots = 1;
  e.begin = b.now() + 20;
  e.end = b.now() + 30;
  e.arg[0] = 4711;
  std::memcpy(header(0) + 128, &e, 64);
  put(header(0) + offsetof(trace::chunk_header, sequence), std::uint64_t{99});
  put(header(0) + offsetof(trace::chunk_header, state), std::uint32_t{0});
  put(header(0) + offsetof(trace::chunk_header, used), std::uint32_t{3});
  read();
  read();
  REQUIRE(got.size() == 601);
  CHECK(got.back() == 4711);
}

TEST_CASE("a chunk that is used anew and filled between two looks is not lost") {
  // Between the two looks of a refresh the shim may take a consumed chunk, fill it and seal it. The source below does
  // that at the second look at the chunk's header.
  class quick final : public byte_source {
   public:
    std::vector<std::byte> bytes;
    int looks_left = -1; // at the header of chunk 0, until it is used anew
    std::uint64_t size() override { return bytes.size(); }
    bool write(std::uint64_t offset, const void* from, std::size_t n) override {
      std::memcpy(bytes.data() + offset, from, n);
      return true;
    }
    std::size_t read(std::uint64_t offset, void* to, std::size_t n) override {
      if (offset == trace::header_bytes && n == sizeof(trace::chunk_header) && looks_left >= 0 && looks_left-- == 0)
        use_anew();
      if (offset >= bytes.size()) return 0;
      n = std::min<std::size_t>(n, bytes.size() - offset);
      std::memcpy(to, bytes.data() + offset, n);
      return n;
    }
    void use_anew() {
      std::byte* h = bytes.data() + trace::header_bytes;
      const auto put = [&](std::size_t at, auto v) { std::memcpy(h + at, &v, sizeof(v)); };
      trace::thread_record r{};
      r.kind = trace::record_kind::thread;
      r.slots = 1;
      r.index = 7;
      r.started = 1'000'000'000;
      std::memcpy(h + 64, &r, 64);
      trace::event e{};
      e.kind = trace::record_kind::event;
      e.slots = 1;
      e.begin = e.end = 1'000'000'100;
      for (std::uint64_t i = 2; i < trace::slots_per_chunk; ++i) {
        e.arg[0] = 4709 + i;
        std::memcpy(h + i * 64, &e, 64);
      }
      put(offsetof(trace::chunk_header, sequence), std::uint64_t{99});
      put(offsetof(trace::chunk_header, state), std::uint32_t{1});
      put(offsetof(trace::chunk_header, used), std::uint32_t{trace::slots_per_chunk});
    }
  };
  trace_builder b;
  for (std::uint64_t i = 0; i < 600; ++i) b.call(1, {.symbol = "cuStreamQuery", .arg = {i}});
  auto owned = std::make_unique<quick>();
  quick& source = *owned;
  source.bytes = b.bytes();
  const std::uint32_t sealed = 1;
  std::memcpy(source.bytes.data() + trace::header_bytes + offsetof(trace::chunk_header, state), &sealed, 4);
  auto file = trace_file::open(std::move(owned), "t");
  REQUIRE(file);
  merger m;
  m.add(*file.value());
  std::size_t n = 0;
  const auto read = [&] {
    file.value()->refresh();
    m.collect();
    m.drain(merger::no_horizon, [&](const merged_event&) { ++n; });
    file.value()->release_consumed();
  };
  read();
  REQUIRE(n == 600);
  source.looks_left = 1; // the first look of the next refresh finds it consumed, the second one full
  read();
  read();
  read();
  CHECK(n == 600 + trace::slots_per_chunk - 2);
}
