// Two graphs of one topology compared.
#include <cstring>

#include "analyzer/graph_diff.h"
#include "tests/unit/support.h"

using namespace capturesan;
using kind = graph_difference::kind;

namespace {

constexpr std::uint64_t grid_of_2 = 2 | std::uint64_t{1} << 32 | std::uint64_t{1} << 48;

struct inputs {
  std::uint64_t buffer = 0x700000000000; // of 4096 bytes; a second one lies 1 GiB higher
  std::uint64_t pointer_offset = 0x40;
  bool second = false; // the pointer is in the second one
  std::int32_t number = 7;
  std::uint64_t grid = grid_of_2;
  std::uint64_t copied = 64;
  bool one_more = false;
};

// One kernel with (pointer, int), and a copy from the first buffer to the second.
void add_graph(trace_builder& b, const inputs& in, std::uint64_t exec) {
  const std::pair<std::uint16_t, std::uint16_t> layout[] = {{0, 8}, {8, 4}};
  b.function(1, 0x77, "_Z5scalePfi", layout);
  trace::node_record n{};
  n.node = 0x9000;
  n.value[0] = 0x77;
  n.value[1] = in.grid;
  std::byte block[16] = {};
  const std::uint64_t address = in.buffer + (in.second ? 1u << 30 : 0u) + in.pointer_offset;
  std::memcpy(block, &address, 8);
  std::memcpy(block + 8, &in.number, 4);
  b.node(1, n, block);
  trace::node_record c{};
  c.index = 1;
  c.node = 0x9001;
  c.type = trace::node_type::memcpy;
  c.value[0] = in.buffer + (1u << 30);
  c.value[1] = in.buffer;
  c.value[2] = in.copied;
  b.node(1, c);
  if (in.one_more) {
    c.index = 2;
    c.node = 0x9002;
    b.node(1, c);
  }
  b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {exec, 0x50}});
}

void add_buffers(trace_builder& b, std::uint64_t at) {
  b.call(1, {.symbol = "cuMemAlloc_v2", .arg = {at, 4096}});
  b.call(1, {.symbol = "cuMemAlloc_v2", .arg = {at + (1u << 30), 4096}});
}

struct recorded {
  explicit recorded(std::vector<std::byte> bytes) {
    auto opened = trace_file::open(from_memory(std::move(bytes)), "test");
    REQUIRE(opened);
    file = std::move(opened.value());
    state.keep_parameters = true;
    state.on_exec = [this](process_state&, const exec_state& x) {
      graphs.push_back({x.id, x.place, x.nodes, x.pointers});
    };
    state.add(*file);
    while (file->refresh() > 0) {
    }
    merger order;
    order.add(*file);
    order.collect();
    event_view v;
    order.drain(merger::no_horizon, [&](const merged_event& e) { state.apply(e, v); });
  }
  std::unique_ptr<trace_file> file;
  model state;
  std::vector<graph_copy> graphs;
};

std::vector<graph_difference> compared(const inputs& a, const inputs& b) {
  trace_builder t;
  add_buffers(t, a.buffer);
  add_graph(t, a, 0x60);
  add_graph(t, b, 0x61);
  const recorded r(t.bytes());
  REQUIRE(r.graphs.size() == 2);
  return compare_graphs(r.graphs[0], r.graphs[1], true);
}

} // namespace

TEST_CASE("diff: equal graphs do not differ") { CHECK(compared({}, {}).empty()); }

TEST_CASE("diff: a number, a pointer, a geometry, a size") {
  const auto number = compared({}, {.number = 8});
  REQUIRE(number.size() == 1);
  CHECK(number[0].what == kind::number);
  CHECK(number[0].node == 0);
  CHECK(number[0].parameter == 1);
  CHECK(number[0].before == "7");
  CHECK(number[0].after == "8");

  const auto pointer = compared({}, {.second = true});
  REQUIRE(pointer.size() == 1);
  CHECK(pointer[0].what == kind::pointer);
  CHECK(pointer[0].parameter == 0);
  CHECK(pointer[0].before.find("byte 64 of") != std::string::npos);

  const auto geometry = compared({}, {.grid = grid_of_2 + 3});
  REQUIRE(geometry.size() == 1);
  CHECK(geometry[0].what == kind::geometry);
  CHECK(geometry[0].before == "grid 2 x 1 x 1");
  CHECK(geometry[0].after == "grid 5 x 1 x 1");

  const auto size = compared({}, {.copied = 128});
  REQUIRE(size.size() == 1);
  CHECK(size[0].what == kind::size);
  CHECK(size[0].node == 1);
}

TEST_CASE("diff: another topology is all that is said") {
  const auto found = compared({.number = 1}, {.number = 2, .one_more = true});
  REQUIRE(found.size() == 1);
  CHECK(found[0].what == kind::topology);
  CHECK(found[0].node_type.empty()); // it is about no node
}

TEST_CASE("diff: two processes are compared by allocation, not by address") {
  const auto trace = [](const inputs& in) {
    trace_builder t;
    add_buffers(t, in.buffer);
    add_graph(t, in, 0x60);
    return t.bytes();
  };
  const recorded a(trace({})), moved(trace({.buffer = 0x7a0000000000})),
      elsewhere(trace({.buffer = 0x7a0000000000, .pointer_offset = 0x80}));
  CHECK(compare_graphs(a.graphs[0], moved.graphs[0], false).empty());
  const auto found = compare_graphs(a.graphs[0], elsewhere.graphs[0], false);
  REQUIRE(found.size() == 1);
  CHECK(found[0].what == kind::pointer);
}
