// Graphs, execs and the addresses in their nodes.
#include <algorithm>
#include <cstring>

#include "analyzer/model.h"

namespace capturesan {

namespace {

using trace::node_type;
using trace::record_kind;

std::uint64_t word_at(std::span<const std::byte> block, std::size_t offset) {
  std::uint64_t word = 0;
  if (offset + sizeof(word) <= block.size()) std::memcpy(&word, block.data() + offset, sizeof(word));
  return word;
}

// FNV-1a over what a node does, not over which node it is.
std::uint64_t add_to_content(std::uint64_t h, const trace::node_record& n, std::span<const std::byte> payload) {
  const auto add = [&h](const void* data, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
      h = (h ^ std::to_integer<std::uint64_t>(static_cast<const std::byte*>(data)[i])) * 0x100000001b3ull;
  };
  add(&n.type, sizeof(n.type));
  if (n.type != node_type::graph) add(n.value, sizeof(n.value)); // a child graph's handle says nothing
  add(payload.data(), payload.size());
  return h;
}

constexpr std::size_t most_launch_sites = 1024; // of one exec
// Bits of value[3] of a memcpy node.
constexpr std::uint64_t host_destination = 1, host_source = 2, array_destination = 4, array_source = 8;

} // namespace

void model::read_side_records(process_state& p, event_view& v, const thread_cursor& records) {
  records.each_side_record([&](const side_record& r) {
    if (r.kind != record_kind::python_stack && r.kind != record_kind::function && r.kind != record_kind::text) return;
    const auto head = r.as<trace::payload_record>();
    const auto payload = r.payload(sizeof(head), head.bytes);
    const std::string_view text(reinterpret_cast<const char*>(payload.data()), payload.size());
    if (r.kind == record_kind::python_stack) {
      v.python = text;
    } else if (r.kind == record_kind::function) {
      read_function(p, head, payload);
    } else if (head.aux == static_cast<std::uint16_t>(trace::text_role::runtime_call)) {
      v.runtime_call = text;
    } else if (head.aux == static_cast<std::uint16_t>(trace::text_role::loaded)) {
      v.modules_loaded = head.key;
    } else if (head.aux == static_cast<std::uint16_t>(trace::text_role::function_name)) {
      auto& f = p.functions[head.key];
      if (f && f->name == text) return; // asked for again: its layout still holds
      f = std::make_shared<function_state>();
      f->name = text;
    }
  });
}

void model::read_function(process_state& p, const trace::payload_record& head, std::span<const std::byte> payload) {
  auto f = std::make_shared<function_state>();
  const std::size_t known = head.aux == 0xffff ? 0 : head.aux; // 0xffff: the driver did not tell
  const std::size_t count = std::min<std::size_t>(known, payload.size() / 4);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t pair[2];
    std::memcpy(pair, payload.data() + i * 4, 4);
    f->layout.emplace_back(pair[0], pair[1]);
  }
  f->name.assign(reinterpret_cast<const char*>(payload.data()) + count * 4, payload.size() - count * 4);
  auto& slot = p.functions[head.key];
  if (slot) f->module = slot->module;
  slot = std::move(f);
}

void model::add_pointer(process_state& p, exec_state& x, const pointer_use& use) {
  if (use.address == 0) return;
  auto a = p.memory.find(use.address);
  if (!a) {
    auto block = p.graph_blocks.upper_bound(use.address);
    if (block == p.graph_blocks.begin()) return;
    --block;
    if (use.address - block->first < block->second.bytes) x.memory.uses.push_back(use);
    return;
  }
  a->in_graph = true;
  x.pointers.push_back(use);
  x.pointers.back().memory = std::move(a);
}

