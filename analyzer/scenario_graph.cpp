// The graph nodes of inline tests.
#include <cstring>

#include <fmt/format.h>

#include "analyzer/scenario.h"

namespace capturesan {

using kind = yaml_node::kind;

void scenario::add_nodes(std::uint32_t t, const yaml_node& n) {
  if (n.type != kind::sequence) throw bad_test{&n, "`nodes` must be a list"};
  std::uint32_t index = 0;
  for (const auto& item : n.items) add_node(t, item, index++);
}

void scenario::add_node(std::uint32_t t, const yaml_node& n, std::uint32_t index) {
  const auto* type = n.find("type");
  if (type == nullptr) throw bad_test{&n, "a node needs `type`"};
  trace::node_record r{};
  r.index = index;
  r.node = handle(fmt::format("node {}", index));
  const auto at = [&](const char* key) {
    const auto* v = n.find(key);
    return v == nullptr ? std::uint64_t{0} : value(*v);
  };
  if (const auto* v = n.find("node")) r.node = value(*v);
  if (type->text == "memcpy") {
    r.type = trace::node_type::memcpy;
    r.value[0] = at("dst");
    r.value[1] = at("src");
    r.value[2] = at("bytes");
    r.value[3] = at("host"); // 1: the destination, 2: the source is on the host
    if (n.find("stack") != nullptr) {
      r.value[3] |= r.value[3] << 4; // and on a stack that ends there
      r.value[4] = at("stack");
    }
  } else if (type->text == "host") {
    r.type = trace::node_type::host;
    r.value[0] = at("function");
    r.value[1] = at("user_data");
    r.value[2] = at("stack");
  } else if (type->text == "batch_mem_op") {
    r.type = trace::node_type::batch_mem_op;
    r.value[0] = 1;
    const std::uint64_t operation[] = {at("address"), 0};
    builder_.node(t, r, std::as_bytes(std::span(operation)));
    return;
  } else if (type->text == "memset") {
    r.type = trace::node_type::memset;
    r.value[0] = at("dst");
    r.value[2] = at("bytes");
  } else if (type->text == "mem_alloc" || type->text == "mem_free") {
    r.type = type->text == "mem_alloc" ? trace::node_type::mem_alloc : trace::node_type::mem_free;
    r.value[0] = at("address");
    r.value[1] = at("bytes");
  } else if (type->text == "kernel") {
    r.type = trace::node_type::kernel;
    add_kernel(t, n, r);
    return;
  } else {
    throw bad_test{type, "a node is of a type that the loader knows"}; // it has said so, with the types there are
  }
  builder_.node(t, r);
}

// edges: [[0, 1], [a, b]]: positions, or names given with `node`.
void scenario::add_edges(std::uint32_t t, const yaml_node& n) {
  if (n.type != kind::sequence) throw bad_test{&n, "`edges` must be a list of pairs"};
  std::vector<std::uint64_t> pairs;
  for (const auto& edge : n.items) {
    if (edge.type != kind::sequence || edge.items.size() != 2) throw bad_test{&edge, "an edge is a pair of nodes"};
    for (const auto& end : edge.items)
      pairs.push_back(scenario_integer(end.text) ? handle("node " + end.text) : handle(end.text));
  }
  builder_.edges(t, pairs);
}

// table: [place, address, address]
void scenario::add_table(std::uint32_t t, const yaml_node& n) {
  if (n.type != kind::sequence || n.items.size() < 2) throw bad_test{&n, "`table` must be a place and addresses"};
  std::vector<std::uint64_t> pairs;
  for (std::size_t i = 1; i < n.items.size(); ++i) {
    pairs.push_back((i - 1) * 8);
    pairs.push_back(value(n.items[i]));
  }
  builder_.pointers(t, value(n.items[0]), pairs);
}

// params: a name is an address of 8 bytes, a number an int of 4, a list a struct of 8-byte words.
void scenario::add_kernel(std::uint32_t t, const yaml_node& n, trace::node_record& r) {
  std::vector<std::byte> block;
  std::vector<std::pair<std::uint16_t, std::uint16_t>> layout;
  const auto put = [&](std::uint64_t v, std::size_t size) {
    block.resize((block.size() + size - 1) / size * size);
    const std::size_t at = block.size();
    block.resize(at + size);
    std::memcpy(block.data() + at, &v, size);
    return static_cast<std::uint16_t>(at);
  };
  if (const auto* params = n.find("params")) {
    for (const auto& p : params->items) {
      if (p.type == kind::sequence) {
        const std::size_t before = (block.size() + 7) / 8 * 8;
        for (const auto& w : p.items) put(value(w), 8);
        layout.emplace_back(static_cast<std::uint16_t>(before), static_cast<std::uint16_t>(p.items.size() * 8));
      } else {
        const std::size_t size = scenario_integer(p.text) ? 4 : 8;
        const std::uint16_t at = put(value(p), size);
        layout.emplace_back(at, static_cast<std::uint16_t>(size));
      }
    }
  }
  const auto* function = n.find("function");
  const std::string name = function == nullptr ? "kernel" : function->text;
  r.value[0] = handle("function " + name);
  builder_.function(t, r.value[0], name, layout);
  if (const auto* k = n.find("kernel")) r.value[3] = value(*k);
  if (const auto* d = n.find("descriptor")) { // of 128 bytes, at the begin of the parameters
    trace::payload_record head{};
    head.key = value(*d);
    head.value = 4096;
    builder_.descriptor(t, head);
  }
  builder_.node(t, r, block);
}

} // namespace capturesan
