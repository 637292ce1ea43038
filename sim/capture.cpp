#include "sim/capture.h"

#include "sim/graph.h"
#include "sim/state.h"
#include "sim/work.h"

#include <algorithm>

namespace capturesan::sim {
namespace {

// Captures that forbid the calling thread what is unsafe. The thread's own mode counts as much as the capture's:
// global: own captures that are not relaxed, and anybody's global ones; thread-local: only the former; relaxed: none.
template <class F>
void for_each_forbidding(F&& act) {
  const auto& self = this_thread();
  if (self.mode == CU_STREAM_CAPTURE_MODE_RELAXED) return;
  for (const auto& open : state().captures) {
    const bool own = open->thread == self.id && open->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool others = open->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && self.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (own || others) act(*open);
  }
}

CUresult refuse_unsafe() {
  bool forbidden = false;
  for_each_forbidding([&](capture& open) {
    open.invalidate();
    forbidden = true;
  });
  return forbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

// The legacy stream waits for every blocking stream of its context, so its use would join their captures.
CUresult admit_legacy(CUcontext context, bool invalidates) {
  CUresult result = CUDA_SUCCESS;
  for (const auto& open : state().captures) {
    const bool joins = std::any_of(open->streams.begin(), open->streams.end(),
                                   [&](CUstream s) { return s->context == context && s->blocking(); });
    if (!joins) continue;
    if (invalidates) open->invalidate();
    result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  return result;
}

CUresult refuse(capture& open) {
  open.invalidate();
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult admit_context_wait(CUcontext context) {
  CUresult result = CUDA_SUCCESS;
  for (const auto& open : state().captures) {
    const bool inside =
        std::any_of(open->streams.begin(), open->streams.end(), [&](CUstream s) { return s->context == context; });
    if (inside) result = refuse(*open);
  }
  return result;
}

CUresult admit_capturing(stream_use use, capture& open) {
  switch (use) {
  case stream_use::work:
    return open.active() ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  case stream_use::wait:
  case stream_use::refused:
  case stream_use::host:
    return refuse(open);
  case stream_use::dropped:
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  case stream_use::none:
  case stream_use::look:
  case stream_use::shape:
    break;
  }
  return CUDA_SUCCESS;
}

CUresult admit_event(event_use use, CUevent event) {
  if (!event || !event->capture) return CUDA_SUCCESS;
  capture& in = *event->capture;
  if (in.over || !in.active()) return CUDA_ERROR_INVALID_VALUE; // its nodes belong to a finished graph, or to none
  if (use == event_use::time) return CUDA_ERROR_CAPTURED_EVENT;
  in.invalidate();
  return CUDA_ERROR_CAPTURED_EVENT;
}

} // namespace

CUresult admit(const answer& call, const call_operands& operands) {
  if (!state().options.refuse) return CUDA_SUCCESS;
  if (call.event != event_use::none)
    for (CUevent event : operands.events)
      if (CUresult r = admit_event(call.event, event)) return r;
  if (state().captures.empty()) return CUDA_SUCCESS;
  if (call.context == context_use::wait)
    if (CUresult r = admit_context_wait(operands.context)) return r;
  bool captured = false;
  if (operands.stream && call.stream != stream_use::none) {
    if (operands.stream->which == CUstream_st::kind::legacy)
      if (CUresult r = admit_legacy(operands.stream->context, call.stream != stream_use::look)) return r;
    captured = operands.stream->capture != nullptr;
    if (captured)
      if (CUresult r = admit_capturing(call.stream, *operands.stream->capture)) return r;
  }
  if (call.safe == safety::unsafe && !captured) return refuse_unsafe();
  return CUDA_SUCCESS;
}

CUresult admit_unsafe() { return state().options.refuse ? refuse_unsafe() : CUDA_SUCCESS; }

void set_tail(CUstream stream, std::vector<dependency> tail) {
  stream->tail = std::move(tail);
  if (stream->capture && stream->capture->origin == stream)
    for (auto& d : stream->tail) d.node->joined = true;
}

void add_to_tail(CUstream stream, const std::vector<dependency>& more) {
  auto tail = stream->tail;
  for (const auto& d : more) {
    const bool known = std::any_of(tail.begin(), tail.end(), [&](const dependency& t) { return t.node == d.node; });
    if (!known) tail.push_back(d);
  }
  set_tail(stream, std::move(tail));
}

CUresult submit(CUstream stream, operation&& work, CUgraphNode* added) {
  if (!stream->capture) return execute_now(work, stream);
  capture& open = *stream->capture;
  if (!open.active()) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  CUgraphNode node = add_node(open.graph, std::move(work), stream->tail);
  node->forked = stream != open.origin;
  set_tail(stream, {{node, {}}});
  if (added) *added = node;
  return CUDA_SUCCESS;
}

CUresult begin_capture(CUstream stream, CUstreamCaptureMode mode, CUgraph into, std::vector<dependency> tail) {
  if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  if (stream->which == CUstream_st::kind::legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
  const auto& all = state().captures;
  const bool busy = into && std::any_of(all.begin(), all.end(), [&](const auto& open) { return open->graph == into; });
  if (busy) return CUDA_ERROR_ILLEGAL_STATE;
  auto fresh = std::make_shared<capture>();
  fresh->id = state().next_capture++;
  fresh->mode = mode;
  fresh->thread = this_thread().id;
  fresh->origin = stream;
  fresh->context = stream->context;
  fresh->owns_graph = into == nullptr;
  fresh->graph = into ? into : new_graph();
  fresh->streams = {stream};
  state().captures.push_back(fresh);
  stream->capture = std::move(fresh);
  set_tail(stream, std::move(tail));
  return CUDA_SUCCESS;
}

namespace {

void finish(const std::shared_ptr<capture>& ended) {
  ended->over = true;
  for (CUstream stream : ended->streams) {
    stream->capture = nullptr;
    stream->tail.clear();
  }
  ended->streams.clear();
  std::erase(state().captures, ended);
}

void discard(const std::shared_ptr<capture>& ended) {
  finish(ended);
  delete_graph(ended->graph); // measured: also one that the program gave
  ended->graph = nullptr;
}

// Work of a forked stream that the origin never waited for.
bool has_unjoined_work(const capture& open) {
  return std::any_of(open.graph->nodes.begin(), open.graph->nodes.end(),
                     [](CUgraphNode n) { return n->forked && !n->joined && n->after.empty(); });
}

// In the order in which a real driver finds out.
CUresult verdict_on(const capture& ended) {
  if (!state().options.refuse) return CUDA_SUCCESS;
  if (!ended.active()) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (has_unjoined_work(ended)) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  const bool own = ended.mode == CU_STREAM_CAPTURE_MODE_RELAXED || ended.thread == this_thread().id;
  return own ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

} // namespace

CUresult end_capture(CUstream stream, CUgraph* result) {
  if (result) *result = nullptr;
  if (!stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
  const auto ended = stream->capture;
  if (ended->origin != stream && state().options.refuse) {
    ended->invalidate();
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  const CUresult verdict = verdict_on(*ended);
  if (verdict || (!result && ended->owns_graph)) { // measured: without room for the graph the capture ends all the same
    discard(ended);
    return verdict;
  }
  finish(ended);
  if (result) *result = ended->graph;
  return CUDA_SUCCESS;
}

CUresult record_event(CUevent event, CUstream stream, unsigned flags) {
  if (event->context != stream->context) return CUDA_ERROR_INVALID_HANDLE;
  if (flags & ~static_cast<unsigned>(CU_EVENT_RECORD_EXTERNAL)) return CUDA_ERROR_INVALID_VALUE;
  const bool external = flags & CU_EVENT_RECORD_EXTERNAL;
  if (!stream->capture) {
    if (external) return CUDA_ERROR_ILLEGAL_STATE; // only within a capture
    note_recorded(event);
    return CUDA_SUCCESS;
  }
  if (external) return submit(stream, record_call{event});
  event->capture = stream->capture;
  event->tail = stream->tail;
  return CUDA_SUCCESS;
}

namespace {

// A stream that captures waits for an event.
CUresult wait_captured(CUstream stream, CUevent event, bool external) {
  capture& open = *stream->capture;
  const bool refuse_any = state().options.refuse;
  if (event->capture && (event->capture->over || !event->capture->active()) && refuse_any) {
    open.invalidate();
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (external) return submit(stream, wait_call{event});
  if (!event->capture) {
    if (!event->recorded || !refuse_any) return CUDA_SUCCESS;
    open.invalidate();
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (event->capture.get() == &open) {
    add_to_tail(stream, event->tail);
    return CUDA_SUCCESS;
  }
  if (!refuse_any) return CUDA_SUCCESS;
  open.invalidate();
  event->capture->invalidate();
  return CUDA_ERROR_STREAM_CAPTURE_MERGE;
}

} // namespace

CUresult wait_event(CUstream stream, CUevent event, unsigned flags) {
  if (flags & ~static_cast<unsigned>(CU_EVENT_WAIT_EXTERNAL)) return CUDA_ERROR_INVALID_VALUE;
  const bool external = flags & CU_EVENT_WAIT_EXTERNAL;
  if (stream->capture) return wait_captured(stream, event, external);
  if (external) return CUDA_ERROR_ILLEGAL_STATE;
  if (!event->capture) return CUDA_SUCCESS;
  capture& in = *event->capture;
  if (in.over || !in.active()) return state().options.refuse ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  if (stream->which == CUstream_st::kind::legacy) { // cannot be captured, so it cannot join
    if (!state().options.refuse) return CUDA_SUCCESS;
    in.invalidate();
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  stream->capture = event->capture;
  in.streams.push_back(stream);
  set_tail(stream, event->tail);
  return CUDA_SUCCESS;
}

void leave_capture(CUstream stream) {
  if (!stream->capture) return;
  const auto open = stream->capture;
  if (open->origin == stream) {
    discard(open);
    return;
  }
  std::erase(open->streams, stream);
  stream->capture = nullptr;
}

} // namespace capturesan::sim
