// What happens beside the work of a capture: calls that were dropped from it, work that went past it, code loaded
// meanwhile, captures that nobody ended.
#include <algorithm>

#include "analyzer/model.h"

namespace capturesan {

namespace {

using trace::call_class;

constexpr std::size_t most_writes = 4096;
constexpr std::size_t most_dropped = 256;
// A first use that took so long did more than it would later: a launch takes microseconds.
constexpr std::int64_t slow_ns = 1'000'000;

bool overlap(std::uint64_t a, std::uint64_t a_bytes, std::uint64_t b, std::uint64_t b_bytes) {
  return a < b ? b - a < a_bytes : a - b < b_bytes;
}

bool inside(std::uint64_t address, std::uint64_t base, std::uint64_t bytes) { return address - base < bytes; }

bool writes_memory(call_class c) {
  return c == call_class::memcpy || c == call_class::memset || c == call_class::memcpy_sync ||
         c == call_class::memset_sync;
}

bool becomes_node(call_class c) {
  return c == call_class::launch || c == call_class::memcpy || c == call_class::memset || c == call_class::host_func ||
         c == call_class::mem_op || c == call_class::alloc || c == call_class::free;
}

// Refused for a reason of its own, not because of the capture. Who allocates looks at what it got, and who asks for
// what a device cannot do goes on without.
bool perhaps_a_probe(const kept_call& refused) {
  constexpr int not_supported = 801;
  return refused.event.result != 900 &&
         (refused.event.result == not_supported || refused.call->cls == call_class::alloc);
}

// Whether the memory at the address was allocated after that time: nothing that ran before can have left a result in
// it.
bool made_since(const process_state& p, std::uint64_t address, std::int64_t ns) {
  const auto block = p.blocks.find(address);
  if (block) return block->made_thread != 0 && block->made_ns >= ns;
  const auto memory = p.memory.find(address);
  return memory && memory->made_ns >= ns;
}

// A captured copy to the place where the dropped one would have written, or a set over all of it.
bool takes_its_place(const captured_write& w, const dropped_call& d) {
  if (w.operation <= d.operations || d.target == 0) return false;
  if (w.copies) return inside(d.target, w.address, w.bytes);
  return w.address <= d.target && d.bytes != 0 && inside(d.target + d.bytes - 1, w.address, w.bytes);
}

// Could a kernel of the exec do what the dropped copy should have done? It has to know both ends of it: as parameters,
// or from a table in other memory that it is given.
bool kernel_may_copy(const process_state& p, const exec_state& x, const dropped_call& d) {
  if (d.target == 0 || d.source == 0 || !p.memory.find(d.target)) return true; // cannot be told
  for (std::uint32_t at = 0; at < x.nodes.size(); ++at) {
    const exec_node& n = x.nodes[at];
    if (n.type == trace::node_type::conditional) return true; // bodies are not recorded
    if (n.type != trace::node_type::kernel) continue;
    if (!n.function || n.function->layout.empty()) return true;
    bool target = false, source = false;
    for (const pointer_use& u : x.pointers) {
      if (u.node != at) continue;
      target = target || inside(u.address, d.target, std::max<std::uint64_t>(d.bytes, 1));
      source = source || inside(u.address, d.source, std::max<std::uint64_t>(d.bytes, 1));
      const allocation& in = u.owner();
      if (!in.contains(d.target) && !in.contains(d.source)) return true; // perhaps a table
    }
    if (target && source) return true;
  }
  return false;
}

// A node that copies to the same place, however it came into the graph.
bool added_by_hand(const exec_state& x, const dropped_call& d) {
  return d.target != 0 && std::any_of(x.pointers.begin(), x.pointers.end(), [&](const pointer_use& u) {
           return x.nodes[u.node].type == trace::node_type::memcpy && u.address == d.target;
         });
}

} // namespace

kept_call model::keep(const event_view& v) {
  kept_call k;
  k.event = *v.event;
  k.call = v.call;
  k.thread = v.thread->index;
  k.at_ns = v.at_ns;
  k.python = v.python;
  return k;
}

// An operation became part of v.capture.
void model::note_captured(process_state& p, event_view& v) {
  capture_state& c = *v.capture;
  const trace::event& e = *v.event;
  switch (v.call->cls) {
  case call_class::launch:
    ++c.kernels;
    break;
  case call_class::memcpy:
  case call_class::memset:
    c.writes_cut = c.writes_cut || c.writes.size() >= most_writes;
    if (!c.writes_cut) c.writes.push_back({e.arg[0], e.arg[2], c.operations, v.call->cls == call_class::memcpy});
    break;
  case call_class::alloc:
    c.allocates = true;
    p.graph_blocks[e.arg[0]].bytes = e.arg[1];
    break;
  case call_class::free:
    c.allocates = true;
    break;
  default:
    break;
  }
}

// The driver refused a call on a capturing stream and kept the capture: its operation is missing, unless the program
// puts another in its place before the capture ends.
void model::note_refused(event_view& v) {
  const trace::event& e = *v.event;
  if (!v.on_capturing_stream || v.status != trace::capture_status::active) return;
  // For another reason than the capture only calls count that would have become a node.
  if (e.result != 900 && (is_capture_result(e.result) || v.broke_capture || !becomes_node(v.call->cls))) return;
  capture_state& c = *v.capture;
  const bool copies = v.call->cls == call_class::memcpy, sets = v.call->cls == call_class::memset;
  if ((copies || sets) && e.arg[0] != 0 && e.arg[2] == 0) return; // of nothing
  if (v.call->cls == call_class::free && e.arg[0] == 0) return;
  if (c.dropped.size() >= most_dropped) return;
  dropped_call d;
  d.about = keep(v);
  if (copies) {
    d.target = e.arg[0];
    d.source = e.arg[1];
    d.bytes = e.arg[2];
  }
  if (sets && e.result != 900) {
    d.target = e.arg[0];
    d.bytes = e.arg[2];
  }
  d.operations = c.operations;
  d.kernels = c.kernels;
  c.dropped.push_back(std::move(d));
}

// A call that answered 0 while captures were open.
void model::note_beside(process_state& p, event_view& v) {
  if (v.capture == nullptr) return;
  const trace::event& e = *v.event;
  const call_class cls = v.call->cls;
  capture_state& c = *v.capture;
  side_work& b = c.beside;
  const bool own = c.thread == v.thread->index;
  const bool strict = c.mode != capture_mode::relaxed && v.thread->mode != capture_mode::relaxed;
  const std::int64_t took = p.trace.to_ns(e.end) - p.trace.to_ns(e.begin);
  const bool first_launch = cls == call_class::launch && p.launched.insert(e.arg[0]).second;
  if (own && strict) {
    const bool loads = cls == call_class::module_load || cls == call_class::function_load;
    const bool slow = took >= slow_ns &&
                      (first_launch || v.call->api == "cuKernelGetFunction" || v.call->api == "cuLibraryGetModule");
    if (loads || slow) {
      if (b.load.call == nullptr || (loads && b.loads == 0)) b.load = keep(v);
      ++(loads ? b.loads : b.slow_calls);
      b.load_ns += took;
    }
  }
  if (!own || v.on_capturing_stream || (cls != call_class::launch && !writes_memory(cls))) return;
  ++b.operations;
  if (cls == call_class::launch) {
    const stream_kind kind = kind_of_stream(v);
    b.to_named += kind != stream_kind::legacy && kind != stream_kind::per_thread ? 1 : 0;
    if (b.launches++ == 0) b.escaped = keep(v);
  }
  if (b.escaped.call == nullptr) b.escaped = keep(v);
  if (cls == call_class::memcpy || cls == call_class::memcpy_sync) {
    const auto reads = [&](const captured_write& w) { return overlap(w.address, w.bytes, e.arg[1], e.arg[2]); };
    const bool fresh = b.launches == 0 && made_since(p, e.arg[1], c.begin_ns);
    // What can be told to be wrong is told before what may be right.
    if ((b.reader.call == nullptr || (fresh && !b.reads_fresh)) &&
        std::any_of(c.writes.begin(), c.writes.end(), reads)) {
      b.reader = keep(v);
      b.reads_fresh = fresh;
    }
  }
  if (writes_memory(cls)) { // the captured operation is not the last to write there any more
    std::erase_if(c.writes, [&](const captured_write& w) { return overlap(w.address, w.bytes, e.arg[0], e.arg[2]); });
  }
}

// The capture ended well.
void model::note_capture_end(process_state& p, event_view& v, capture_state& c) {
  const side_work& b = c.beside;
  if (b.operations > 0) {
    notice n;
    n.what = own_event::work_escaped;
    n.capture = &c;
    n.reads_captured = b.reader.call != nullptr;
    n.reads_fresh = b.reads_fresh;
    n.default_stream = b.launches > 0 && b.to_named == 0;
    n.about = n.reads_captured ? b.reader : b.escaped;
    n.escaped_launches = b.launches;
    n.escaped_operations = b.operations;
    n.ended_empty = c.operations == 0 && c.nodes == 0;
    v.notices.push_back(std::move(n));
  }
  if (b.load.call != nullptr) {
    notice n;
    n.what = own_event::first_use;
    n.capture = &c;
    n.about = b.load;
    n.loads = b.loads;
    n.slow_calls = b.slow_calls;
    n.load_ns = b.load_ns;
    v.notices.push_back(std::move(n));
  }
  std::erase_if(c.dropped, [&](const dropped_call& d) {
    return std::any_of(c.writes.begin(), c.writes.end(),
                       [&](const captured_write& w) { return takes_its_place(w, d); });
  });
  if (!c.dropped.empty()) p.graphs[v.event->arg[0]].lacking = std::make_shared<capture_state>(c);
}

// Once the nodes of the graph are known, or never will be (`x` null): then no replay lacks anything, and the program
// may have noticed.
void model::judge_dropped(process_state& p, graph_state& g, const exec_state* x, bool whole, std::vector<notice>& out) {
  if (!g.lacking) return;
  for (dropped_call& d : g.lacking->dropped) {
    if (x != nullptr && added_by_hand(*x, d)) continue;
    notice n;
    n.what = own_event::operation_dropped;
    n.about = std::move(d.about);
    n.kept_capture = g.lacking;
    n.capture = g.lacking.get();
    const bool copies_unknown = g.lacking->writes_cut || (d.target == 0 && g.lacking->operations > d.operations);
    if (n.about.call->cls == call_class::free && n.about.event.result != 900) {
      auto memory = p.memory.find(n.about.event.arg[0]);
      if (memory && x != nullptr && p.refused_frees.size() < most_dropped)
        p.refused_frees.push_back({std::move(n), std::move(memory)});
      continue;
    }
    if (copies_unknown || x == nullptr || perhaps_a_probe(n.about)) {
      n.instead = substitute::possible;
    } else if (g.lacking->kernels > d.kernels) {
      const bool may = !whole || kernel_may_copy(p, *x, d);
      n.instead = may ? substitute::possible : substitute::unlikely;
    }
    out.push_back(std::move(n));
  }
  g.lacking->dropped.clear();
  g.lacking.reset();
}

void model::graph_destroyed(process_state& p, event_view& v) {
  const auto it = p.graphs.find(v.event->arg[0]);
  if (it == p.graphs.end()) return;
  if (it->second.lacking.use_count() == 1) judge_dropped(p, it->second, nullptr, false, v.notices);
  p.graphs.erase(it);
}

// Captures that are still open when their thread or their process has ended.
void model::abandoned_at_end(process_state& p, std::vector<notice>& out) {
  for (const auto& c : p.open) {
    const auto t = p.trace.threads.find(c->thread);
    const std::uint64_t ended = t == p.trace.threads.end() ? 0 : t->second.ended;
    // Broken while its thread lived: what remains of another fault.
    if (c->invalidated && (ended == 0 || c->invalidated_ticks < ended)) continue;
    notice n;
    n.what = own_event::capture_abandoned;
    n.about = c->begun;
    n.capture = c.get();
    if (ended != 0) {
      n.abandoned = abandoned_by::thread_end;
    } else if (p.trace.state == trace::process_state::replaced) {
      n.abandoned = abandoned_by::exec;
    } else if (p.trace.state == trace::process_state::ended) {
      n.abandoned = abandoned_by::process_end;
    } else {
      continue; // killed, or it crashed
    }
    out.push_back(std::move(n));
  }
}

void model::at_end(process_state& p, std::vector<notice>& out) {
  if (p.trace.has_gaps()) return; // what is missing may be in the gap
  for (auto& [handle, g] : p.graphs) judge_dropped(p, g, nullptr, false, out);
  if (p.trace.state == trace::process_state::ended) {
    for (refused_free& f : p.refused_frees)
      if (f.memory->live) out.push_back(std::move(f.told));
  }
  p.refused_frees.clear();
  abandoned_at_end(p, out);
  leaks_at_end(p, out);
  builds_at_end(p, out);
}

} // namespace capturesan
