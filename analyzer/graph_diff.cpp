#include "analyzer/graph_diff.h"

#include <algorithm>
#include <cstring>
#include <map>

#include <fmt/format.h>

namespace capturesan {

namespace {

using trace::node_type;
using kind = graph_difference::kind;

constexpr std::string_view node_names[] = {
    "kernel",       "memcpy",           "memset",         "host",      "graph",    "empty",        "wait_event",
    "event_record", "ext_semas_signal", "ext_semas_wait", "mem_alloc", "mem_free", "batch_mem_op", "conditional"};

std::string_view name_of(node_type t) {
  const auto i = static_cast<std::size_t>(t);
  return i < std::size(node_names) ? node_names[i] : std::string_view("unknown");
}

// Allocations of one graph, numbered by first use.
class ownership {
 public:
  explicit ownership(const graph_copy& g) {
    for (const pointer_use& u : g.pointers) {
      numbers_.try_emplace(&u.owner(), numbers_.size() + 1);
      uses_[{u.node, u.parameter, u.offset}] = &u;
    }
  }
  const pointer_use* at(std::uint32_t node, std::int32_t parameter, std::uint32_t offset) const {
    const auto it = uses_.find({node, parameter, offset});
    return it == uses_.end() ? nullptr : it->second;
  }
  // Operands of copies and the like, in order.
  std::vector<const pointer_use*> of_node(std::uint32_t node, const graph_copy& g) const {
    std::vector<const pointer_use*> out;
    for (const pointer_use& u : g.pointers)
      if (u.node == node) out.push_back(&u);
    return out;
  }
  std::size_t number(const pointer_use& u) const { return numbers_.at(&u.owner()); }

 private:
  std::map<const allocation*, std::size_t> numbers_;
  std::map<std::tuple<std::uint32_t, std::int32_t, std::uint32_t>, const pointer_use*> uses_;
};

std::string words(const pointer_use& u, const ownership& all) {
  const allocation& a = u.owner();
  return fmt::format("{:#x} (byte {} of allocation {}, {} bytes)", u.address, u.address - a.base, all.number(u),
                     a.size);
}

std::uint64_t number_at(const std::vector<std::byte>& bytes, std::size_t at, std::size_t size) {
  std::uint64_t n = 0;
  if (at + size <= bytes.size()) std::memcpy(&n, bytes.data() + at, std::min<std::size_t>(size, 8));
  return n;
}

class comparison {
 public:
  comparison(const graph_copy& a, const graph_copy& b, bool same_process)
      : a_(a), b_(b), in_a_(a), in_b_(b), same_process_(same_process) {}

  std::vector<graph_difference> run() {
    if (a_.nodes.size() != b_.nodes.size()) {
      add(kind::topology, 0, {}, -1, 0, fmt::format("{} nodes", a_.nodes.size()),
          fmt::format("{} nodes", b_.nodes.size()));
      out_.back().node_type.clear(); // it is about no node
      return std::move(out_);
    }
    for (std::size_t i = 0; i < a_.nodes.size(); ++i) {
      const exec_node &x = a_.nodes[i], &y = b_.nodes[i];
      if (x.type == y.type && x.parent == y.parent) continue;
      out_.clear();
      add(kind::topology, x.index, x, -1, 0, std::string(name_of(x.type)), std::string(name_of(y.type)));
      return std::move(out_);
    }
    for (std::uint32_t i = 0; i < a_.nodes.size(); ++i) compare_node(i);
    return std::move(out_);
  }

 private:
  void add(kind what, std::uint32_t node, const exec_node& n, int parameter, std::uint64_t offset, std::string before,
           std::string after) {
    graph_difference d;
    d.what = what;
    d.node = node;
    d.node_type = name_of(n.type);
    if (n.function) d.kernel = n.function->name;
    d.parameter = parameter;
    d.offset = offset;
    d.before = std::move(before);
    d.after = std::move(after);
    out_.push_back(std::move(d));
  }

  // True if both words are addresses; then all is said about them.
  bool compare_pointers(std::uint32_t i, const pointer_use* u, const pointer_use* v, int parameter,
                        std::uint64_t offset) {
    if (u == nullptr || v == nullptr) return false;
    const allocation &p = u->owner(), &q = v->owner();
    const bool same = same_process_
                          ? u->address == v->address && p.generation == q.generation
                          : in_a_.number(*u) == in_b_.number(*v) && u->address - p.base == v->address - q.base;
    if (!same)
      add(kind::pointer, a_.nodes[i].index, a_.nodes[i], parameter, offset, words(*u, in_a_), words(*v, in_b_));
    return true;
  }

