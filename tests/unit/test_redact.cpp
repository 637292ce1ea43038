// What `redact` takes out of each record that holds text. The records are those of trace/event.h; that no other kind
// holds a path is what the list of kinds in analyzer/redact.cpp says, which the compiler checks for being whole.
#include <cstring>

#include "analyzer/redact.h"
#include "tests/unit/support.h"

using namespace capturesan;

namespace {

std::vector<std::byte> redacted(std::vector<std::byte> bytes) {
  redact_header(std::span(bytes).first(trace::header_bytes));
  for (std::size_t at = trace::header_bytes; at < bytes.size(); at += trace::chunk_bytes)
    redact_chunk(std::span(bytes).subspan(at, std::min(trace::chunk_bytes, bytes.size() - at)));
  return bytes;
}

bool has(const std::vector<std::byte>& bytes, std::string_view text) {
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).find(text) !=
         std::string_view::npos;
}

} // namespace

TEST_CASE("redact: paths keep their last part, arguments go, names stay") {
  trace_builder b;
  b.text(1, trace::text_role::executable, 0, "/srv/hidden/bin/engine");
  b.text(1, trace::text_role::argv, 1, "--token=hidden");
  b.text(1, trace::text_role::deepbind, 0, "/srv/hidden/libplugin.so");
  b.text(1, trace::text_role::note, 0, "no frames of /srv/hidden/libpython3.so: too old");
  b.module(1, 0x400000, 0x400000, 0x500000, "/srv/hidden/lib/libblas.so.3");
  b.python(1, "Thread 0x1 of hidden:\n  File \"/srv/hidden/a.py\", line 3 in go\n  File \"/srv/hidden/cut");
  b.call(1, {.symbol = "cuStreamBeginCapture_v2", .stream = 0x1000});
  const std::vector<std::byte> before = b.bytes(), after = redacted(before);
  REQUIRE(has(before, "hidden"));
  CHECK(after.size() == before.size());
  CHECK_FALSE(has(after, "hidden"));
  CHECK_FALSE(has(after, "/home"));
  for (const char* kept : {"engine", "libplugin.so", "no frames of libpython3.so: too old", "libblas.so.3",
                           "  File \"a.py\", line 3 in go", "cuStreamBeginCapture_v2"}) {
    INFO(kept);
    CHECK(has(after, kept));
  }
  const judged whole(before), copy(after);
  CHECK(copy.summary().complete);
  CHECK(copy.summary().events == whole.summary().events);
}

TEST_CASE("redact: any bytes at all, and nothing outside of them") {
  std::vector<std::byte> bytes = [] {
    trace_builder b;
    b.text(1, trace::text_role::executable, 0, "/srv/hidden/bin/engine");
    b.module(1, 0x400000, 0x400000, 0x500000, "/srv/hidden/lib/libblas.so.3");
    for (int i = 0; i < 20; ++i) b.call(1, {.symbol = "cuMemAlloc_v2", .arg = {0x1000, 64}});
    return b.bytes();
  }();
  std::uint32_t random = 1;
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::byte> damaged = bytes;
    for (int i = 0; i < 4; ++i) {
      random = random * 1664525u + 1013904223u;
      damaged[trace::header_bytes + random % (damaged.size() - trace::header_bytes)] = std::byte(random >> 24);
    }
    damaged.resize(damaged.size() - random % 3000);
    const std::vector<std::byte> once = redacted(damaged);
    CHECK(redacted(once) == once);
  }
}
