// The reader on whole, growing, cut and damaged traces. Expected values: the events that were written.
#include <cstring>
#include <random>

#include "analyzer/merger.h"
#include "tests/unit/support.h"

using namespace capturesan;

namespace {

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

constexpr std::int32_t not_ready = 600;

struct seen {
  std::uint32_t thread;
  std::string symbol;
  std::uint64_t argument;
  std::uint64_t begin = 0, end = 0;
  std::uint8_t flags = 0;
};

std::vector<seen> read_all(trace_file& file) {
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
std::vector<std::byte> varied_trace(std::size_t* events = nullptr) {
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

} // namespace

TEST_CASE("events come in commit order per thread and in clock order over threads") {
  trace_builder b;
  b.call(1, {.symbol = "cuInit", .begin = 100, .end = 110, .arg = {1}});
  b.call(2, {.symbol = "cuInit", .begin = 50, .end = 60, .arg = {2}});
  b.call(1, {.symbol = "cuInit", .begin = 120, .end = 130, .arg = {3}});
  b.call(2, {.symbol = "cuInit", .begin = 121, .end = 125, .arg = {4}});
  auto file = trace_file::open(from_memory(b.bytes()), "t");
  REQUIRE(file);
  const auto all = read_all(*file.value());
  REQUIRE(all.size() == 4);
  CHECK(all[0].argument == 2);
  CHECK(all[1].argument == 1);
  CHECK(all[2].argument == 4);
  CHECK(all[3].argument == 3);
}

TEST_CASE("a free takes its place at entry, an allocation at exit") { // classes.def
  trace_builder b;
  b.call(1, {.symbol = "cuMemFree_v2", .begin = 100, .end = 500, .arg = {1}});
  b.call(2, {.symbol = "cuMemAlloc_v2", .begin = 50, .end = 300, .arg = {2}});
  auto file = trace_file::open(from_memory(b.bytes()), "t");
  REQUIRE(file);
  const auto all = read_all(*file.value());
  REQUIRE(all.size() == 2);
  CHECK(all[0].symbol == "cuMemFree_v2");
}

TEST_CASE("thousands of events over many chunks keep their order") {
  trace_builder b;
  for (std::uint64_t i = 0; i < 5000; ++i)
    b.call(static_cast<std::uint32_t>(1 + i % 5), {.symbol = "cuStreamQuery", .arg = {i}});
  auto file = trace_file::open(from_memory(b.bytes()), "t");
  REQUIRE(file);
  const auto all = read_all(*file.value());
  REQUIRE(all.size() == 5000);
  for (std::uint64_t i = 0; i < all.size(); ++i) REQUIRE(all[i].argument == i);
  CHECK_FALSE(file.value()->process().truncated);
}

TEST_CASE("a chunk that passes to another thread is followed, in the order the threads took it") {
  // Thread 2 filled chunk 1 first, then went on in the rest of chunk 0, which thread 1 had left.
  trace_builder b;
  b.call(1, {.symbol = "cuInit", .begin = 10, .end = 20, .arg = {1}});
  auto bytes = b.bytes();
  const auto slot = [&](std::size_t chunk, std::size_t n) {
    return bytes.data() + trace::header_bytes + chunk * trace::chunk_bytes + n * 64;
  };
  bytes.resize(bytes.size() + trace::chunk_bytes);
  trace::chunk_header h{};
  std::memcpy(slot(1, 0), slot(0, 0), 64);
  const auto set_used = [&](std::size_t chunk, std::uint32_t used) { std::memcpy(slot(chunk, 0) + 4, &used, 4); };
  trace::thread_record r{};
  r.kind = trace::record_kind::thread;
  r.slots = 1;
  r.index = 2;
  r.started = 30;
  std::memcpy(slot(1, 1), &r, 64);
  trace::event e{};
  e.kind = trace::record_kind::event;
  e.slots = 1;
  e.begin = 40;
  e.end = 50;
  e.arg[0] = 2;
  std::memcpy(slot(1, 2), &e, 64);
  set_used(1, 3);
  std::uint32_t used = 0;
  std::memcpy(&used, slot(0, 0) + 4, 4);
  r.started = 60;
  std::memcpy(slot(0, used), &r, 64);
  e.begin = 70;
  e.end = 80;
  e.arg[0] = 3;
  std::memcpy(slot(0, used + 1), &e, 64);
  set_used(0, used + 2);
  (void)h;
  auto file = trace_file::open(from_memory(bytes), "t");
  REQUIRE(file);
  const auto all = read_all(*file.value());
  REQUIRE(all.size() == 3);
  CHECK(all[0].thread == 1);
  CHECK(all[1].argument == 2);
  CHECK(all[2].argument == 3);
  CHECK(all[2].thread == 2);
}

TEST_CASE("what is no trace is refused by name, another version with both versions") {
  const auto refused = [](std::vector<std::byte> bytes) {
    auto f = trace_file::open(from_memory(std::move(bytes)), "x");
    REQUIRE_FALSE(f);
    return f.problems().front().message;
  };
  CHECK(refused({}) == "not a trace");
  CHECK(refused(std::vector<std::byte>(5000)) == "not a trace");
  auto bytes = trace_builder().bytes();
  bytes[8] = std::byte{9};
  const auto message = refused(bytes);
  CHECK(message.find("9." + std::to_string(trace::format_minor)) != std::string::npos);
  CHECK(message.find(std::to_string(trace::format_major) + "." + std::to_string(trace::format_minor)) !=
        std::string::npos);
  bytes[8] = std::byte{1};
  bytes[16] = std::byte{7}; // chunk size
  CHECK(refused(bytes).find("layout") != std::string::npos);
}

TEST_CASE("a trace cut at any byte is read as far as it goes") {
  std::size_t all = 0;
  const auto whole = varied_trace(&all);
  auto file = trace_file::open(from_memory(whole), "t");
  REQUIRE(file);
  REQUIRE(read_all(*file.value()).size() == all);
  std::size_t before = 0;
  const std::size_t end = std::min<std::size_t>(whole.size(), 65536);
  for (std::size_t cut = 0; cut <= end; ++cut) {
    auto part = trace_file::open(from_memory({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut)}), "t");
    if (cut < sizeof(trace::file_header)) {
      REQUIRE_FALSE(part);
      continue;
    }
    REQUIRE(part);
    const std::size_t n = read_all(*part.value()).size();
    REQUIRE(n <= all);
    REQUIRE(n >= before); // never fewer for a longer file
    before = n;
  }
}

TEST_CASE("cut traces are judged without a crash and are not called complete") {
  std::size_t all = 0;
  const auto whole = varied_trace(&all);
  for (std::size_t cut = trace::header_bytes; cut < whole.size(); cut += 997) {
    const judged j({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut)});
    if (j.summary().events < all + 1) CHECK_FALSE(j.summary().complete); // one of them never returned
  }
}

