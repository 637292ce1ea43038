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

// A call on the short way.
struct quick_event {
  call_id id;
  std::int32_t result; // before the call: that of the event it may equal
  u64* word;           // where it is under way as a word of an `again` record; null: nowhere
  trace::chunk_header* chunk;
  u64 begin, end, stream;
  u64 arg[3];
};

// No attention bit but that of the level is set: started, resolved, no capture, nothing to count.
inline bool nothing_special() {
  return (attention.load(std::memory_order_acquire) & ~static_cast<u32>(attention_full)) == 0;
}

// The calling thread, if it can take the short way. In a forked child the kernel has wiped its state.
inline thread_state* quick_thread() {
  thread_state* t = current_thread;
  return t != nullptr && own_depth == 0 && t->chunk != nullptr ? t : nullptr;
}

inline bool uneventful(CUresult r) { return r == CUDA_SUCCESS || r == CUDA_ERROR_NOT_READY; }

inline u64 launch_site(u64 exec, u64 caller) { return (exec * 0x9e3779b97f4a7c15ull) ^ caller; }

// Of a class: all operands are known before the call, so that it may equal an earlier one.
constexpr bool may_repeat(call_class c) { return c != call_class::event_create && c != call_class::thread_mode; }

// Right before the real call. If the thread's chunk has an event of these operands, the entry is published as a word
// that says "under way"; else in the head of the chunk, if the call may block. False: a launch of a graph from a place
// that has no stack yet.
bool quick_begin(thread_state* t, quick_event& q, call_class c);

// Right after it: written as its word; still to be written, whole, once results are read; or something for the long
// way: the call was not uneventful, or the thread is in another process now, or took another chunk meanwhile.
enum class quick_result : u32 { written, whole, eventful };
quick_result quick_end(thread_state* t, quick_event& q, CUresult result);

// Writes the event whole.
void write_quick(thread_state* t, const quick_event& q, call_class c);

void write_call_name(thread_state* t, call_id id);

} // namespace capturesan::shim