  void compare_words(std::uint32_t i, int parameter, std::size_t begin, std::size_t size) {
    const exec_node &x = a_.nodes[i], &y = b_.nodes[i];
    if (size <= 8 && (size & (size - 1)) == 0) {
      if (size == 8 && compare_pointers(i, in_a_.at(i, parameter, 0), in_b_.at(i, parameter, 0), parameter, 0)) return;
      const std::uint64_t was = number_at(x.parameters, begin, size), is = number_at(y.parameters, begin, size);
      if (was != is) add(kind::number, x.index, x, parameter, 0, std::to_string(was), std::to_string(is));
      return;
    }
    for (std::size_t at = 0; at < size; at += 8) {
      const auto offset = static_cast<std::uint32_t>(at);
      const std::size_t n = std::min<std::size_t>(8, size - at);
      if (compare_pointers(i, in_a_.at(i, parameter, offset), in_b_.at(i, parameter, offset), parameter, at)) continue;
      const std::uint64_t was = number_at(x.parameters, begin + at, n), is = number_at(y.parameters, begin + at, n);
      if (was != is) add(kind::number, x.index, x, parameter, at, fmt::format("{:#x}", was), fmt::format("{:#x}", is));
    }
  }

  void compare_kernel(std::uint32_t i) {
    const exec_node &x = a_.nodes[i], &y = b_.nodes[i];
    const std::string f = x.function ? x.function->name : "?", g = y.function ? y.function->name : "?";
    if (f != g) {
      add(kind::function, x.index, x, -1, 0, f, g);
      return;
    }
    const auto grid = [](std::uint64_t v) {
      return fmt::format("grid {} x {} x {}", v & 0xffffffff, v >> 32 & 0xffff, v >> 48);
    };
    const auto block = [](std::uint64_t v) {
      return fmt::format("block {} x {} x {}, {} KiB of shared memory", v & 0xffff, v >> 16 & 0xffff, v >> 32 & 0xffff,
                         v >> 48);
    };
    if (x.value[1] != y.value[1]) add(kind::geometry, x.index, x, -1, 0, grid(x.value[1]), grid(y.value[1]));
    if (x.value[2] != y.value[2]) add(kind::geometry, x.index, x, -1, 0, block(x.value[2]), block(y.value[2]));
    if (!x.function || x.function->layout.empty()) {
      compare_words(i, -1, 0, std::max(x.parameters.size(), y.parameters.size()));
      return;
    }
    int parameter = 0;
    for (const auto& [offset, size] : x.function->layout) compare_words(i, parameter++, offset, size);
  }

  void compare_node(std::uint32_t i) {
    const exec_node &x = a_.nodes[i], &y = b_.nodes[i];
    if (x.type == node_type::kernel) return compare_kernel(i);
    const auto p = in_a_.of_node(i, a_), q = in_b_.of_node(i, b_);
    for (std::size_t k = 0; k < std::min(p.size(), q.size()); ++k) compare_pointers(i, p[k], q[k], -1, k);
    if (p.size() != q.size())
      add(kind::pointer, x.index, x, -1, 0, fmt::format("{} known operands", p.size()),
          fmt::format("{} known operands", q.size()));
    const bool sized = x.type == node_type::memcpy || x.type == node_type::memset;
    if (sized && x.value[2] != y.value[2])
      add(kind::size, x.index, x, -1, 0, fmt::format("{} bytes", x.value[2]), fmt::format("{} bytes", y.value[2]));
    if (x.type == node_type::memset && x.value[1] != y.value[1])
      add(kind::number, x.index, x, -1, 0, fmt::format("{:#x}", x.value[1]), fmt::format("{:#x}", y.value[1]));
    if (x.type == node_type::mem_alloc && x.value[1] != y.value[1])
      add(kind::size, x.index, x, -1, 0, fmt::format("{} bytes", x.value[1]), fmt::format("{} bytes", y.value[1]));
  }

  const graph_copy &a_, &b_;
  ownership in_a_, in_b_;
  bool same_process_;
  std::vector<graph_difference> out_;
};

} // namespace

std::string_view name_of(graph_difference::kind k) {
  static constexpr std::string_view names[] = {"topology", "function", "geometry", "pointer", "number", "size"};
  return names[static_cast<std::size_t>(k)];
}

std::vector<graph_difference> compare_graphs(const graph_copy& a, const graph_copy& b, bool same_process) {
  return comparison(a, b, same_process).run();
}

} // namespace capturesan