TEST_CASE("damaged traces are read without a crash") {
  const auto whole = varied_trace();
  std::mt19937 random(580159); // fixed: a failure can be repeated
  for (int round = 0; round < 400; ++round) {
    auto bytes = whole;
    const int flips = 1 + static_cast<int>(random() % 40);
    for (int i = 0; i < flips; ++i) {
      const std::size_t at = sizeof(trace::file_magic) + 16 + random() % (bytes.size() - 24);
      if (at < 28) continue; // keep versions and sizes: another test refuses them
      bytes[at] = std::byte(random() % 256);
    }
    const judged j(std::move(bytes));
    CHECK(j.summary().events < 1'000'000);
  }
}

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

TEST_CASE("calls like an earlier one are given as whole events, each once") {
  trace_builder b;
  auto owned = std::make_unique<growing>();
  growing& source = *owned;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> wanted, got; // begin, argument
  b.call(1, {.symbol = "cuInit"});
  source.bytes = b.bytes();
  auto file = trace_file::open(std::move(owned), "t");
  REQUIRE(file);
  merger m;
  m.add(*file.value());
  const auto read = [&] {
    source.bytes = b.bytes();
    file.value()->refresh();
    m.collect();
    m.drain(merger::no_horizon, [&](const merged_event& e) {
      const trace::event& event = e.cursor->current();
      if (e.call->symbol == "cuInit") return;
      CHECK(e.call->symbol == "cuEventQuery");
      CHECK(event.result == not_ready);
      CHECK(event.stream == 7);
      CHECK((event.end > event.begin && event.end - event.begin <= 1000));
      got.emplace_back(event.begin, event.arg[0]);
    });
  };
  std::mt19937 random(5);
  for (std::uint64_t i = 1; wanted.size() < 5000; ++i) {
    const auto t = static_cast<std::uint32_t>(1 + i % 2);
    const built_call c{.symbol = "cuEventQuery", .result = not_ready, .stream = 7, .arg = {i, 0, 0}};
    wanted.emplace_back(b.call(t, c), i);
    for (auto n = random() % 30; n > 0 && b.room(t); --n) {
      wanted.emplace_back(b.again(t), i);
      if (random() % 5 == 0) read(); // in the middle of a record that still grows
    }
  }
  read();
  CHECK(got == wanted);
  CHECK_FALSE(file.value()->process().truncated);
}

TEST_CASE("a repeated call that never returned is reported as unfinished, one that was overtaken is not") {
  for (const bool followed : {false, true}) {
    trace_builder b;
    b.call(1, {.symbol = "cuStreamSynchronize", .stream = 0x10});
    b.again(1);
    const std::uint64_t begin = b.again_under_way(1);
    // A signal handler made a call meanwhile, and the event of the call it interrupted was then written whole.
    if (followed) {
      b.call(1, {.symbol = "cuInit", .begin = begin + 5, .end = begin + 6});
      b.call(1, {.symbol = "cuStreamSynchronize", .begin = begin, .end = begin + 9, .stream = 0x10});
    }
    auto file = trace_file::open(from_memory(b.bytes()), "t");
    REQUIRE(file);
    trace_file& f = *file.value();
    merger m;
    m.add(f);
    f.refresh();
    f.add_unfinished();
    m.collect();
    std::vector<trace::event> got;
    m.drain(merger::no_horizon, [&](const merged_event& e) { got.push_back(e.cursor->current()); });
    REQUIRE(got.size() == (followed ? 4 : 3));
    const bool unfinished = (got.back().flags & trace::event_unfinished) != 0;
    CHECK(unfinished == !followed);
    CHECK(got.back().begin == begin);
    CHECK(got.back().stream == 0x10);
    CHECK_FALSE(f.process().truncated);
  }
}

