// Memory that graphs allocate and free when they run: who has it, and whether the edges of a graph put each use between
// its allocation and its free.
#include <algorithm>
#include <cstring>

#include "analyzer/model.h"

namespace capturesan {

namespace {

using trace::call_class;
using trace::node_type;
using trace::record_kind;

constexpr int invalid_value = 1, not_supported = 801;
constexpr std::uint64_t auto_free_on_launch = 1; // CU_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
constexpr std::size_t most_memory_nodes = 4096;  // of one graph whose order is checked
constexpr std::size_t most_edges = std::size_t{1} << 20;

// The nodes of an exec as the edges of its graphs order them. A child-graph node is two places, its begin and its end,
// with the nodes of the child between them; every other node is one.
class node_order {
 public:
  explicit node_order(const exec_state& x) : count_(x.nodes.size()), next_(2 * count_), before_(2 * count_) {
    std::unordered_map<std::uint64_t, std::uint32_t> by_handle;
    std::unordered_map<std::uint32_t, std::uint32_t> by_index;
    for (std::uint32_t at = 0; at < count_; ++at) {
      by_index[x.nodes[at].index] = at;
      by_handle[x.nodes[at].node] = at;
    }
    const auto end_of = [&](std::uint32_t at) {
      return x.nodes[at].type == node_type::graph ? at + static_cast<std::uint32_t>(count_) : at;
    };
    for (std::uint32_t at = 0; at < count_; ++at) {
      if (x.nodes[at].parent == 0) continue;
      const auto parent = by_index.find(x.nodes[at].parent - 1);
      if (parent == by_index.end()) continue;
      join(parent->second, at);
      join(end_of(at), end_of(parent->second));
    }
    for (const auto& [from, to] : x.memory.edges) {
      const auto a = by_handle.find(from), b = by_handle.find(to);
      if (a != by_handle.end() && b != by_handle.end()) join(end_of(a->second), b->second);
    }
  }

  // By position of the node; of nodes that are no child graphs.
  std::vector<bool> after(std::uint32_t at) const { return reach(next_, at); }
  std::vector<bool> before(std::uint32_t at) const { return reach(before_, at); }

 private:
  using lists = std::vector<std::vector<std::uint32_t>>;
  void join(std::uint32_t from, std::uint32_t to) {
    next_[from].push_back(to);
    before_[to].push_back(from);
  }
  static std::vector<bool> reach(const lists& to, std::uint32_t from) {
    std::vector<bool> seen(to.size());
    std::vector<std::uint32_t> open = {from};
    while (!open.empty()) {
      const std::uint32_t at = open.back();
      open.pop_back();
      for (const std::uint32_t n : to[at]) {
        if (seen[n]) continue;
        seen[n] = true;
        open.push_back(n);
      }
    }
    return seen;
  }

