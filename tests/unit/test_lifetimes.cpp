// What a report says about the memory of graphs besides its findings, and what is judged although something is missing.
#include "analyzer/report.h"
#include "tests/unit/support.h"

using namespace capturesan;
using trace::node_type;

namespace {

constexpr std::uint64_t s1 = 0x1000, exec = 0x60, graph = 0x50, buf = 0x700000000000;

void memset_node(trace_builder& b, std::uint64_t address) {
  trace::node_record n{};
  n.type = node_type::memset;
  n.value[0] = address;
  n.value[2] = 64;
  b.node(1, n);
}

const rule_status& status_of(const judged& j, std::string_view id) {
  const auto& rules = j.summary().rules;
  const auto it = std::find_if(rules.begin(), rules.end(), [&](const rule_status& r) { return r.id == id; });
  REQUIRE(it != rules.end());
  return *it;
}

} // namespace

TEST_CASE("memory that could not be watched makes the rules about it not evaluated, and no others") {
  for (const auto role :
       {trace::text_role::untracked_host, trace::text_role::untracked_blocks, trace::text_role::note}) {
    trace_builder b;
    b.call(1, {.symbol = "cuMemAlloc_v2", .arg = {buf, 4096}});
    memset_node(b, buf);
    b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {exec, graph}});
    b.text(1, role, 3, "too many");
    b.call(1, {.symbol = "cuGraphLaunch", .stream = s1, .arg = {exec}});
    const judged j(b.bytes());
    CHECK(status_of(j, "CS207").evaluated == (role != trace::text_role::untracked_host));
    CHECK(status_of(j, "CS201").evaluated == (role != trace::text_role::untracked_blocks));
    CHECK(status_of(j, "CS101").evaluated);
  }
}

// The driver crashed in the launch, or hangs in it: the entry is all there is.
TEST_CASE("a launch that never returned is judged by what it was asked to run") {
  for (const bool freed : {true, false}) {
    trace_builder b;
    b.call(1, {.symbol = "cuMemAlloc_v2", .arg = {buf, 4096}});
    memset_node(b, buf);
    b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {exec, graph}});
    b.call(1, {.symbol = "cuGraphLaunch", .stream = s1, .arg = {exec}});
    if (freed) b.call(1, {.symbol = "cuMemFree_v2", .arg = {buf}});
    b.pending(1, "cuGraphLaunch", s1, exec);
    const judged j(b.bytes());
    REQUIRE(j.rules() == (freed ? std::vector<std::string>{"CS201"} : std::vector<std::string>{}));
    CHECK(j.summary().replays == 1); // those that returned
    if (!freed) continue;
    CHECK_FALSE(j.findings()[0].returned);
    CHECK(j.findings()[0].conf == confidence::proved);
    CHECK(j.findings()[0].graph->replay == 2);
  }
}

TEST_CASE("a launch into a capture that never returned is no launch") {
  trace_builder b;
  b.call(1, {.symbol = "cuMemAlloc_v2", .arg = {buf, 4096}});
  memset_node(b, buf);
  b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {exec, graph}});
  b.call(1, {.symbol = "cuMemFree_v2", .arg = {buf}});
  b.call(1, {.symbol = "cuStreamBeginCapture_v2", .stream = s1});
  b.header().state = trace::process_state::running; // killed
  b.pending(1, "cuGraphLaunch", s1, exec);
  CHECK(judged(b.bytes()).rules().empty());
}

TEST_CASE("pointer coverage: which kernels have no known address, and why") {
  trace_builder b;
  b.call(1, {.symbol = "cuMemAlloc_v2", .arg = {buf, 4096}});
  const std::pair<std::uint16_t, std::uint16_t> one_pointer[] = {{0, 8}};
  b.function(1, 0x71, "with_pointer", one_pointer);
  b.function(1, 0x72, "without_parameters", {});
  std::uint32_t index = 0;
  const auto kernel = [&](std::uint64_t function, std::vector<std::uint64_t> words) {
    trace::node_record n{};
    n.index = index++;
    n.value[0] = function;
    b.node(1, n, std::as_bytes(std::span(words)));
  };
  kernel(0x71, {buf});
  kernel(0x71, {5}); // an address of nothing
  kernel(0x71, {6});
  kernel(0x72, {});
  kernel(0x73, {}); // a function the trace knows nothing about
  b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {exec, graph}});
  const judged j(b.bytes());
  REQUIRE(j.summary().graphs.size() == 1);
  const graph_summary& g = j.summary().graphs[0];
  CHECK(g.kernel_nodes == 5);
  CHECK(g.kernel_nodes_resolved == 1);
  REQUIRE(g.unresolved.size() == 3);
  CHECK(g.unresolved[0].kernel == "with_pointer");
  CHECK(g.unresolved[0].nodes == 2);
  CHECK(g.unresolved[1].why.find("takes no parameters") != std::string::npos);
  CHECK(g.unresolved[2].why.find("could not be read") != std::string::npos);
}

