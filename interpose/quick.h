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
  u64 value;           // that word without what the call took
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

// Whether it is noted when a repeated call returned. A launch takes its place among the calls of all threads at its
// entry, and reading the clock is half of what recording one costs: at level lite only the entry is noted.
inline bool timed(call_class c) {
  return c != call_class::graph_launch || (attention.load(std::memory_order_relaxed) & attention_full) != 0;
}

inline bool equal(const trace::event& e, const quick_event& q) {
  const u64 differs = (e.stream ^ q.stream) | (e.arg[0] ^ q.arg[0]) | (e.arg[1] ^ q.arg[1]) | (e.arg[2] ^ q.arg[2]);
  return differs == 0 && e.call == static_cast<u16>(q.id);
}

inline constexpr unsigned took_shift = 8 + trace::again_tick_bits;

// Publishes the call as the next entry of the open record: like event `e` of this chunk. False: too long after the one
// before.
inline bool publish_word(thread_state* t, quick_event& q, const trace::event* e) {
  const u64 since = q.begin - t->again_begin;
  if (since > trace::again_tick_mask) [[unlikely]] {
    return false;
  }
  const u64 slot = (reinterpret_cast<u64>(e) - reinterpret_cast<u64>(t->chunk)) / trace::slot_bytes;
  q.result = e->result;
  q.chunk = t->chunk;
  q.word = t->word;
  q.value = slot | since << 8;
  __atomic_store_n(q.word, q.value | trace::again_under_way << took_shift, __ATOMIC_RELEASE);
  return true;
}

// Right before the real call, after `begin` is set. If the thread's chunk has an event of these operands, the entry is
// published as a word that says "under way"; else in the head of the chunk, if the call may block. False: a launch of a
// graph from a place that has no stack yet.
bool quick_begin_unlike_last(thread_state* t, quick_event& q, call_class c);
inline bool quick_begin(thread_state* t, quick_event& q, call_class c) {
  if (may_repeat(c)) {
    const own_calls own;
    const trace::event* e = t->last;
    if (e != nullptr && t->word != nullptr && equal(*e, q)) [[likely]] {
      q.begin = now_ticks();
      if (publish_word(t, q, e)) [[likely]] {
        return true;
      }
    }
  }
  return quick_begin_unlike_last(t, q, c);
}

// Right after it: written as its word; still to be written, whole, once results are read; or something for the long
// way: the call was not uneventful, or the thread is in another process now, or took another chunk meanwhile.
enum class quick_result : u32 { written, whole, eventful };
quick_result quick_end_whole(thread_state* t, quick_event& q, CUresult result);
inline quick_result quick_end(thread_state* t, quick_event& q, CUresult result, call_class c) {
  u64 took = trace::again_untimed;
  if (timed(c)) {
    q.end = now_ticks();
    took = q.end - q.begin;
  }
  const own_calls own;
  // Unless a signal handler has made calls meanwhile and wrote in its place, or behind it.
  if (q.word != nullptr && t->word == q.word && static_cast<std::int32_t>(result) == q.result &&
      took <= trace::again_untimed) [[likely]] {
    __atomic_store_n(q.word, q.value | took << took_shift, __ATOMIC_RELEASE);
    t->again_begin = q.begin;
    u64* next = q.word + 1;
    if (reinterpret_cast<u64>(next) % trace::slot_bytes == 0) [[unlikely]] {
      __builtin_prefetch(next, 1);
      next = nullptr;
    }
    t->word = next;
    return quick_result::written;
  }
  if (!timed(c)) {
    q.end = now_ticks();
  }
  return quick_end_whole(t, q, result);
}

// Writes the event whole.
void write_quick(thread_state* t, const quick_event& q, call_class c);

void write_call_name(thread_state* t, call_id id);

} // namespace capturesan::shim