// Words of the parameter block that are addresses. A parameter of 8 bytes is a pointer if it points somewhere; a word
// inside a larger one may be one.
void model::read_parameters(process_state& p, exec_state& x, std::uint32_t node, std::span<const std::byte> block) {
  const exec_node& n = x.nodes[node];
  const auto use = [&](std::size_t at, std::int32_t parameter, std::size_t offset, certainty sure) {
    pointer_use u;
    u.address = word_at(block, at);
    u.node = node;
    u.parameter = parameter;
    u.offset = static_cast<std::uint32_t>(offset);
    u.sure = sure;
    add_pointer(p, x, u);
  };
  const std::size_t before = x.pointers.size();
  if (!n.function || n.function->layout.empty()) {
    for (std::size_t at = 0; at + 8 <= block.size(); at += 8) use(at, -1, at, certainty::inferred);
  } else {
    std::int32_t parameter = 0;
    for (const auto& [offset, size] : n.function->layout) {
      if (size == 8) {
        use(offset, parameter, 0, certainty::typed);
      } else {
        const std::size_t end = std::min<std::size_t>(std::size_t{offset} + size, block.size());
        for (std::size_t at = (std::size_t{offset} + 7) / 8 * 8; at + 8 <= end; at += 8)
          use(at, parameter, at - offset, certainty::inferred);
      }
      ++parameter;
    }
  }
  ++x.kernels;
  if (x.pointers.size() > before) ++x.kernels_resolved;
}

void model::read_node(process_state& p, exec_state& x, const side_record& r) {
  const auto n = r.as<trace::node_record>();
  const auto place = static_cast<std::uint32_t>(x.nodes.size());
  exec_node node;
  node.index = n.index;
  node.node = n.node;
  node.type = n.type;
  node.parent = n.parent;
  x.content = add_to_content(x.content, n, r.payload(sizeof(n), n.bytes));
  if (n.type == node_type::kernel) {
    const auto f = p.functions.find(n.value[0]);
    if (f != p.functions.end()) node.function = f->second;
  }
  x.nodes.push_back(std::move(node));
  const auto exact = [&](std::uint64_t address) {
    pointer_use u;
    u.address = address;
    u.node = place;
    add_pointer(p, x, u);
  };
  switch (n.type) {
  case node_type::kernel:
    read_parameters(p, x, place, r.payload(sizeof(n), n.bytes));
    break;
  case node_type::memcpy:
    if ((n.value[3] & (host_destination | array_destination)) == 0) exact(n.value[0]);
    if ((n.value[3] & (host_source | array_source)) == 0) exact(n.value[1]);
    if ((n.value[3] & host_destination) != 0) x.host_operands.push_back({n.value[0], n.value[2], place, true});
    if ((n.value[3] & host_source) != 0) x.host_operands.push_back({n.value[1], n.value[2], place, false});
    break;
  case node_type::memset:
    exact(n.value[0]);
    break;
  default:
    break;
  }
}

void model::exec_ready(process_state& p, exec_state& x) {
  x.changed = true;
  if (on_exec) on_exec(p, x);
}

// `by` null: destroyed unseen.
void model::destroy_exec(process_state& p, std::uint64_t handle, const event_view* by) {
  const auto it = p.execs.find(handle);
  if (it == p.execs.end()) return;
  leave_growth(p, *it->second, true);
  if (by != nullptr) orphan_memory(p, *it->second, *by);
  for (failed_build& f : p.failed_builds) f.exec_gone = f.exec_gone || f.exec == handle;
  if (on_exec) on_exec(p, *it->second);
  p.execs.erase(it);
}

// The nodes of an exec, from the records before the event. Memory that the graph itself allocates is known first: a
// node that uses it may come before its allocation in the driver's list.
void model::read_nodes(process_state& p, exec_state& x, const event_view& v, const thread_cursor& records) {
  records.each_side_record([&](const side_record& r) {
    if (r.kind != record_kind::node) return;
    const auto n = r.as<trace::node_record>();
    if (n.type == node_type::mem_alloc) p.graph_blocks[n.value[0]].bytes = n.value[1];
  });
  records.each_side_record([&](const side_record& r) {
    if (r.kind == record_kind::node) read_node(p, x, r);
  });
  read_memory_nodes(p, x, v, records);
}

void model::instantiate(process_state& p, event_view& v, const thread_cursor& records) {
  const trace::event& e = *v.event;
  auto x = std::make_unique<exec_state>();
  x->id = ++execs_;
  x->handle = e.arg[0];
  x->graph = e.arg[1];
  x->context = v.thread->context;
  read_nodes(p, *x, v, records);
  const auto g = p.graphs.find(e.arg[1]);
  if (g != p.graphs.end()) {
    x->capture = g->second.capture;
    g->second.nodes = x->nodes.size();
    judge_dropped(p, g->second, x.get(), (e.flags & trace::event_truncated) == 0, v.notices);
  }
  v.exec = x.get();
  destroy_exec(p, e.arg[0], nullptr); // a handle that is given out again was destroyed unseen
  exec_ready(p, *x);
  build_succeeded(p, v, *x);
  if ((e.flags & trace::event_truncated) != 0) x->content += static_cast<std::uint64_t>(x->id); // like no other
  count_growth(p, v, *x);
  p.execs[e.arg[0]] = std::move(x);
}

