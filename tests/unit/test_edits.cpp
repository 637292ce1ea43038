// Execs whose nodes get other operands after they were made, and graphs inside of graphs. Expected values follow from
// the documentation of cuGraphExec*NodeSetParams, cuGraphExecUpdate and cuGraphAddChildGraphNode.
#include <set>

#include "tests/unit/support.h"

using namespace capturesan;
using trace::node_type;

namespace {

constexpr std::uint64_t s1 = 0x1000, exec = 0x60, graph = 0x50, child = 0x51;
constexpr std::uint64_t buf = 0x700000000000, other = 0x710000000000, pinned = 0x720000000000,
                        pageable = 0x730000000000;
constexpr std::uint64_t own = 0x740000000000; // allocated by the graph itself
constexpr std::uint64_t host_source = 2;

struct program {
  trace_builder b;

  program() {
    b.call(1, {.symbol = "cuMemAlloc_v2", .arg = {buf, 4096}});
    b.call(1, {.symbol = "cuMemAlloc_v2", .arg = {other, 4096}});
    b.call(1, {.symbol = "cuMemHostAlloc", .arg = {pinned, 4096}});
  }
  void copy(std::uint64_t handle, std::uint64_t from, std::uint64_t bits = 0) {
    trace::node_record n{};
    n.type = node_type::memcpy;
    n.node = handle;
    n.value[0] = buf;
    n.value[1] = from;
    n.value[2] = 64;
    n.value[3] = bits;
    b.node(1, n);
  }
  void node(node_type type, std::uint32_t index, std::uint64_t handle, std::uint64_t address,
            std::uint32_t parent = 0) {
    trace::node_record n{};
    n.type = type;
    n.index = index;
    n.node = handle;
    n.parent = parent;
    n.value[0] = address;
    n.value[1] = type == node_type::mem_alloc ? 4096 : 0;
    n.value[2] = 64;
    b.node(1, n);
  }
  void edges(std::uint64_t of, std::vector<std::uint64_t> pairs) { b.edges(1, pairs, of); }
  void instantiate() { b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {exec, graph}}); }
  void edit(std::string_view call, std::uint64_t handle) { b.call(1, {.symbol = call, .arg = {exec, handle}}); }
  void launch() { b.call(1, {.symbol = "cuGraphLaunch", .stream = s1, .arg = {exec}}); }
  void free(std::uint64_t address) { b.call(1, {.symbol = "cuMemFree_v2", .arg = {address}}); }
  std::vector<std::string> rules() const { return judged(b.bytes()).rules(); }
};

using found = std::vector<std::string>;

} // namespace

TEST_CASE("edits: a copy node that reads pageable memory after an edit is told, one that reads pinned memory is not") {
  for (const bool launched_before : {false, true}) {
    for (const bool wrong : {false, true}) {
      program p;
      p.copy(0x91, pinned, host_source);
      p.instantiate();
      if (launched_before) p.launch();
      p.copy(0x91, wrong ? pageable : pinned + 64, host_source);
      p.edit("cuGraphExecMemcpyNodeSetParams", 0x91);
      p.launch();
      p.launch();
      CHECK(p.rules() == (wrong ? found{"CS208"} : found{}));
    }
  }
}

TEST_CASE("edits: the operand that a copy node had before its edit is forgotten") {
  program p;
  p.copy(0x91, pageable, host_source);
  p.instantiate();
  p.copy(0x91, pinned, host_source);
  p.edit("cuGraphExecMemcpyNodeSetParams", 0x91);
  p.launch();
  CHECK(p.rules().empty());
}

TEST_CASE("edits: all nodes of a child graph get new operands") {
  for (const std::uint64_t freed : {other, buf}) {
    program p;
    p.node(node_type::graph, 0, 0x91, child);
    p.node(node_type::memset, 1, 0x92, other, 1);
    p.node(node_type::empty, 2, 0x93, 0);
    p.instantiate();
    p.node(node_type::graph, 0, 0x91, child + 1);
    p.node(node_type::memset, 1, 0x99, buf, 1);
    p.edit("cuGraphExecChildGraphNodeSetParams", 0x91);
    p.free(freed);
    p.launch();
    CHECK(p.rules() == (freed == buf ? found{"CS201"} : found{}));
  }
}

