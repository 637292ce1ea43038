// The short way of a call that is always recorded and about which there is nothing to say but that it happened: no
// capture is open, its name and the place of its launch are known, it went well. Everything else takes the long way
// (record.cpp). What a call costs here is what a server pays for each of its replays.
#pragma once

#include "interpose/cuda_abi.h"
#include "interpose/state.h"
#include "trace/call.h"

namespace capturesan::shim {

using trace::call_class;
using trace::call_id;

// Classes whose calls need nothing before or after them but their record.
constexpr bool may_be_quick(call_class c) {
  switch (c) {
  case call_class::sync:
  case call_class::query:
  case call_class::graph_launch:
  case call_class::graph_upload:
  case call_class::event_create:
  case call_class::event_destroy:
  case call_class::thread_mode:
  case call_class::context_set:
    return true;
  default:
    return false;
  }
}

// A call that may wait for the device or for another thread: its entry is published, so that a hang can be seen.
constexpr bool may_block(call_class c) {
  switch (c) {
  case call_class::sync:
  case call_class::memcpy_sync:
  case call_class::memset_sync:
  case call_class::free:
  case call_class::host_free:
  case call_class::graph_launch:
  case call_class::context_destroy:
  case call_class::module_unload:
    return true;
  default:
    return false;
  }
}

inline void publish(trace::chunk_header* c, call_id id, u64 stream, u64 arg, u64 begin) {
  c->pending_call.store(static_cast<u32>(id), std::memory_order_relaxed);
  c->pending_stream.store(stream, std::memory_order_relaxed);
  c->pending_arg.store(arg, std::memory_order_relaxed);
  c->pending_begin.store(begin, std::memory_order_release);
}
inline void unpublish(thread_state* t) {
  if (t->chunk != nullptr) {
    t->chunk->pending_begin.store(0, std::memory_order_relaxed);
  }
}

struct quick_event {
  call_id id;
  CUresult result;
  u64 begin, end, stream;
  u64 arg[3];
};

// No attention bit but that of the level is set: started, resolved, no capture, nothing to count.
inline bool nothing_special() {
  return (attention.load(std::memory_order_acquire) & ~static_cast<u32>(attention_full)) == 0;
}

inline bool same_session(const thread_state* t) {
  return t->session == process->session.load(std::memory_order_relaxed);
}

// The calling thread, if it can take the short way for this call.
inline thread_state* quick_thread(call_id id) {
  thread_state* t = current_thread;
  return t != nullptr && own_depth == 0 && same_session(t) && t->chunk != nullptr &&
                 process->named_calls[static_cast<std::size_t>(id)].load(std::memory_order_acquire) != 0
             ? t
             : nullptr;
}

inline bool uneventful(CUresult r) { return r == CUDA_SUCCESS || r == CUDA_ERROR_NOT_READY; }

inline u64 launch_site(u64 exec, u64 caller) { return (exec * 0x9e3779b97f4a7c15ull) ^ caller; }

// Whether launches of this graph from there have a stack already.
inline bool site_known(thread_state* t, u64 site) {
  if (site == t->last_site) [[likely]] {
    return true;
  }
  if (!process->launch_sites.contains(site)) {
    return false;
  }
  t->last_site = site;
  return true;
}

// Writes the event: as one word if the thread's chunk has one like it, whole otherwise.
void write_quick(thread_state* t, const quick_event& q);

} // namespace capturesan::shim
