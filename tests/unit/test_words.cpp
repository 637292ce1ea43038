// Words of structs: when a kernel's code is asked about one, what it is asked, and what an answer changes.
#include <csignal>
#include <sys/wait.h>

#include "analyzer/device_code.h"
#include "analyzer/disassembler.h"
#include "analyzer/tool_output.h"
#include "tests/unit/support.h"

using namespace capturesan;
using trace::node_type;

namespace {

constexpr std::uint64_t s1 = 0x1000, exec = 0x60, graph = 0x50, buf = 0x700000000000, library = 0x80, kernel = 0x81,
                        function = 0x82, object = 0x20000000, bias = 0x1f000000;

struct fake_reader : code_reader {
  std::optional<std::string> answer;
  struct asked {
    std::string path, function;
    std::uint64_t image, begin, end, grid, block;
    std::uint32_t capability, offset;
    std::size_t parameters;
    bool inside_only;
  };
  std::vector<asked> questions;
  std::optional<std::string> use_of(const code_question& q) override {
    questions.push_back({std::string(q.path), std::string(q.function), q.image, q.begin, q.end, q.grid, q.block,
                         q.capability, q.offset, q.parameters.size(), q.inside_only});
    return answer;
  }
};

struct program {
  std::vector<std::pair<std::uint16_t, std::uint16_t>> layout = {{0, 4}, {8, 24}};
  std::vector<std::uint64_t> words = {1, 5, buf + 64, 7}; // the second word of the second parameter
  std::uint64_t code = object + 0x1234;
  std::uint32_t capability = 90;
  bool freed = true, unloaded = false, known_as_kernel = true;
  std::uint64_t freed_address = buf;
  std::string name = "_Z4used4work";

  std::vector<std::byte> bytes() const {
    trace_builder b;
    b.header().capability = capability;
    b.module(1, bias, object, object + 0x10000, "/opt/engine");
    b.call(1, {.symbol = "cuLibraryLoadData", .arg = {library, code}});
    b.text(1, trace::text_role::function_name, kernel, name);
    b.call(1, {.symbol = "cuLibraryGetKernel", .arg = {kernel, library}});
    if (known_as_kernel) b.call(1, {.symbol = "cuKernelGetFunction", .arg = {function, kernel}});
    b.call(1, {.symbol = "cuMemAlloc_v2", .arg = {buf, 4096}});
    b.call(1, {.symbol = "cuMemAlloc_v2", .arg = {buf + 4096, 4096}});
    b.function(1, function, name, layout);
    trace::node_record n{};
    n.type = node_type::kernel;
    n.value[0] = function;
    n.value[1] = 3;
    n.value[2] = 128;
    b.node(1, n, std::as_bytes(std::span(words)));
    b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {exec, graph}});
    if (unloaded) b.call(1, {.symbol = "cuLibraryUnload", .arg = {library}});
    b.call(1, {.symbol = "cuGraphLaunch", .stream = s1, .arg = {exec}});
    if (freed) b.call(1, {.symbol = "cuMemFree_v2", .arg = {freed_address}});
    b.call(1, {.symbol = "cuGraphLaunch", .stream = s1, .arg = {exec}});
    b.call(1, {.symbol = "cuGraphLaunch", .stream = s1, .arg = {exec}});
    return b.bytes();
  }
};

struct result_of {
  std::vector<finding> stale;
  std::vector<fake_reader::asked> questions;
};

result_of judge(const std::vector<std::byte>& bytes, std::optional<std::string> answer) {
  audit_options options;
  const auto reader = std::make_shared<fake_reader>();
  reader->answer = std::move(answer);
  options.code = reader;
  auditor a(shipped_rules().compiled(), std::move(options));
  REQUIRE(a.add_source(from_memory(bytes), "test"));
  a.finish();
  result_of out;
  for (const finding& f : a.findings())
    if (f.rule == "CS201" || f.rule == "CS210") out.stale.push_back(f);
  out.questions = reader->questions;
  return out;
}

} // namespace

