// Captures: who is part of them, what broke them, who is to blame.
#include <algorithm>

#include "analyzer/model.h"
#include "analyzer/python_frames.h"

namespace capturesan {

namespace {

using trace::call_class;
using trace::capture_status;

// CU_EVENT_RECORD_EXTERNAL, CU_EVENT_WAIT_EXTERNAL
constexpr std::uint64_t external_flag = 1;

constexpr int not_ready = 600; // an answer, not a failure

constexpr std::size_t most_closed = 64;
constexpr std::size_t most_unexplained = 256; // per process; a damaged trace must not pile them up

void merge_into(reach& to, const reach& from) {
  for (const auto& [stream, work] : from) {
    auto& known = to[stream];
    known = std::max(known, work);
  }
}

// Whether a refused call can be what invalidated this capture. A status is read a moment after the call returned: by
// then another thread may have broken its own capture, and this call must not be blamed for that. Truth: the matrix,
// and the facts "overlap: ..." (measured).
bool in_reach(const process_state& p, const capture_state& c, const event_view& v, stream_key key) {
  constexpr int unsupported = 900;
  if (c.members.contains(key) || (v.operand_event != nullptr && v.operand_event->capture == c.id)) return true;
  if (v.event->result != unsupported) return true; // 906 breaks every capture it meets, 902 two of them
  const bool waits = v.call->cls == call_class::sync || v.call->cls == call_class::query;
  const auto named = p.capturing.find(key);
  const bool names_another = named != p.capturing.end() && named->second != &c;
  if (waits && names_another) return false; // breaks the capture it names and no other
  if (c.mode == capture_mode::global || c.thread == v.thread->index) return true;
  // What belongs to another thread and is not global is broken by its streams, or by what is about the whole context.
  return v.call->cls == call_class::context_event || (v.call->cls == call_class::sync && v.event->stream == 0);
}

// The call a status record speaks of may invalidate several captures; this is the one to report: first those it
// invalidated just now, the thread's own before others', then its stream's capture, then the youngest invalidated one.
int preference(const capture_state& c, const event_view& v, capture_status status, stream_key key, bool reached) {
  int points = 0;
  if (status == capture_status::invalidated && !c.culprit_seen && reached) points += 16;
  if (c.members.contains(key)) points += 8;
  if (c.thread == v.thread->index) points += 4;
  if (c.workers.contains(v.thread->index)) points += 2;
  if (status == capture_status::invalidated) points += 1;
  return points;
}

// A capture that began after the call returned, or ended just before, may have a status too.
bool begin_is_missing(const capture_state* c, const trace::capture_status_record& s, const event_view& v) {
  if (c != nullptr || s.begin >= v.event->end) return false;
  const auto& closed = v.process->closed;
  return std::find(closed.begin(), closed.end(), std::pair(s.stream, s.begin)) == closed.end();
}

} // namespace

std::vector<stream_key> capture_state::unjoined() const {
  std::vector<stream_key> out;
  const auto home = members.find(origin);
  if (home == members.end()) return out;
  for (const auto& [key, m] : members) {
    if (key == origin || m.work == 0) continue;
    const auto joined = home->second.reached.find(key);
    if (joined == home->second.reached.end() || joined->second < m.work) out.push_back(key);
  }
  return out;
}

void model::begin_capture(process_state& p, event_view& v) {
  const trace::event& e = *v.event;
  auto c = std::make_unique<capture_state>();
  c->id = ++captures_;
  c->stream = e.stream;
  c->origin = key_of(e.stream, v.call->per_thread, v.thread->index);
  c->begin_ticks = e.begin;
  c->begin_ns = v.at_ns;
  // The first ABI, without a mode argument, always captured in global mode.
  c->mode = static_cast<capture_mode>(std::min<std::uint64_t>(e.arg[0], 2));
  c->thread = v.thread->index;
  c->stack = e.stack;
  c->begun = keep(v);
  c->place = python_place(v.python);
  c->members[c->origin];
  p.capturing[c->origin] = c.get();
  v.capture = c.get();
  v.status = capture_status::active;
  if (on_capture) on_capture(p, *c);
  p.open.push_back(std::move(c));
  p.memory.keep_dead(true);
}

// What the call is about, before its result is looked at.
void model::find_capture(process_state& p, event_view& v, const thread_cursor&) {
  const stream_key key = key_of(v.event->stream, v.call->per_thread, v.thread->index);
  const auto on = p.capturing.find(key);
  if (on != p.capturing.end()) {
    v.capture = on->second;
    v.on_capturing_stream = true;
  } else {
    for (auto it = p.open.rbegin(); it != p.open.rend() && v.capture == nullptr; ++it)
      if ((*it)->thread == v.thread->index) v.capture = it->get();
    if (v.capture == nullptr && !p.open.empty()) v.capture = p.open.back().get();
  }
  if (v.capture != nullptr) {
    v.status = v.capture->invalidated ? capture_status::invalidated : capture_status::active;
    v.after_culprit = v.capture->culprit_seen;
  }
}

// A call that is wrong in itself, such as a launch of no grid, may break the capture of its stream (measured, "in
// capture: launch, invalid value"). It did if the status read right after it says so, and nothing had broken it before.
void model::broke_otherwise(process_state& p, event_view& v, const thread_cursor& records) {
  if (v.event->result == not_ready) return;
  const stream_key key = key_of(v.event->stream, v.call->per_thread, v.thread->index);
  records.each_side_record([&](const side_record& r) {
    if (r.kind != trace::record_kind::capture_status) return;
    const auto s = r.as<trace::capture_status_record>();
    auto* c = const_cast<capture_state*>(p.capture_at(s.stream, s.begin));
    v.names_unknown = v.names_unknown || begin_is_missing(c, s, v);
    if (c == nullptr || s.status != capture_status::invalidated || !c->members.contains(key)) return;
    if (c->invalidated || c->culprit_seen) return;
    c->invalidated = c->culprit_seen = true;
    c->invalidated_ticks = v.event->end;
    v.claimed.push_back(c);
    v.capture = c;
    v.status = s.status;
    v.on_capturing_stream = v.broke_capture = true;
    v.after_culprit = false;
  });
}

// A call that failed while captures were open: which of them it is about, and whether it is the culprit of any.
void model::judge_refusal(process_state& p, event_view& v, const thread_cursor& records) {
  const trace::event& e = *v.event;
  if (!is_capture_result(e.result)) return broke_otherwise(p, v, records);
  const stream_key key = key_of(e.stream, v.call->per_thread, v.thread->index);
  const bool may_claim = !is_cascade(e.result);
  capture_state* best = nullptr;
  capture_status best_status = capture_status::unknown;
  int best_points = -1;
  std::vector<capture_state*> invalidated;
  records.each_side_record([&](const side_record& r) {
    if (r.kind != trace::record_kind::capture_status) return;
    const auto s = r.as<trace::capture_status_record>();
    auto* c = const_cast<capture_state*>(p.capture_at(s.stream, s.begin));
    v.names_unknown = v.names_unknown || begin_is_missing(c, s, v);
    if (c == nullptr) return;
    const bool reached = in_reach(p, *c, v, key);
    const int points = preference(*c, v, s.status, key, reached);
    if (points >= best_points) {
      best = c;
      best_status = s.status;
      best_points = points;
    }
    if (s.status == capture_status::invalidated && reached) invalidated.push_back(c);
  });
  if (best != nullptr) {
    v.capture = best;
    v.status = best_status;
    v.on_capturing_stream = best->members.contains(key);
    v.after_culprit = best->culprit_seen;
  } else if (v.capture != nullptr) {
    v.status = capture_status::unknown; // not recorded
  }
  for (capture_state* c : invalidated) {
    if (!c->invalidated) c->invalidated_ticks = e.end;
    c->invalidated = true;
    if (!may_claim || c->culprit_seen) continue;
    c->culprit_seen = true;
    v.claimed.push_back(c);
  }
  if (!may_claim || !v.claimed.empty()) return;
  // A call of another thread that broke a capture may take its place only after the capture's end: it was under way
  // when that end returned.
  for (const auto& c : p.unexplained) {
    if (c->culprit_seen || e.begin > c->end_ticks || e.end < c->begin_ticks || !in_reach(p, *c, v, key)) continue;
    c->culprit_seen = true;
    v.claimed.push_back(c.get());
    if (best == nullptr) {
      v.capture = c.get();
      v.status = capture_status::invalidated;
      v.on_capturing_stream = c->members.contains(key);
      v.after_culprit = false;
    }
  }
}

void model::end_capture(process_state& p, event_view& v) {
  const stream_key key = key_of(v.event->stream, v.call->per_thread, v.thread->index);
  const auto it = p.capturing.find(key);
  if (it == p.capturing.end()) return;
  capture_state& c = *it->second;
  v.capture = &c;
  v.on_capturing_stream = true;
  if (c.origin != key) return; // refused (903): the capture stays open, to be ended on its own stream
  c.result = v.event->result;
  if (v.event->result == 0) {
    c.nodes = v.event->arg[1];
    graph_state& g = p.graphs[v.event->arg[0]];
    const bool memory_nodes = g.memory_nodes || c.allocates;
    std::vector<node_window> parts = std::move(g.parts);
    if (g.capture != 0 && parts.empty()) parts.push_back({g.begin_ns, std::max(g.end_ns, g.edited_ns), g.nodes});
    if (!parts.empty()) parts.push_back({c.begin_ns, v.at_ns, c.nodes});
    auto children = std::move(g.children);
    g = {};
    g.parts = std::move(parts); // cuStreamBeginCaptureToGraph
    g.children = std::move(children);
    g.capture = c.id;
    g.nodes = c.nodes;
    g.memory_nodes = memory_nodes;
    g.begin_ns = c.begin_ns;
    g.end_ns = v.at_ns;
    g.stack = c.stack;
    g.place = c.place;
    note_capture_end(p, v, c);
  }
  close_capture(p, c, v);
}

void model::close_capture(process_state& p, capture_state& c, event_view& v) {
  c.ended = true;
  c.end_ticks = v.event->end;
  c.end_ns = v.at_ns;
  if (p.closed.size() >= most_closed) p.closed.erase(p.closed.begin());
  p.closed.emplace_back(c.stream, c.begin_ticks);
  std::erase_if(p.capturing, [&](const auto& entry) { return entry.second == &c; });
  if (on_capture) on_capture(p, c);
  const auto it = std::find_if(p.open.begin(), p.open.end(), [&](const auto& o) { return o.get() == &c; });
  if (it == p.open.end()) return;
  const bool unexplained = is_cascade(c.result) && !c.culprit_seen && p.unexplained.size() < most_unexplained;
  (unexplained ? p.unexplained : p.ended_now).push_back(std::move(*it));
  p.open.erase(it);
}

void model::stream_destroyed(process_state& p, event_view& v) {
  const stream_key key = v.event->stream;
  p.streams.erase(key);
  const auto it = p.capturing.find(key);
  if (it == p.capturing.end() || it->second->origin != key) return;
  if (!it->second->invalidated) { // else it is what remains of another fault
    notice n;
    n.what = own_event::capture_abandoned;
    n.about = keep(v);
    n.capture = it->second;
    n.abandoned = abandoned_by::stream_destroy;
    v.notices.push_back(std::move(n));
  }
  event_view at = v;
  close_capture(p, *it->second, at); // its capture is gone with it
}

std::vector<std::pair<process_state*, std::unique_ptr<capture_state>>> model::take_unexplained(std::int64_t ns) {
  std::vector<std::pair<process_state*, std::unique_ptr<capture_state>>> out;
  for (const auto& p : processes_) {
    for (auto& c : p->unexplained) {
      if (c->end_ns > ns) continue;
      out.emplace_back(p.get(), std::move(c));
    }
    std::erase(p->unexplained, nullptr);
  }
  return out;
}

// ---- events and streams of a capture ----

void model::look_at_operand_event(process_state& p, event_view& v) {
  if (p.events.empty()) return;
  const auto it = p.events.find(v.event->arg[0]);
  if (it == p.events.end()) return;
  v.operand_event = &it->second;
  v.operand_open = it->second.capture != 0 && p.capture_by_id(it->second.capture) != nullptr;
}

void model::record_event(process_state& p, event_view& v) {
  const bool external = (v.event->arg[1] & external_flag) != 0;
  event_state now;
  now.external = external;
  if (v.on_capturing_stream && !external) {
    const stream_key key = key_of(v.event->stream, v.call->per_thread, v.thread->index);
    const auto& m = v.capture->members[key];
    now.capture = v.capture->id;
    now.stream = key;
    now.reached = m.reached;
    now.reached[key] = m.work;
  }
  p.events[v.event->arg[0]] = std::move(now);
  v.operand_event = nullptr; // replaced
}

void model::wait_event(process_state& p, event_view& v) {
  if (v.operand_event == nullptr || v.operand_event->capture == 0 || v.operand_event->external) return;
  capture_state* c = p.capture_by_id(v.operand_event->capture);
  if (c == nullptr) return;
  const stream_key key = key_of(v.event->stream, v.call->per_thread, v.thread->index);
  const auto [it, joined_now] = c->members.try_emplace(key);
  if (joined_now) {
    it->second.forked_by = v.thread->index;
    it->second.fork_stack = v.event->stack;
    p.capturing[key] = c;
    v.capture = c;
    v.on_capturing_stream = true;
  }
  merge_into(it->second.reached, v.operand_event->reached);
  c->workers.insert(v.thread->index);
}

void model::count_work(process_state& p, event_view& v) {
  switch (v.call->cls) {
  case call_class::launch:
  case call_class::host_func:
  case call_class::callback:
  case call_class::memcpy:
  case call_class::memset:
  case call_class::mem_op:
  case call_class::prefetch:
  case call_class::attach:
  case call_class::interop:
  case call_class::alloc:
  case call_class::free:
  case call_class::graph_launch:
    break;
  case call_class::event_record:
    v.capture->workers.insert(v.thread->index);
    if ((v.event->arg[1] & external_flag) == 0) return; // no node of its own
    break;
  default:
    return;
  }
  auto& m = v.capture->members[key_of(v.event->stream, v.call->per_thread, v.thread->index)];
  ++m.work;
  ++v.capture->operations;
  v.capture->workers.insert(v.thread->index);
  note_captured(p, v);
}

} // namespace capturesan