TEST_CASE("edits: a child graph without an edit keeps its operands, and an update replaces them") {
  for (const bool updated : {false, true}) {
    program p;
    p.node(node_type::graph, 0, 0x91, child);
    p.node(node_type::memset, 1, 0x92, other, 1);
    p.instantiate();
    if (updated) {
      p.node(node_type::graph, 0, 0xa1, child + 1);
      p.node(node_type::memset, 1, 0xa2, buf, 1);
      p.b.call(1, {.symbol = "cuGraphExecUpdate_v2", .arg = {exec, graph + 8}});
    }
    p.free(other);
    p.launch();
    CHECK(p.rules() == (updated ? found{} : found{"CS201"}));
  }
}

// Edits name nodes of the graph that was instantiated, also after an update from another graph.
TEST_CASE("edits: a node that cannot be found among those of an update is not judged by what it was") {
  program p;
  p.node(node_type::memset, 0, 0x91, other);
  p.instantiate();
  p.node(node_type::memset, 0, 0xa1, other);
  p.b.call(1, {.symbol = "cuGraphExecUpdate_v2", .arg = {exec, graph + 8}});
  p.node(node_type::memset, 0, 0x91, buf);
  p.edit("cuGraphExecMemsetNodeSetParams", 0x91);
  p.free(other);
  p.launch();
  CHECK(p.rules().empty());
}

// ---- graphs that were captured in parts ----

namespace {

void capture(program& p, std::uint64_t into, std::uint64_t nodes) {
  p.b.call(1, {.symbol = "cuStreamBeginCaptureToGraph", .stream = s1, .arg = {1, into}});
  p.b.call(1, {.symbol = "cuStreamEndCapture", .stream = s1, .arg = {into, nodes}});
}

void replace_other(program& p) {
  p.free(other);
  p.b.call(1, {.symbol = "cuMemAlloc_v2", .arg = {other, 8192}});
}

} // namespace

// The node holds a copy of the child, made when it was added (documentation of cuGraphAddChildGraphNode).
TEST_CASE("child graphs: memory that went between the capture of the child and the making of its parent") {
  enum class change { none, freed, freed_and_edited };
  for (const auto what : {change::none, change::freed, change::freed_and_edited}) {
    program p;
    capture(p, child, 1);
    if (what != change::none) replace_other(p);
    p.b.call(1, {.symbol = "cuGraphCreate", .arg = {graph}});
    p.b.call(1, {.symbol = "cuGraphAddChildGraphNode", .arg = {graph, 0x91, child}});
    p.b.call(1, {.symbol = "cuGraphDestroy", .arg = {child}});
    if (what == change::freed_and_edited) p.b.call(1, {.symbol = "cuGraphMemsetNodeSetParams", .arg = {0, 0x92}});
    p.node(node_type::graph, 0, 0x91, child + 1);
    p.node(node_type::memset, 1, 0x92, other, 1);
    p.instantiate();
    p.launch();
    CHECK(p.rules() == (what == change::freed ? found{"CS201"} : found{}));
  }
}

TEST_CASE("two captures into one graph: memory that went between them") {
  for (const bool first_part : {true, false}) { // the node that names the address
    program p;
    capture(p, graph, 1);
    replace_other(p);
    capture(p, graph, 2);
    p.node(node_type::memset, 0, 0x91, first_part ? other : buf);
    p.node(node_type::memset, 1, 0x92, first_part ? buf : other);
    p.instantiate();
    p.launch();
    const judged j(p.b.bytes());
    REQUIRE(j.rules() == (first_part ? found{"CS201"} : found{}));
    if (first_part) CHECK(j.findings()[0].conf == confidence::suspected); // nothing promises the order of nodes
  }
}

