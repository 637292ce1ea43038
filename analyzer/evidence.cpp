#include "analyzer/evidence.h"

#include <algorithm>

namespace capturesan {

namespace {

constexpr std::int64_t always = INT64_MIN; // nothing tells when it began

// Of what the model noticed; facts about several captures or graphs go back to the beginning.
std::int64_t notice_since(const notice& n) {
  switch (n.what) {
  case own_event::operation_dropped:
  case own_event::work_escaped:
  case own_event::first_use:
  case own_event::capture_abandoned:
    return n.capture != nullptr ? n.capture->begin_ns : always;
  case own_event::code_unloaded:
  case own_event::pageable_copy:
    return n.exec != nullptr ? n.exec->begin_ns : always;
  case own_event::build_failed:
    return n.about.at_ns;
  default:
    return always;
  }
}

// What the analyzer says about the trace itself: a gap is the reason, not an objection.
bool is_about_the_trace(event_kind kind) {
  for (const own_event what : {own_event::trace_lost, own_event::uncovered, own_event::deepbind, own_event::unsupported,
                               own_event::cupti_held, own_event::suppression}) {
    if (kind == kind_of(what)) return true;
  }
  return false;
}

// When the first of the facts began that the finding hangs on.
std::int64_t since(const subject& s) {
  const event_view& v = s.view();
  if (s.pointer != nullptr && v.exec != nullptr) {
    std::int64_t at = v.exec->begin_ns;
    if (s.pointer->memory) at = std::min(at, s.pointer->memory->made_ns);
    if (s.pointer->block) at = std::min(at, s.pointer->block->made_ns);
    return at;
  }
  if (s.noticed != nullptr) return notice_since(*s.noticed);
  if (v.capture == nullptr) return always; // one that is not known may have been open
  if (v.operand_event != nullptr && v.operand_event->capture != v.capture->id) return always;
  return v.capture->begin_ns;
}

} // namespace

bool evidence_is_whole(const subject& s) {
  const event_view& v = s.view();
  if (is_about_the_trace(s.kind())) return true;
  if (v.names_unknown || (v.call != nullptr && !v.call->known)) return false;
  const traced_process& t = v.process->trace;
  return !t.may_miss(since(s), v.process->now_ns);
}

} // namespace capturesan