TEST_CASE("a word that the code uses as an address is as certain as a parameter") {
  const result_of yes = judge(program{}.bytes(), "LDG.E at 0x0110"), no = judge(program{}.bytes(), std::nullopt);
  REQUIRE(yes.stale.size() == 1);
  CHECK(yes.stale[0].conf == confidence::proved);
  CHECK(yes.stale[0].message.find(
            "parameter 1 (byte 0x8) of kernel _Z4used4work (node 0) is 0x700000000040, which the kernel uses as an "
            "address (LDG.E at 0x0110), 64 B into 4 KiB") != std::string::npos);
  REQUIRE(no.stale.size() == 1);
  CHECK(no.stale[0].conf == confidence::suspected);
  CHECK(no.stale[0].message.find("may use 0x700000000040") != std::string::npos);
}

TEST_CASE("what the code is asked") {
  const result_of r = judge(program{}.bytes(), std::nullopt);
  REQUIRE(r.questions.size() == 1); // once, although it is launched twice
  const auto& q = r.questions[0];
  CHECK(q.path == "/opt/engine");
  CHECK(q.image == object + 0x1234 - bias);
  CHECK(q.function == "_Z4used4work");
  CHECK(q.capability == 90);
  CHECK(q.offset == 16);
  CHECK(q.parameters == 32);
  CHECK((q.grid == 3 && q.block == 128));
  CHECK((q.begin == buf && q.end == buf + 4096));
  CHECK_FALSE(q.inside_only);
}

TEST_CASE("the code is asked only where it decides, and where it is known") {
  const auto asked = [](const program& p) { return judge(p.bytes(), "LDG.E at 0x0").questions.size(); };
  CHECK(asked(program{}) == 1);
  CHECK(asked({.freed = false}) == 0);
  CHECK(asked({.layout = {{0, 8}, {8, 8}, {16, 8}, {24, 8}}}) == 0); // parameters of their own: known without
  CHECK(asked({.capability = 0}) == 0);
  CHECK(asked({.code = 0}) == 0);
  CHECK(asked({.code = 0x90000000}) == 0); // on the heap
  CHECK(asked({.unloaded = true}) == 0);
  CHECK(asked({.known_as_kernel = false}) == 1); // by its name
}

// The second of two neighbours may be meant as the end of the first.
TEST_CASE("a parameter that may be an end is asked about more strictly") {
  const program p{.layout = {{0, 8}, {8, 8}}, .words = {buf, buf + 4096}, .freed_address = buf + 4096};
  const result_of yes = judge(p.bytes(), "STG.E at 0x0080"), no = judge(p.bytes(), std::nullopt);
  REQUIRE(yes.questions.size() == 1);
  CHECK(yes.questions[0].inside_only);
  CHECK((yes.questions[0].begin == buf + 4096 && yes.questions[0].offset == 8));
  REQUIRE((yes.stale.size() == 1 && no.stale.size() == 1));
  CHECK(yes.stale[0].conf == confidence::proved);
  CHECK(no.stale[0].conf == confidence::suspected);
}

TEST_CASE("a word inside memory that the graph allocates, used out of order") {
  trace_builder b;
  b.header().capability = 90;
  b.module(1, bias, object, object + 0x10000, "/opt/engine");
  b.call(1, {.symbol = "cuLibraryLoadData", .arg = {library, object + 0x1234}});
  b.call(1, {.symbol = "cuLibraryGetKernel", .arg = {function, library}});
  const std::pair<std::uint16_t, std::uint16_t> layout[] = {{0, 24}};
  b.function(1, function, "f", layout);
  const std::uint64_t words[] = {1, buf + 8, 2};
  trace::node_record n{};
  n.type = node_type::mem_alloc;
  n.node = 0x11;
  n.value[0] = buf;
  n.value[1] = 4096;
  b.node(1, n);
  n = {};
  n.index = 1;
  n.node = 0x12;
  n.type = node_type::kernel;
  n.value[0] = function;
  b.node(1, n, std::as_bytes(std::span(words)));
  b.edges(1, {}, graph);
  b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {exec, graph}});
  b.call(1, {.symbol = "cuGraphLaunch", .stream = s1, .arg = {exec}});
  const result_of yes = judge(b.bytes(), "LDG.E at 0x0110"), no = judge(b.bytes(), std::nullopt);
  REQUIRE((yes.stale.size() == 1 && no.stale.size() == 1));
  CHECK(yes.questions[0].begin == buf);
  CHECK(yes.questions[0].end == buf + 4096);
  CHECK(yes.stale[0].conf == confidence::likely); // as any parameter
  CHECK(no.stale[0].conf == confidence::suspected);
}