TEST_CASE("graphs are named by the line of Python that captured them") {
  trace_builder b;
  b.call(1, {.symbol = "cuMemAlloc_v2", .arg = {buf, 4096}});
  b.python(1, "  File \"/a/torch/cuda/graphs.py\", line 9 in __enter__\n  File \"/a/engine.py\", line 48 in capture\n");
  b.call(1, {.symbol = "cuStreamBeginCapture_v2", .stream = s1});
  b.call(1, {.symbol = "cuStreamEndCapture", .stream = s1, .arg = {graph, 1}});
  memset_node(b, buf);
  b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {exec, graph}});
  b.call(1, {.symbol = "cuMemFree_v2", .arg = {buf}});
  b.call(1, {.symbol = "cuGraphLaunch", .stream = s1, .arg = {exec}});
  const judged j(b.bytes());
  REQUIRE(j.summary().graphs.size() == 1);
  CHECK(j.summary().graphs[0].place == "engine.py:48");
  REQUIRE(j.findings().size() == 1);
  CHECK(j.findings()[0].graph->place == "engine.py:48");
}

namespace {

constexpr std::uint64_t in_library[] = {0x10000100, 0x20000100, 0x30000100}, in_program[] = {0x10000100, 0x30000200};

} // namespace

TEST_CASE("a finding does not say that it was the program itself that allocated and freed the memory") {
  for (const bool program_known : {true, false}) {
    trace_builder b;
    if (program_known) b.text(1, trace::text_role::executable, 0, "/opt/engine");
    b.module(1, 0x10000000, 0x10000000, 0x10100000, "/usr/lib/libcuda.so.1");
    b.module(1, 0x30000000, 0x30000000, 0x30100000, "/opt/engine");
    b.stack(1, 2, in_program);
    b.call(1, {.symbol = "cuMemAlloc_v2", .arg = {buf, 4096}, .stack = 2});
    memset_node(b, buf);
    b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {exec, graph}});
    b.call(1, {.symbol = "cuMemFree_v2", .arg = {buf}, .stack = 2});
    b.call(1, {.symbol = "cuGraphLaunch", .stream = s1, .arg = {exec}});
    const judged j(b.bytes());
    REQUIRE(j.findings().size() == 1);
    CHECK(j.findings()[0].pointers[0].allocated_in == "engine");
    CHECK(
        j.findings()[0].message.ends_with(program_known ? "belongs to nobody now" : ", allocated and freed in engine"));
  }
}

TEST_CASE("a finding names the library that allocated the memory, and the one that freed it") {
  for (const std::uint32_t freed_at : {1u, 2u, 0u}) {
    trace_builder b;
    b.module(1, 0x10000000, 0x10000000, 0x10100000, "/usr/lib/libcuda.so.1");
    b.module(1, 0x20000000, 0x20000000, 0x20100000, "/usr/lib/libblas_of_sorts.so.3");
    b.module(1, 0x30000000, 0x30000000, 0x30100000, "/opt/engine");
    b.stack(1, 1, in_library);
    b.stack(1, 2, in_program);
    b.call(1, {.symbol = "cuMemAlloc_v2", .arg = {buf, 4096}, .stack = 1});
    memset_node(b, buf);
    b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {exec, graph}});
    b.call(1, {.symbol = "cuMemFree_v2", .arg = {buf}, .stack = freed_at});
    b.call(1, {.symbol = "cuGraphLaunch", .stream = s1, .arg = {exec}});
    const judged j(b.bytes());
    REQUIRE(j.findings().size() == 1);
    const std::string& message = j.findings()[0].message;
    CHECK(j.findings()[0].pointers[0].allocated_in == "libblas_of_sorts.so.3");
    const char* words = freed_at == 1   ? ", allocated and freed in libblas_of_sorts.so.3"
                        : freed_at == 2 ? ", allocated in libblas_of_sorts.so.3 and freed in engine"
                                        : ", allocated in libblas_of_sorts.so.3";
    CHECK(message.ends_with(words));
  }
}

// ---- what cannot be judged is said ----

namespace {

constexpr std::uint64_t in_rows = 64; // value[3] of a set or copy

void kernel_node(trace_builder& b, std::uint64_t handle, std::uint64_t pointer, bool device_may_update) {
  trace::node_record n{};
  n.node = handle;
  n.value[0] = 0x71;
  n.value[4] = device_may_update ? 1 : 0;
  const std::uint64_t words[] = {pointer};
  b.node(1, n, std::as_bytes(std::span(words)));
}

bool noted(const judged& j, std::string_view words) {
  const auto& notes = j.summary().notes;
  return std::any_of(notes.begin(), notes.end(), [&](const auto& n) { return n.find(words) != std::string::npos; });
}

} // namespace