TEST_CASE("a launch whose return was not timed is there with its entry and says so") {
  trace_builder b;
  b.call(1, {.symbol = "cuGraphLaunch", .stream = 0x10, .arg = {1}});
  const std::uint64_t first = b.again_untimed(1), second = b.again_untimed(1);
  b.call(1, {.symbol = "cuInit"});
  std::vector<std::byte> bytes = b.bytes();
  {
    auto file = trace_file::open(from_memory(bytes), "t");
    REQUIRE(file);
    const std::vector<seen> got = read_all(*file.value());
    REQUIRE(got.size() == 4);
    CHECK(got[0].flags == 0);
    for (const auto& [at, begin] : {std::pair{1, first}, {2, second}}) {
      CHECK(got[static_cast<std::size_t>(at)].begin == begin);
      CHECK(got[static_cast<std::size_t>(at)].end == begin);
      CHECK(got[static_cast<std::size_t>(at)].flags == trace::event_untimed);
    }
    CHECK_FALSE(file.value()->process().truncated);
  }
  // Before format 3 the same bits were a time.
  bytes[offsetof(trace::file_header, major)] = std::byte{2};
  auto file = trace_file::open(from_memory(bytes), "t");
  REQUIRE(file);
  const std::vector<seen> got = read_all(*file.value());
  REQUIRE(got.size() == 4);
  CHECK(got[1].end == first + trace::again_untimed);
  CHECK(got[1].flags == 0);
}

TEST_CASE("a word that refers to no event of its thread is damage, and the rest is read") {
  trace_builder b;
  b.call(1, {.symbol = "cuInit", .arg = {1}}); // slot 3, behind thread and name
  b.again(1);
  b.call(1, {.symbol = "cuInit", .arg = {2}});
  std::vector<std::byte> bytes = b.bytes();
  std::byte* word = bytes.data() + trace::header_bytes + 4 * trace::slot_bytes + offsetof(trace::again_record, entry);
  for (const int slot : {1, 2, 4, 5, 255}) { // thread record, name, itself, a later one, beyond what is used
    *word = static_cast<std::byte>(slot);
    auto file = trace_file::open(from_memory(bytes), "t");
    REQUIRE(file);
    const std::vector<seen> got = read_all(*file.value());
    REQUIRE(got.size() == 2);
    CHECK(got[1].argument == 2);
    CHECK(file.value()->process().truncated);
  }
}

TEST_CASE("an unknown record is damage, unless a later minor version may have written it") {
  trace_builder b;
  b.call(1, {.symbol = "cuInit", .arg = {1}}); // slot 3, behind thread and name
  b.call(1, {.symbol = "cuInit", .arg = {2}});
  std::vector<std::byte> bytes = b.bytes();
  bytes[trace::header_bytes + 4 * trace::slot_bytes] = std::byte{200}; // the second event's kind
  for (const bool later : {false, true}) {
    const auto minor = static_cast<std::uint16_t>(trace::format_minor + (later ? 1 : 0));
    std::memcpy(bytes.data() + offsetof(trace::file_header, minor), &minor, sizeof(minor));
    auto file = trace_file::open(from_memory(bytes), "t");
    REQUIRE(file);
    CHECK(read_all(*file.value()).size() == 1);
    CHECK(file.value()->process().truncated == !later);
  }
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

TEST_CASE("a call that never returned is reported as unfinished") {
  trace_builder b;
  b.call(1, {.symbol = "cuInit"});
  b.pending(1, "cuStreamSynchronize", 0x10);
  auto file = trace_file::open(from_memory(b.bytes()), "t");
  REQUIRE(file);
  trace_file& f = *file.value();
  merger m;
  m.add(f);
  f.refresh();
  f.add_unfinished();
  m.collect();
  std::vector<std::string> calls;
  std::uint8_t flags = 0;
  m.drain(merger::no_horizon, [&](const merged_event& e) {
    calls.push_back(e.call->symbol);
    flags = e.cursor->current().flags;
  });
  REQUIRE(calls.size() == 2);
  CHECK(calls[1] == "cuStreamSynchronize");
  CHECK((flags & trace::event_unfinished) != 0);
}

TEST_CASE("a name that this build does not know is kept as text") {
  trace_builder b;
  b.call(1, {.symbol = "cuFromTheFuture_v9"});
  auto file = trace_file::open(from_memory(b.bytes()), "t");
  REQUIRE(file);
  const auto all = read_all(*file.value());
  REQUIRE(all.size() == 1);
  CHECK(all[0].symbol == "cuFromTheFuture_v9");
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
