// The reader on whole, cut and damaged traces. Expected values: the events that were written.
#include <cstring>
#include <random>

#include "tests/unit/reader_support.h"

using namespace capturesan;

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
