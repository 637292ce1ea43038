#include "interpose/quick.h"

#include "interpose/writer.h"

namespace capturesan::shim {

namespace {

u8& like(thread_state* t, const quick_event& q) {
  const u64 words = q.arg[0] ^ (q.stream << 3) ^ (static_cast<u64>(q.id) << 48);
  return t->like[(words * 0x9e3779b97f4a7c15ull) >> 58];
}

// Whether launches of this graph from there have a stack already.
bool site_known(thread_state* t, const quick_event& q) {
  const u64 site = launch_site(q.arg[0], q.arg[1]);
  if (site != t->last_site) {
    if (!process->launch_sites.contains(site)) {
      return false;
    }
    t->last_site = site;
  }
  return true;
}

// A new record for entries from `begin` on. False if the chunk is full: the next one begins with the event itself.
bool open_record(thread_state* t, u64 begin) {
  if (t->used >= trace::slots_per_chunk) {
    return false;
  }
  auto* r = static_cast<trace::again_record*>(slot_of(t->chunk, t->used));
  *r = {trace::record_kind::again, 1, 0, 0, begin, {}};
  t->chunk->used.store(++t->used, std::memory_order_release);
  t->again_begin = begin;
  t->word = &r->entry[0];
  return true;
}

} // namespace

bool quick_begin_unlike_last(thread_state* t, quick_event& q, call_class c) {
  const own_calls own;
  const u8 slot = may_repeat(c) ? like(t, q) : u8{0};
  q.chunk = t->chunk;
  q.word = nullptr;
  if (slot != 0) {
    const auto* e = static_cast<const trace::event*>(slot_of(t->chunk, slot));
    if (equal(*e, q)) [[likely]] {
      t->last = e;
      q.begin = now_ticks();
      if ((t->word != nullptr && publish_word(t, q, e)) || (open_record(t, q.begin) && publish_word(t, q, e)))
          [[likely]] {
        return true;
      }
    }
  }
  if (c == call_class::graph_launch && !site_known(t, q)) {
    return false;
  }
  q.begin = now_ticks();
  if (may_block(c)) {
    publish(t->chunk, q.id, q.stream, q.arg[0], q.begin);
  }
  return true;
}

quick_result quick_end_whole(thread_state* t, quick_event& q, CUresult result) {
  if (t->chunk != q.chunk) [[unlikely]] {
    return quick_result::eventful;
  }
  if (q.word != nullptr) {
    if (t->word == q.word) {
      __atomic_store_n(q.word, 0, __ATOMIC_RELEASE);
    }
  } else {
    unpublish(t);
  }
  if (!uneventful(result)) {
    return quick_result::eventful;
  }
  q.result = static_cast<std::int32_t>(result);
  return quick_result::whole;
}

void write_quick(thread_state* t, const quick_event& q, call_class c) {
  const own_calls own;
  write_call_name(t, q.id);
  auto* e = static_cast<trace::event*>(reserve_unset(t, 1));
  if (e == nullptr) {
    return;
  }
  e->kind = trace::record_kind::event;
  e->slots = 1;
  e->call = static_cast<u16>(q.id);
  e->result = q.result;
  e->begin = q.begin;
  e->end = q.end;
  e->stream = q.stream;
  e->arg[0] = q.arg[0];
  e->arg[1] = q.arg[1];
  e->arg[2] = q.arg[2];
  e->stack = 0;
  e->flags = 0;
  e->reserved0 = 0;
  e->reserved1 = 0;
  if (may_repeat(c)) {
    like(t, q) = static_cast<u8>(t->used); // of the chunk it came to be in
    t->last = e;
  }
  commit(t, 1);
}

} // namespace capturesan::shim
