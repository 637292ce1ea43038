#include "analyzer/engine.h"

namespace capturesan {

namespace {

constexpr std::size_t most_counters = 65536;

} // namespace

engine::engine(const compiled_rules& rules, finding_store& store)
    : store_(store), for_ok_(event_kind_count()), for_failed_(event_kind_count()) {
  for (const auto& r : rules.rules) {
    if (!r->about.enabled || !r->when) continue;
    for (const event_kind k : r->events) {
      if (r->possible_if_ok) for_ok_[static_cast<std::size_t>(k)].push_back(r.get());
      for_failed_[static_cast<std::size_t>(k)].push_back(r.get());
    }
  }
}

int engine::evaluate(event_view& v, const rule_list& rules) {
  int owner = -1;
  if (!v.call->named) return owner; // nobody can say what it is
  const auto found = [&](int index) {
    if (owner < 0) owner = index;
  };
  for (const rule* r : rules) {
    if (r->needs_full && v.process->trace.level != trace::trace_level::full) continue;
    subject s(v, static_cast<event_kind>(v.call->cls), store_.names());
    switch (r->each) {
    case each_kind::event:
      found(evaluate_subject(*r, s));
      break;
    case each_kind::graph_ptr:
      for (const pointer_use* u : v.pointers) {
        s.pointer = u;
        found(evaluate_subject(*r, s));
      }
      break;
    case each_kind::capture_unjoined:
      if (v.capture == nullptr || v.call->cls != trace::call_class::capture_end) break;
      for (const stream_key k : v.capture->unjoined()) {
        s.fork = &k;
        found(evaluate_subject(*r, s));
      }
      break;
    }
  }
  return owner;
}

int engine::evaluate_subject(const rule& r, const subject& s) {
  if (!holds(*r.when, s)) return -1;
  for (const rule_exception& x : r.exceptions)
    if (!x.expired && x.when && holds(*x.when, s)) return -1;
  if (r.threshold && !over_threshold(r, s)) return -1;
  for (const rule_variant& v : r.variants)
    if (v.when && holds(*v.when, s)) return store_.add(r, s, &v);
  return store_.add(r, s, nullptr);
}

bool engine::over_threshold(const rule& r, const subject& s) {
  std::string key = r.about.id;
  for (const field_id f : r.threshold->per) key += '\n' + show(f, s.get(f));
  if (thresholds_.size() >= most_counters && !thresholds_.contains(key)) return false;
  counter& c = thresholds_[key];
  const std::int64_t now = s.view().at_ns;
  if (c.count == 0 || (r.threshold->within_ns != 0 && now - c.since_ns > r.threshold->within_ns)) c = {0, now};
  return ++c.count >= r.threshold->at_least;
}

// From now on the capture's failures have a cause.
void engine::settle(capture_state& c, int finding) {
  c.culprit_finding = finding;
  for (const cascade_call& w : c.waiting) store_.add_cascade(finding, w);
  c.waiting.clear();
}

// A call that never returned has no result: only what it was asked to do can be judged.
void engine::on_unfinished(event_view& v) {
  rule_list about_pointers;
  for (const rule* r : for_ok_[static_cast<std::size_t>(v.call->cls)])
    if (r->each == each_kind::graph_ptr) about_pointers.push_back(r);
  evaluate(v, about_pointers);
}

void engine::on_failure(event_view& v) {
  if ((v.event->flags & trace::event_unfinished) != 0) return on_unfinished(v);
  if (is_cascade(v.event->result) && v.capture != nullptr) {
    const cascade_call c{v.call->api, v.event->result, store_.thread(*v.process, v.thread->index), 1};
    if (v.capture->culprit_finding >= 0) {
      store_.add_cascade(v.capture->culprit_finding, c);
    } else if (!v.capture->culprit_seen) {
      finding_store::add_cascade(v.capture->waiting, c);
    }
  }
  const int owner = evaluate(v, for_failed_[static_cast<std::size_t>(v.call->cls)]);
  for (capture_state* c : v.claimed) settle(*c, owner);
  if (owner < 0 || is_capture_result(v.event->result)) return;
  // A call that is wrong for another reason, on an event of a capture, invalidates the captures around it.
  for (const auto& c : v.process->open)
    if (!c->invalidated && c->probable_finding < 0 && last_record_of(v) == last_record::ended_capture)
      c->probable_finding = owner;
}

void engine::on_own_event(own_event what, process_state& p, std::int64_t at_ns, const own_facts& facts,
                          capture_state* capture) {
  event_view v;
  v.process = &p;
  v.at_ns = at_ns;
  v.capture = capture;
  v.status = capture != nullptr ? trace::capture_status::invalidated : trace::capture_status::none;
  const event_kind kind = kind_of(what);
  int owner = -1;
  for (const rule* r : for_failed_[static_cast<std::size_t>(kind)]) {
    if (r->each != each_kind::event) continue;
    subject s(v, kind, store_.names());
    s.facts = &facts;
    const int index = evaluate_subject(*r, s);
    if (owner < 0) owner = index;
  }
  if (capture != nullptr) settle(*capture, owner);
}

void engine::on_notice(process_state& p, notice& n) {
  if (n.about.call != nullptr && !n.about.call->named) return;
  event_view v;
  v.process = &p;
  v.capture = n.capture;
  v.exec = n.exec;
  v.at_ns = n.about.at_ns;
  thread_state nobody;
  v.thread = &nobody;
  if (n.about.call != nullptr) {
    v.event = &n.about.event;
    v.call = n.about.call;
    v.python = n.about.python;
    const auto t = p.threads.find(n.about.thread);
    if (t != p.threads.end()) v.thread = &t->second;
    v.is_replay = v.exec != nullptr && v.call->cls == trace::call_class::graph_launch;
  }
  if (v.capture != nullptr)
    v.status = v.capture->invalidated ? trace::capture_status::invalidated : trace::capture_status::active;
  const event_kind kind = kind_of(n.what);
  for (const rule* r : for_failed_[static_cast<std::size_t>(kind)]) {
    if (r->each != each_kind::event) continue;
    subject s(v, kind, store_.names());
    s.noticed = &n;
    evaluate_subject(*r, s);
  }
}

void engine::on_unexplained(process_state& p, capture_state& c) {
  if (c.culprit_seen) return;
  if (c.probable_finding >= 0) return settle(c, c.probable_finding);
  on_own_event(own_event::capture_unexplained, p, c.end_ns, {}, &c);
}

} // namespace capturesan
