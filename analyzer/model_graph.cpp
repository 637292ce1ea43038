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
constexpr std::size_t most_gone_execs = 65536;

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
  if (p.gone_execs.size() < most_gone_execs) p.gone_execs.insert(handle);
}

// The exec that a call which answered 0 is about. The driver knew it; if no record made it, and none destroyed it, then
// records are missing that nobody counted.
exec_state* model::exec_of(process_state& p, event_view& v) {
  const auto it = p.execs.find(v.event->arg[0]);
  if (it == p.execs.end()) {
    const bool may_be_gone = p.gone_execs.size() >= most_gone_execs || p.gone_execs.contains(v.event->arg[0]);
    if (!may_be_gone) p.trace.gaps.unseen.add(0, v.event->end);
    return nullptr;
  }
  v.exec = it->second.get();
  return v.exec;
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
  p.gone_execs.erase(e.arg[0]);
  p.execs[e.arg[0]] = std::move(x);
}

void model::update_exec(process_state& p, event_view& v, const thread_cursor& records) {
  if (exec_of(p, v) == nullptr) return;
  exec_state& x = *v.exec;
  const std::vector<exec_node> before = std::move(x.nodes);
  x.nodes.clear();
  x.pointers.clear();
  x.own_memory.clear();
  x.bodies = 0;
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
  pair_nodes(x, before);
  exec_ready(p, x);
  build_succeeded(p, v, x);
}

// After an update: edits go on naming the nodes of the first graph, and what was switched off stays off (measured,
// "enabled: survives an update"). The driver pairs the nodes in the order in which both graphs were built; so does
// their position, if they were built alike.
void model::pair_nodes(exec_state& x, const std::vector<exec_node>& before) {
  const auto same = [&](auto equal) {
    return !x.unpaired && std::equal(x.nodes.begin(), x.nodes.end(), before.begin(), before.end(), equal);
  };
  const bool itself = same([](const exec_node& now, const exec_node& was) { return now.node == was.named; });
  const bool alike = itself || same([](const exec_node& now, const exec_node& was) {
                       const bool function = now.function && was.function && now.function->name == was.function->name;
                       return now.type == was.type && now.parent == was.parent && (function || !now.function);
                     });
  x.updated = !itself;
  if (!alike) {
    x.unpaired = true;
    for (exec_node& n : x.nodes) n.named = 0;
    x.unknown = x.unknown || x.switched_off;
    return;
  }
  for (std::size_t i = 0; i < x.nodes.size(); ++i) {
    x.nodes[i].named = before[i].named;
    x.nodes[i].enabled = before[i].enabled;
  }
  for (std::uint32_t i = 0; i < x.nodes.size() && x.updated && x.switched_off; ++i)
    if (!x.nodes[i].enabled) doubt_twins(x, i);
}

// Something was told of that node, and it may be another one that looks the same.
void model::doubt_twins(exec_state& x, std::uint32_t node) {
  const exec_node& one = x.nodes[node];
  if (one.doubtful) return;
  const auto twin = [&](const exec_node& other) {
    const bool function = !one.function || (other.function && other.function->name == one.function->name);
    return other.type == one.type && function;
  };
  if (std::count_if(x.nodes.begin(), x.nodes.end(), twin) < 2) return;
  for (std::uint32_t i = 0; i < x.nodes.size(); ++i)
    if (i != node && twin(x.nodes[i])) x.nodes[i].doubtful = true;
  x.nodes[node].doubtful = true;
}