void model::update_exec(process_state& p, event_view& v, const thread_cursor& records) {
  const auto it = p.execs.find(v.event->arg[0]);
  if (it == p.execs.end()) return;
  exec_state& x = *it->second;
  v.exec = &x;
  x.nodes.clear();
  x.pointers.clear();
  x.kernels = x.kernels_resolved = 0;
  const bool free_on_launch = x.memory.free_on_launch;
  x.memory = {};
  x.memory.free_on_launch = free_on_launch;
  x.host_operands.clear();
  x.unloaded = {};
  leave_growth(p, x, false);
  x.content = 0;
  read_nodes(p, x, v, records);
  x.unknown = x.nodes.empty();
  exec_ready(p, x);
  build_succeeded(p, v, x);
}

// One node of an exec got new parameters, or was switched on or off.
void model::edit_exec(process_state& p, event_view& v, const thread_cursor& records) {
  const auto it = p.execs.find(v.event->arg[0]);
  if (it == p.execs.end()) return;
  exec_state& x = *it->second;
  v.exec = &x;
  const std::uint64_t handle = v.event->arg[1];
  x.changed = true;
  if (v.call->api == "cuGraphNodeSetEnabled") {
    for (exec_node& n : x.nodes)
      if (n.node == handle) n.enabled = v.event->arg[2] != 0;
    return;
  }
  if (v.call->api == "cuGraphExecChildGraphNodeSetParams") {
    x.unknown = true; // other nodes replay from here on, and the trace does not say which
    return;
  }
  // A record holds the node's new parameters; without one, something changed that has no address.
  records.each_side_record([&](const side_record& r) {
    if (r.kind != record_kind::node) return;
    std::erase_if(x.pointers, [&](const pointer_use& u) { return x.nodes[u.node].node == handle; });
    exec_state fresh;
    read_node(p, fresh, r);
    for (std::uint32_t at = 0; at < x.nodes.size(); ++at) {
      if (x.nodes[at].node != handle) continue;
      std::erase_if(x.memory.faults, [&](const notice& n) { return n.user == &x.nodes[at]; });
      std::erase_if(x.host_operands, [&](const host_operand& h) { return h.node == at; });
      if (fresh.nodes.front().function) x.nodes[at].function = fresh.nodes.front().function;
      for (pointer_use& u : fresh.pointers) {
        u.node = at;
        x.pointers.push_back(std::move(u));
      }
      edited_code(x, at);
      break;
    }
  });
}

void model::launch_graph(process_state& p, event_view& v) {
  const auto it = p.execs.find(v.event->arg[0]);
  if (it == p.execs.end()) return;
  exec_state& x = *it->second;
  v.exec = &x;
  if (v.on_capturing_stream) return; // becomes a child graph of the capture
  v.is_replay = true;
  if (v.event->stack != 0 && x.launch_sites.size() < most_launch_sites)
    x.launch_sites.emplace_back(v.event->arg[1], v.event->stack);
  ++replays_;
  ++x.replays;
  leave_growth(p, x, false);
  launch_memory(p, v);
  stale_code_at_launch(p, v);
  builds_at_launch(p, v);
  pageable_at_launch(p, v);
  const std::uint64_t epoch = p.memory.graph_epoch();
  const bool first = x.replays == 1;
  if (x.unknown || (!x.changed && x.epoch == epoch)) return;
  for (pointer_use& u : x.pointers) {
    if (!x.nodes[u.node].enabled) continue;
    if (!u.memory->live && !u.stale) {
      u.stale = true;
      v.pointers.push_back(&u);
    } else if (first) {
      v.pointers.push_back(&u);
    }
    if (u.memory->live) u.stale = false;
  }
  x.changed = false;
  x.epoch = epoch;
}

} // namespace capturesan