// Documentation of cudaGraphKernelNodeSetParam: a kernel on the device may give such a node other parameters.
TEST_CASE("a kernel node that the device may update is not judged by what it was made with") {
  for (const bool updatable : {true, false}) {
    for (const bool edited : {false, true}) {
      trace_builder b;
      const std::pair<std::uint16_t, std::uint16_t> one_pointer[] = {{0, 8}};
      b.call(1, {.symbol = "cuMemAlloc_v2", .arg = {buf, 4096}});
      b.function(1, 0x71, "with_pointer", one_pointer);
      kernel_node(b, 0x91, buf, updatable);
      b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {exec, graph}});
      if (edited) {
        kernel_node(b, 0x91, buf + 64, false); // the attribute is the node's, not the edit's
        b.call(1, {.symbol = "cuGraphExecKernelNodeSetParams_v2", .arg = {exec, 0x91}});
      }
      b.call(1, {.symbol = "cuMemFree_v2", .arg = {buf}});
      b.call(1, {.symbol = "cuGraphLaunch", .stream = s1, .arg = {exec}});
      const judged j(b.bytes());
      CHECK(j.rules() == (updatable ? std::vector<std::string>{} : std::vector<std::string>{"CS201"}));
      CHECK(status_of(j, "CS201").evaluated != updatable);
      CHECK(noted(j, "1 kernel node whose parameters the device may change") == updatable);
      if (!updatable) continue;
      REQUIRE(j.summary().graphs[0].unresolved.size() == 1);
      CHECK(j.summary().graphs[0].unresolved[0].why == "the device may change its parameters");
    }
  }
}

TEST_CASE("bodies of conditional nodes are not recorded, and the report says so") {
  for (const bool conditional : {true, false}) {
    trace_builder b;
    trace::node_record n{};
    n.type = conditional ? node_type::conditional : node_type::empty;
    b.node(1, n);
    b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {exec, graph}});
    b.call(1, {.symbol = "cuGraphLaunch", .stream = s1, .arg = {exec}});
    const judged j(b.bytes());
    CHECK(status_of(j, "CS201").evaluated != conditional);
    CHECK(status_of(j, "CS207").evaluated != conditional);
    CHECK(status_of(j, "CS101").evaluated);
    CHECK(noted(j, "1 conditional node, whose bodies are not recorded") == conditional);
  }
}

TEST_CASE("replays of a graph that was changed unseen are counted") {
  trace_builder b;
  b.call(1, {.symbol = "cuMemAlloc_v2", .arg = {buf, 4096}});
  memset_node(b, buf);
  b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {exec, graph}});
  b.call(1, {.symbol = "cuGraphLaunch", .stream = s1, .arg = {exec}});
  memset_node(b, buf);
  b.call(1, {.symbol = "cuGraphExecMemsetNodeSetParams", .arg = {exec, 0x99}}); // of no node that is known
  b.call(1, {.symbol = "cuMemFree_v2", .arg = {buf}});
  for (int i = 0; i < 2; ++i) b.call(1, {.symbol = "cuGraphLaunch", .stream = s1, .arg = {exec}});
  const judged j(b.bytes());
  CHECK(j.rules().empty());
  CHECK_FALSE(status_of(j, "CS201").evaluated);
  CHECK(status_of(j, "CS201").why_not.find("2 replays of graphs that were changed") != std::string::npos);
  CHECK(noted(j, "2 replays of graphs"));
}

TEST_CASE("a set in rows does not touch what lies between them") {
  for (const bool rows : {true, false}) {
    trace_builder b;
    b.call(1, {.symbol = "cuMemAddressReserve", .arg = {buf, 0x600000}});
    for (std::uint64_t i = 0; i < 3; ++i)
      b.call(1, {.symbol = "cuMemMap", .arg = {buf + i * 0x200000, 0x200000, 0x11 + i}});
    trace::node_record n{};
    n.type = node_type::memset;
    n.value[0] = buf;
    n.value[2] = 0x600000;
    n.value[3] = rows ? in_rows : 0;
    b.node(1, n);
    b.call(1, {.symbol = "cuGraphInstantiateWithFlags", .arg = {exec, graph}});
    b.call(1, {.symbol = "cuMemUnmap", .arg = {buf + 0x200000, 0x200000}});
    b.call(1, {.symbol = "cuGraphLaunch", .stream = s1, .arg = {exec}});
    CHECK(judged(b.bytes()).rules() == (rows ? std::vector<std::string>{} : std::vector<std::string>{"CS201"}));
  }
}
