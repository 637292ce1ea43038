// Graphs, execs and the addresses in their nodes.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "analyzer/model.h"
#include "analyzer/python_frames.h"

namespace capturesan {

namespace {

using trace::record_kind;

constexpr std::size_t most_launch_sites = 1024; // of one exec

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
  f->layout_known = head.aux != 0xffff;
  const std::size_t count = std::min<std::size_t>(known, payload.size() / 4);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t pair[2];
    std::memcpy(pair, payload.data() + i * 4, 4);
    f->layout.emplace_back(pair[0], pair[1]);
  }
  f->name.assign(reinterpret_cast<const char*>(payload.data()) + count * 4, payload.size() - count * 4);
  f->shapes = shapes_of(f->name, f->layout);
  auto& slot = p.functions[head.key];
  if (slot) f->module = slot->module;
  slot = std::move(f);
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

// Where a graph came from: what its nodes may refer to was alive then.
void model::describe_origin(process_state& p, exec_state& x, const event_view& v) {
  x.begin_ns = x.end_ns = v.at_ns;
  const auto g = p.graphs.find(v.event->arg[1]);
  if (g != p.graphs.end()) {
    x.capture = g->second.capture;
    x.place = g->second.place;
    x.begin_stack = g->second.stack;
    if (g->second.capture != 0) {
      x.begin_ns = g->second.begin_ns;
      // A graph that was changed by hand may name what was allocated until then.
      x.end_ns = std::max({g->second.end_ns, g->second.edited_ns, p.node_edited_ns});
    }
  }
  if (x.place.empty()) x.place = python_place(v.python);
}

void model::instantiate(process_state& p, event_view& v, const thread_cursor& records) {
  const trace::event& e = *v.event;
  auto x = std::make_unique<exec_state>();
  x->id = ++execs_;
  x->handle = e.arg[0];
  x->graph = e.arg[1];
  x->context = v.thread->context;
  describe_origin(p, *x, v);
  read_nodes(p, *x, v, records);
  read_memory_nodes(p, *x, v, records);
  const auto g = p.graphs.find(e.arg[1]);
  if (g != p.graphs.end()) {
    g->second.nodes = x->nodes.size();
    judge_dropped(p, g->second, x.get(), (e.flags & trace::event_truncated) == 0, v.notices);
    g->second.instantiated = true;
    keep_dead_if_needed(p);
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
  x.own_memory.clear();
  const bool free_on_launch = x.memory.free_on_launch;
  x.memory = {};
  x.memory.free_on_launch = free_on_launch;
  x.host_operands.clear();
  x.unloaded = {};
  leave_growth(p, x, false);
  x.content = 0;
  describe_origin(p, x, v);
  read_nodes(p, x, v, records);
  read_memory_nodes(p, x, v, records);
  if (const auto g = p.graphs.find(v.event->arg[1]); g != p.graphs.end()) g->second.instantiated = true;
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
    bool known = false;
    for (exec_node& n : x.nodes) {
      if (n.node != handle) continue;
      n.enabled = v.event->arg[2] != 0;
      known = true;
    }
    x.unknown = x.unknown || !known;
    return;
  }
  // A record holds the new parameters; without one, something changed that has no address.
  exec_state fresh;
  fresh.begin_ns = fresh.end_ns = v.at_ns;
  fresh.own_memory = x.own_memory;
  read_nodes(p, fresh, v, records);
  if (fresh.nodes.empty()) {
    x.unknown = x.unknown || v.call->api == "cuGraphExecChildGraphNodeSetParams";
    return;
  }
  replace_nodes(x, handle, fresh);
}

// Puts the nodes of `fresh`, a node and those inside of it, in the place of the node with that handle.
void model::replace_nodes(exec_state& x, std::uint64_t handle, exec_state& fresh) {
  const auto at = std::find_if(x.nodes.begin(), x.nodes.end(), [&](const exec_node& n) { return n.node == handle; });
  if (at == x.nodes.end()) { // the exec was updated from another graph: which of its nodes this one is, is not known
    x.unknown = true;
    return;
  }
  const auto first = static_cast<std::uint32_t>(at - x.nodes.begin());
  const std::uint32_t index = at->index;
  // Nodes of a child graph follow it, up to the first one that lies outside of it.
  std::uint32_t last = first + 1;
  while (fresh.nodes.size() > 1 && last < x.nodes.size() && x.nodes[last].parent > index) ++last;
  if (last - first != fresh.nodes.size()) { // another topology: the driver would have refused it
    x.unknown = true;
    return;
  }
  const auto replaced = [&](const auto& use) { return use.node >= first && use.node < last; };
  std::erase_if(x.pointers, replaced);
  std::erase_if(x.host_operands, replaced);
  std::erase_if(x.memory.uses, replaced);
  for (std::uint32_t i = 0; i < fresh.nodes.size(); ++i) {
    exec_node& to = x.nodes[first + i];
    exec_node& from = fresh.nodes[i];
    if (from.function) to.function = from.function;
    to.covered = from.covered;
    if (i > 0) to.node = from.node;
    std::copy(std::begin(from.value), std::end(from.value), std::begin(to.value));
    to.parameters = std::move(from.parameters);
    std::erase_if(x.memory.faults, [&](const notice& n) { return n.user == &to; });
    edited_code(x, first + i);
  }
  for (pointer_use& u : fresh.pointers) {
    u.node += first;
    x.has_stack_memory = x.has_stack_memory || u.memory->kind == memory_kind::stack;
    x.pointers.push_back(std::move(u));
  }
  for (host_operand& o : fresh.host_operands) {
    o.node += first;
    x.host_operands.push_back(o);
  }
  // Uses of the graph's own memory: only the new ones are looked at, what was wrong with others is known.
  std::vector<pointer_use> others = std::move(x.memory.uses);
  x.memory.uses = std::move(fresh.memory.uses);
  for (pointer_use& u : x.memory.uses) u.node += first;
  check_memory_order(x);
  std::move(x.memory.uses.begin(), x.memory.uses.end(), std::back_inserter(others));
  x.memory.uses = std::move(others);
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
  if (x.unknown) return;
  stacks_gone(p, x, v);
  if (!x.changed && x.epoch == p.memory_epoch()) return;
  x.changed = find_stale(p, v, x.replays == 1);
  x.epoch = p.memory_epoch();
}

// A launch that had not returned when the trace ended: the driver hangs in it, or took the process with it. What it was
// asked to run is known all the same.
void model::pending_launch(process_state& p, event_view& v) {
  const auto it = p.execs.find(v.event->arg[0]);
  if (it == p.execs.end() || it->second->unknown) return;
  if (p.capturing.contains(key_of(v.event->stream, v.call->per_thread, v.thread->index))) return;
  exec_state& x = *it->second;
  v.exec = &x;
  v.is_replay = true;
  ++x.replays;
  find_stale(p, v, x.replays == 1);
}

// Addresses of the exec whose memory is not what it was. True if some of it went while the launch was under way, so
// that the next one must look again.
bool model::find_stale(process_state& p, event_view& v, bool first) {
  const std::int64_t entry = p.trace.to_ns(v.event->begin);
  bool again = false;
  for (pointer_use& u : v.exec->pointers) {
    if (!v.exec->nodes[u.node].enabled) continue;
    if (!u.memory->live) {
      if (auto now = p.memory.mapped_again(*u.memory, u.address)) {
        now->in_graph = true;
        u.memory = std::move(now);
      }
    }
    again = again || (!u.memory->live && u.memory->freed_ns > entry);
    const pointer_state now = state_of(p, u, entry);
    if (now != pointer_state::live) ask_code(p, *v.exec, u, u.owner().base, u.owner().size);
    if (first || (now != pointer_state::live && now != u.seen)) v.pointers.push_back(&u);
    u.seen = now;
  }
  return again;
}

} // namespace capturesan
