#include "interpose/window.h"
#include "interpose/cuda_abi.h"
#include "interpose/real.h"
#include "interpose/writer.h"

namespace capturesan::shim {

namespace {

void update_open_count(int change) {
  process_state& p = *process;
  const u32 now =
      p.open_count.fetch_add(static_cast<u32>(change), std::memory_order_acq_rel) + static_cast<u32>(change);
  if (now != 0) {
    attention.fetch_or(attention_window, std::memory_order_acq_rel);
  } else {
    attention.fetch_and(~static_cast<u32>(attention_window), std::memory_order_acq_rel);
    // Another begin may have come between the two lines above.
    if (p.open_count.load(std::memory_order_acquire) != 0) {
      attention.fetch_or(attention_window, std::memory_order_acq_rel);
    }
  }
  if (p.header != nullptr) {
    p.header->open_captures.store(now, std::memory_order_relaxed);
  }
}

u64 current_context() {
  auto* get = driver_function<decltype(cuCtxGetCurrent)>(call_id::cuCtxGetCurrent);
  CUcontext c = nullptr;
  return get != nullptr && get(&c) == CUDA_SUCCESS ? reinterpret_cast<u64>(c) : 0;
}

// The per-thread default stream is another stream on every thread: only its own thread can ask about it.
bool may_ask(const open_capture& c, u32 thread) { return c.stream != per_thread_stream || c.thread == thread; }

trace::capture_status ask(u64 stream) {
  auto* is_capturing = driver_function<decltype(cuStreamIsCapturing)>(call_id::cuStreamIsCapturing);
  CUstreamCaptureStatus status{};
  if (is_capturing == nullptr || is_capturing(reinterpret_cast<CUstream>(stream), &status) != CUDA_SUCCESS) {
    return trace::capture_status::unknown;
  }
  return static_cast<trace::capture_status>(status);
}

} // namespace

void capture_opening() { update_open_count(+1); }

void capture_opened(thread_state* t, bool ok, u64 stream, u64 begin) {
  if (ok) {
    locked guard(process->window_lock);
    for (open_capture& c : process->captures) {
      if (c.used == 0) {
        c = {stream, begin, current_context(), t->index, 1};
        return; // its count stays until it closes
      }
    }
  }
  update_open_count(-1); // refused, or more captures than the table holds
}

void capture_closed(u64 stream) {
  int gone = 0;
  {
    locked guard(process->window_lock);
    for (open_capture& c : process->captures) {
      if (c.used != 0 && c.stream == stream) {
        const trace::capture_status s = ask(stream);
        if (s == trace::capture_status::none || s == trace::capture_status::unknown) {
          c.used = 0;
          ++gone;
        }
        break;
      }
    }
  }
  if (gone != 0) {
    update_open_count(-1);
  }
}

open_capture take_stream_out(u64 stream) {
  open_capture taken{};
  {
    locked guard(process->window_lock);
    for (open_capture& c : process->captures) {
      if (c.used != 0 && c.stream == stream) {
        taken = c;
        c.used = 0;
        break;
      }
    }
  }
  if (taken.used != 0) {
    update_open_count(-1);
  }
  return taken;
}

void put_stream_back(const open_capture& back) {
  if (back.used == 0) {
    return;
  }
  update_open_count(+1);
  locked guard(process->window_lock);
  for (open_capture& c : process->captures) {
    if (c.used == 0) {
      c = back;
      return;
    }
  }
}

bool thread_captures(u32 thread) {
  if (process->open_count.load(std::memory_order_acquire) == 0) {
    return false;
  }
  locked guard(process->window_lock);
  for (const open_capture& c : process->captures) {
    if (c.used != 0 && c.thread == thread) {
      return true;
    }
  }
  return false;
}

void take_context_out(u64 context) {
  int gone = 0;
  {
    locked guard(process->window_lock);
    for (open_capture& c : process->captures) {
      if (c.used != 0 && (context == 0 || c.context == context)) {
        c.used = 0;
        ++gone;
      }
    }
  }
  for (; gone > 0; --gone) {
    update_open_count(-1);
  }
}

void write_statuses(thread_state* t) {
  open_capture open[max_open_captures];
  trace::capture_status status[max_open_captures];
  std::size_t n = 0;
  {
    // Held while asking: a destroy hook takes the stream out under this lock before the real destroy.
    locked guard(process->window_lock);
    for (const open_capture& c : process->captures) {
      if (c.used != 0 && may_ask(c, t->index)) {
        open[n] = c;
        status[n] = ask(c.stream);
        ++n;
      }
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    auto* r = static_cast<trace::capture_status_record*>(reserve(t, 1));
    if (r == nullptr) {
      return;
    }
    r->kind = trace::record_kind::capture_status;
    r->slots = 1;
    r->status = status[i];
    r->stream = open[i].stream;
    r->begin = open[i].begin;
    commit(t, 1);
  }
}

} // namespace capturesan::shim