  std::size_t count_;
  lists next_, before_;
};

struct block_order {
  std::vector<bool> after_allocation, after_free, before_free;
};

notice fault_of(memory_fault fault, std::uint64_t address, std::uint64_t bytes) {
  notice n;
  n.what = own_event::graph_memory;
  n.fault = fault;
  n.address = address;
  n.bytes = bytes;
  return n;
}

} // namespace

// After the nodes have been read.
void model::read_memory_nodes(process_state& p, exec_state& x, const event_view& v, const thread_cursor& records) {
  exec_memory& m = x.memory;
  if (v.call->cls == call_class::graph_instantiate) m.free_on_launch = (v.event->arg[2] & auto_free_on_launch) != 0;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> frees; // position, address
  std::uint32_t at = 0;
  std::set<std::uint64_t> told, children; // graphs
  records.each_side_record([&](const side_record& r) {
    if (r.kind == record_kind::edges) {
      const auto head = r.as<trace::payload_record>();
      const auto pairs = r.payload(sizeof(head), head.bytes);
      told.insert(head.key);
      for (std::size_t i = 0; i + 16 <= pairs.size() && m.edges.size() < most_edges; i += 16) {
        std::uint64_t edge[2];
        std::memcpy(edge, pairs.data() + i, sizeof(edge));
        m.edges.emplace_back(edge[0], edge[1]);
      }
    }
    if (r.kind != record_kind::node) return;
    const auto n = r.as<trace::node_record>();
    const std::uint32_t here = at++;
    if (n.type == node_type::graph) children.insert(n.value[0]);
    if (n.type == node_type::mem_alloc) m.blocks.push_back({n.value[0], n.value[1], here, -1});
    if (n.type == node_type::mem_free) frees.emplace_back(here, n.value[0]);
  });
  if (m.blocks.empty() && frees.empty()) return;
  m.edges_known = !told.empty() && std::includes(told.begin(), told.end(), children.begin(), children.end());
  const auto g = p.graphs.find(x.graph);
  if (g != p.graphs.end()) g->second.memory_nodes = true;
  // One address may be allocated, freed and allocated again in one graph: a free belongs to the last allocation
  // before it.
  const node_order order(x);
  for (const auto& [node, address] : frees) {
    const std::vector<bool> before = order.before(node);
    exec_memory::block* owner = nullptr;
    for (auto& b : m.blocks) {
      if (b.address != address || (m.edges_known && !before[b.node])) continue;
      if (owner == nullptr || order.before(b.node)[owner->node]) owner = &b;
    }
    if (owner != nullptr) {
      owner->freed = node;
    } else {
      m.foreign_frees.push_back(address);
    }
  }
  check_memory_order(x);
}

void model::check_memory_order(exec_state& x) {
  exec_memory& m = x.memory;
  if (m.blocks.empty() || m.uses.empty() || !m.edges_known || m.blocks.size() > most_memory_nodes) return;
  const node_order order(x);
  std::vector<block_order> of(m.blocks.size());
  for (std::size_t i = 0; i < m.blocks.size(); ++i) {
    of[i].after_allocation = order.after(m.blocks[i].node);
    if (m.blocks[i].freed < 0) continue;
    of[i].after_free = order.after(static_cast<std::uint32_t>(m.blocks[i].freed));
    of[i].before_free = order.before(static_cast<std::uint32_t>(m.blocks[i].freed));
  }
  for (const pointer_use& u : m.uses) {
    const std::uint32_t at = u.node;
    const exec_memory::block* wrong = nullptr;
    memory_fault fault = memory_fault::use_before_allocation;
    bool fine = false, known = false;
    for (std::size_t i = 0; i < m.blocks.size() && !fine; ++i) {
      const exec_memory::block& b = m.blocks[i];
      if (u.address - b.address >= b.bytes) continue;
      known = true;
      const bool allocated = of[i].after_allocation[at];
      fine = allocated && (b.freed < 0 || of[i].before_free[at]);
      if (wrong == nullptr) wrong = &b;
      if (fine || !allocated) continue;
      const auto seen = of[i].after_free[at] ? memory_fault::use_after_free : memory_fault::use_unordered;
      if (fault == memory_fault::use_after_free && seen != fault) continue;
      fault = seen;
      wrong = &b;
    }
    if (fine || !known) continue;
    notice n = fault_of(fault, u.address, wrong->bytes);
    n.node = x.nodes[u.node].index;
    n.user = &x.nodes[u.node];
    n.sure = static_cast<std::uint8_t>(u.sure);
    n.use = std::make_shared<pointer_use>(u);
    n.block = wrong->address;
    const bool about_free = fault != memory_fault::use_before_allocation;
    n.memory_node = x.nodes[about_free ? static_cast<std::size_t>(wrong->freed) : wrong->node].index;
    m.faults.push_back(std::move(n));
  }
}

void model::launch_memory(process_state& p, event_view& v) {
  exec_state& x = *v.exec;
  for (const std::uint64_t address : x.memory.foreign_frees) {
    const auto it = p.graph_blocks.find(address);
    if (it != p.graph_blocks.end()) it->second.allocated = false;
  }
  for (const auto& b : x.memory.blocks) {
    graph_block& g = p.graph_blocks[b.address];
    g.bytes = b.bytes;
    g.allocated = b.freed < 0;
    g.orphaned = {};
    g.named = false;
  }
  if (x.memory.faults.empty()) return;
  for (notice& n : x.memory.faults) {
    if (n.user == nullptr || !n.user->enabled) continue;
    n.about = keep(v);
    n.exec = &x;
    if (n.use) {
      ask_code(p, x, *n.use, n.block, n.bytes);
      n.sure = static_cast<std::uint8_t>(n.use->sure);
    }
    v.notices.push_back(n);
  }
  x.memory.faults.clear();
}

// A launch that the driver refused.
void model::launch_failed(process_state& p, event_view& v) {
  const auto it = p.execs.find(v.event->arg[0]);
  if (it == p.execs.end()) {
    note_refused(v);
    return;
  }
  exec_state& x = *it->second;
  v.exec = &x;
  blame_context(v);
  stale_code_at_launch(p, v);
  note_refused(v);
  if (v.event->result != invalid_value || x.unknown) return;
  const auto tell = [&](memory_fault fault, std::uint64_t address, std::uint64_t bytes) {
    notice n = fault_of(fault, address, bytes);
    n.about = keep(v);
    n.exec = &x;
    v.notices.push_back(std::move(n));
  };
  for (const auto& b : x.memory.blocks) {
    const auto g = p.graph_blocks.find(b.address);
    if (b.freed >= 0 || x.memory.free_on_launch || g == p.graph_blocks.end() || !g->second.allocated) continue;
    return tell(memory_fault::relaunch_unfreed, b.address, b.bytes);
  }
  for (const std::uint64_t address : x.memory.foreign_frees) {
    const auto g = p.graph_blocks.find(address);
    if (g == p.graph_blocks.end() || g->second.allocated) continue;
    return tell(memory_fault::free_of_unallocated, address, g->second.bytes);
  }
}

// A free by the host, or a refused copy of a graph.
void model::memory_event(process_state& p, event_view& v) {
  const trace::event& e = *v.event;
  if (v.call->cls == call_class::graph_clone) {
    const auto g = p.graphs.find(e.arg[1]);
    if (e.result != not_supported || g == p.graphs.end() || !g->second.memory_nodes) return;
    notice n = fault_of(memory_fault::copied, 0, 0);
    n.about = keep(v);
    v.notices.push_back(std::move(n));
    return;
  }
  note_refused(v);
  if (p.graph_blocks.empty() || v.on_capturing_stream) return;
  const auto it = p.graph_blocks.find(e.arg[0]);
  if (it == p.graph_blocks.end()) return;
  if (e.result == 0) {
    it->second.allocated = false;
    it->second.orphaned = {};
  } else if (e.result == invalid_value && !it->second.allocated && !p.memory.find(e.arg[0])) {
    notice n = fault_of(memory_fault::free_of_unallocated, e.arg[0], it->second.bytes);
    n.about = keep(v);
    v.notices.push_back(std::move(n));
  }
}

// The exec goes; its memory does not (measured, "memory nodes: exec destroyed while allocated; free afterwards").
void model::orphan_memory(process_state& p, const exec_state& x, const event_view& v) {
  for (const auto& b : x.memory.blocks) {
    const auto it = p.graph_blocks.find(b.address);
    if (it == p.graph_blocks.end() || !it->second.allocated) continue;
    it->second.orphaned = keep(v);
    it->second.scratch = x.memory.free_on_launch && x.replays > 1;
  }
}

void model::leaks_at_end(process_state& p, std::vector<notice>& out) {
  std::map<std::pair<std::uint32_t, bool>, notice> by_site;
  for (auto& [address, g] : p.graph_blocks) {
    if (!g.allocated || g.orphaned.call == nullptr) continue;
    const bool scratch = g.scratch && !g.named;
    const auto [it, fresh] = by_site.try_emplace({g.orphaned.event.stack, scratch});
    notice& n = it->second;
    if (fresh) {
      n = fault_of(memory_fault::leaked, address, 0);
      n.about = g.orphaned;
      n.count = 0;
      n.scratch = scratch;
    }
    ++n.count;
    n.bytes += g.bytes;
  }
  for (auto& [site, n] : by_site) out.push_back(std::move(n));
}

} // namespace capturesan