// ---- code in files ----

namespace {

template <class T>
void put(std::vector<std::byte>& to, std::size_t at, T value) {
  std::memcpy(to.data() + at, &value, sizeof value);
}

// A fatbin with one entry for each (kind, architecture); 2 = machine code, 1 = text.
std::vector<std::byte> fatbin(const std::vector<std::pair<int, int>>& entries) {
  std::vector<std::byte> all(16);
  put<std::uint32_t>(all, 0, 0xba55ed50);
  put<std::uint16_t>(all, 6, 16);
  for (const auto& [kind, sm] : entries) {
    const std::size_t at = all.size();
    all.resize(at + 64 + 32);
    put<std::uint16_t>(all, at, static_cast<std::uint16_t>(kind));
    put<std::uint32_t>(all, at + 4, 64);
    put<std::uint64_t>(all, at + 8, 32);
    put<std::uint32_t>(all, at + 28, static_cast<std::uint32_t>(sm));
  }
  put<std::uint64_t>(all, 8, all.size() - 16);
  return all;
}

} // namespace

// NVIDIA's rule: machine code runs on devices of its major version with the same or a higher minor one; else the driver
// compiles text.
TEST_CASE("the machine code that a device runs") {
  const auto all = fatbin({{2, 75}, {2, 80}, {2, 86}, {2, 90}, {1, 90}, {2, 90}, {2, 100}});
  CHECK(narrow_fatbin(all, 90) == fatbin({{2, 90}, {2, 90}}));
  CHECK(narrow_fatbin(all, 89) == fatbin({{2, 86}}));
  CHECK(narrow_fatbin(all, 80) == fatbin({{2, 80}}));
  CHECK(narrow_fatbin(all, 103) == fatbin({{2, 100}}));
  CHECK(narrow_fatbin(all, 120).empty());
  CHECK(narrow_fatbin(all, 70).empty());
  for (std::size_t cut = 0; cut < all.size(); ++cut) {
    CHECK_NOTHROW(narrow_fatbin({all.begin(), all.begin() + static_cast<std::ptrdiff_t>(cut)}, 90));
  }
}

TEST_CASE("a file that is not the one that was mapped is not read") {
  const std::string self = "/proc/self/exe";
  CHECK(code_for({self, "not its build id", ~std::uint64_t{0}, 0}, 90).empty());
  CHECK(code_for({"/nowhere", "", ~std::uint64_t{0}, 0}, 90).empty());
  CHECK(code_for({self, "", 0, 0}, 90).empty());
}

TEST_CASE("a tool that does not come to an end is ended") {
  using namespace std::chrono;
  const auto begin = steady_clock::now();
  CHECK_FALSE(tool_output({"/bin/sh", "-c", "sleep 60 & sleep 60"}, -1, milliseconds(100)));
  CHECK(steady_clock::now() - begin < seconds(20));
  CHECK_FALSE(tool_output({"/bin/sh", "-c", "echo no; exit 3"}, -1, seconds(20)));
  CHECK_FALSE(tool_output({"/nowhere/tool"}, -1, seconds(20)));
  CHECK_FALSE(tool_output({}, -1, seconds(20)));
  CHECK(tool_output({"/bin/sh", "-c", "echo yes"}, -1, seconds(20)) == "yes\n");
}

TEST_CASE("the disassembler is where the option says, or nowhere") {
  CHECK(find_disassembler("off").empty());
  CHECK(find_disassembler("/nowhere").empty());
  CHECK(find_disassembler("/bin/sh") == "/bin/sh");
}
