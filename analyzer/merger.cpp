#include "analyzer/merger.h"

#include <algorithm>

namespace capturesan {

namespace {

// For the heap: true if `a` comes after `b`. Equal instants: processes and threads in a fixed order, so that results
// are stable.
bool later(const merged_event& a, const merged_event& b) {
  if (a.at_ns != b.at_ns) return a.at_ns > b.at_ns;
  if (a.file != b.file) return a.file->process().pid > b.file->process().pid;
  return a.cursor->thread_index() > b.cursor->thread_index();
}

} // namespace

bool merger::load_next(merged_event& e) {
  if (!e.cursor->advance()) {
    e.cursor->waiting = false;
    return false;
  }
  const trace::event& event = e.cursor->current();
  traced_process& p = e.file->process();
  e.call = &p.call(event.call);
  e.at_ns = p.to_ns(e.call->order_entry ? event.begin : event.end);
  return true;
}

merged_event merger::take_first() {
  std::pop_heap(heap_.begin(), heap_.end(), later);
  const merged_event e = heap_.back();
  heap_.pop_back();
  return e;
}

void merger::put(const merged_event& e) {
  heap_.push_back(e);
  std::push_heap(heap_.begin(), heap_.end(), later);
}

void merger::collect() {
  for (trace_file* file : files_) {
    for (thread_cursor* c : file->cursors()) {
      if (c->waiting) continue;
      merged_event e{file, c, nullptr, 0};
      if (!load_next(e)) continue;
      c->waiting = true;
      put(e);
    }
  }
}

} // namespace capturesan