// One node of an exec got new parameters, or was switched on or off.
void model::edit_exec(process_state& p, event_view& v, const thread_cursor& records) {
  if (exec_of(p, v) == nullptr) return;
  exec_state& x = *v.exec;
  const std::uint64_t handle = v.event->arg[1];
  x.changed = true;
  if (v.call->api == "cuGraphNodeSetEnabled") {
    bool known = false;
    for (std::uint32_t i = 0; i < x.nodes.size(); ++i) {
      if (x.nodes[i].named != handle) continue;
      x.nodes[i].enabled = v.event->arg[2] != 0;
      if (x.updated) doubt_twins(x, i);
      known = true;
    }
    x.switched_off = x.switched_off || v.event->arg[2] == 0;
    x.unknown = x.unknown || !known;
    return;
  }
  // A record holds the new parameters; without one, something changed that has no address.
  exec_state fresh;
  fresh.begin_ns = fresh.end_ns = v.at_ns;
  fresh.own_memory = x.own_memory;
  std::swap(fresh.former, x.former);
  read_nodes(p, fresh, v, records);
  std::swap(fresh.former, x.former);
  if (fresh.nodes.empty()) {
    x.unknown = x.unknown || v.call->api == "cuGraphExecChildGraphNodeSetParams";
    return;
  }
  replace_nodes(x, handle, fresh);
}

namespace {

// Memory that no node names any more; it is known again if an edit brings its address back.
void keep_former(exec_state& x, const std::shared_ptr<allocation>& a) {
  constexpr std::size_t most_former = 64;
  if (std::find(x.former.begin(), x.former.end(), a) != x.former.end()) return;
  if (x.former.size() == most_former) x.former.erase(x.former.begin());
  x.former.push_back(a);
}

} // namespace

// Puts the nodes of `fresh`, a node and those inside of it, in the place of the node with that handle.
void model::replace_nodes(exec_state& x, std::uint64_t handle, exec_state& fresh) {
  const auto at = std::find_if(x.nodes.begin(), x.nodes.end(), [&](const exec_node& n) { return n.named == handle; });
  if (at == x.nodes.end()) { // the exec was updated from another graph: which of its nodes this one is, is not known
    x.unknown = true;
    return;
  }
  const auto first = static_cast<std::uint32_t>(at - x.nodes.begin());
  if (x.updated) doubt_twins(x, first);
  const std::uint32_t index = at->index;
  // Nodes of a child graph follow it, up to the first one that lies outside of it.
  std::uint32_t last = first + 1;
  while (fresh.nodes.size() > 1 && last < x.nodes.size() && x.nodes[last].parent > index) ++last;
  if (last - first != fresh.nodes.size()) { // another topology: the driver would have refused it
    x.unknown = true;
    return;
  }
  const auto of_device = [&](const auto& use) { return x.nodes[first + use.node].covered == coverage::of_device; };
  std::erase_if(fresh.pointers, of_device);
  std::erase_if(fresh.memory.uses, of_device);
  const auto replaced = [&](const auto& use) { return use.node >= first && use.node < last; };
  for (const pointer_use& u : x.pointers)
    if (replaced(u)) keep_former(x, u.memory);
  std::erase_if(x.pointers, replaced);
  std::erase_if(x.host_operands, replaced);
  std::erase_if(x.memory.uses, replaced);
  for (std::uint32_t i = 0; i < fresh.nodes.size(); ++i) {
    exec_node& to = x.nodes[first + i];
    exec_node& from = fresh.nodes[i];
    if (from.function) to.function = from.function;
    if (to.covered != coverage::of_device) to.covered = from.covered;
    if (i > 0) to.node = to.named = from.node;
    std::copy(std::begin(from.value), std::end(from.value), std::begin(to.value));
    to.parameters = std::move(from.parameters);
    std::erase_if(x.memory.faults, [&](const notice& n) { return n.user == &to; });
    edited_code(x, first + i, from.function != nullptr);
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
  if (exec_of(p, v) == nullptr) return;
  exec_state& x = *v.exec;
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
  if (x.unknown) {
    ++x.unjudged;
    return;
  }
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
  const stream_key stream = key_of(v.event->stream, v.call->per_thread, v.thread->index);
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
    const bool early = now != pointer_state::live && launch_may_come_first(p, u.owner(), stream);
    const bool news = now != u.seen || (u.seen_early && !early);
    if (now != pointer_state::live) ask_code(p, *v.exec, u, u.owner().base, u.owner().size);
    if (first || (now != pointer_state::live && news)) v.pointers.push_back(&u);
    u.seen = now;
    u.seen_early = early;
    again = again || early; // the next launch may be on another stream
  }
  return again;
}

} // namespace capturesan