TEST_CASE("two captures into one graph: memory that goes later is as sure as in any graph") {
  program p;
  capture(p, graph, 1);
  capture(p, graph, 2);
  p.node(node_type::memset, 0, 0x91, other);
  p.node(node_type::memset, 1, 0x92, buf);
  p.instantiate();
  p.free(other);
  p.launch();
  const judged j(p.b.bytes());
  REQUIRE(j.rules() == found{"CS201"});
  CHECK(j.findings()[0].conf == confidence::proved);
}

namespace {

// alloc -> use -> free, in a child graph or around it.
struct order {
  bool alloc_inside = false, use_inside = false, free_inside = false, after_free = false, edges_of_child = true;
};

found with_memory(order o) {
  program p;
  constexpr std::uint64_t alloc = 0x91, use = 0x92, free = 0x93, inner = 0x94, leaf = 0x95;
  p.node(node_type::graph, 0, inner, child);
  p.node(node_type::empty, 1, leaf, 0, 1);
  p.node(node_type::mem_alloc, 2, alloc, own, o.alloc_inside ? 1 : 0);
  p.node(node_type::memset, 3, use, own + 64, o.use_inside ? 1 : 0);
  p.node(node_type::mem_free, 4, free, own, o.free_inside ? 1 : 0);
  const std::vector<std::pair<std::uint64_t, bool>> chain =
      o.after_free ? std::vector<std::pair<std::uint64_t, bool>>{{alloc, o.alloc_inside},
                                                                 {free, o.free_inside},
                                                                 {use, o.use_inside}}
                   : std::vector<std::pair<std::uint64_t, bool>>{
                         {alloc, o.alloc_inside}, {use, o.use_inside}, {free, o.free_inside}};
  std::vector<std::uint64_t> above, inside;
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    const auto [from, from_in] = chain[i];
    const auto [to, to_in] = chain[i + 1];
    auto& to_list = from_in && to_in ? inside : above;
    to_list.push_back(from_in && !to_in ? inner : from);
    to_list.push_back(to_in && !from_in ? inner : to);
  }
  p.edges(graph, above);
  if (o.edges_of_child) p.edges(child, inside);
  p.instantiate();
  p.launch();
  return p.rules();
}

} // namespace

TEST_CASE("memory nodes of a child graph: in order within it, and with what lies before and behind it") {
  CHECK(with_memory({.alloc_inside = true, .use_inside = true, .free_inside = true}).empty());
  CHECK(with_memory({.use_inside = true}).empty());
  CHECK(with_memory({.alloc_inside = true}).empty());
  CHECK(with_memory({.free_inside = true}).empty());
}

TEST_CASE("memory nodes of a child graph: a use after the free is found, wherever the three are") {
  CHECK(with_memory({.alloc_inside = true, .use_inside = true, .free_inside = true, .after_free = true}) ==
        found{"CS210"});
  CHECK(with_memory({.use_inside = true, .after_free = true}) == found{"CS210"});
  CHECK(with_memory({.alloc_inside = true, .free_inside = true, .after_free = true}) == found{"CS210"});
}

TEST_CASE("memory nodes of a child graph whose edges are not known are not judged") {
  CHECK(
      with_memory(
          {.alloc_inside = true, .use_inside = true, .free_inside = true, .after_free = true, .edges_of_child = false})
          .empty());
}

TEST_CASE("edits: a node that is given memory of its own graph, in order with it or not") {
  for (const bool ordered : {true, false}) {
    program p;
    p.node(node_type::mem_alloc, 0, 0x91, own);
    p.node(node_type::memset, 1, 0x92, buf);
    p.node(node_type::mem_free, 2, 0x93, own);
    p.edges(graph,
            ordered ? std::vector<std::uint64_t>{0x91, 0x92, 0x92, 0x93} : std::vector<std::uint64_t>{0x91, 0x93});
    p.instantiate();
    p.node(node_type::memset, 0, 0x92, own);
    p.edit("cuGraphExecMemsetNodeSetParams", 0x92);
    p.launch();
    CHECK(p.rules() == (ordered ? found{} : found{"CS210"}));
  }
}
