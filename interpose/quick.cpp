#include "interpose/quick.h"

#include "interpose/writer.h"

namespace capturesan::shim {

namespace {

constexpr u16 entries = sizeof(trace::again_record::entry) / sizeof(u64);
constexpr u64 under_way = trace::again_tick_mask << (8 + trace::again_tick_bits);

u8& like(thread_state* t, const quick_event& q) {
  const u64 words = q.arg[0] ^ (q.stream << 3) ^ (static_cast<u64>(q.id) << 48);
  return t->like[(words * 0x9e3779b97f4a7c15ull) >> 58];
}

bool equal(const trace::event& e, const quick_event& q) {
  const u64 differs = (e.stream ^ q.stream) | (e.arg[0] ^ q.arg[0]) | (e.arg[1] ^ q.arg[1]) | (e.arg[2] ^ q.arg[2]);
  return differs == 0 && e.call == static_cast<u16>(q.id);
}

trace::again_record* open_record(const thread_state* t) {
  return static_cast<trace::again_record*>(slot_of(t->chunk, t->again));
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

// The next word: of the open record if it has room, else of a new one; null if the chunk is full.
u64* next_word(thread_state* t, const quick_event& q, u64& since) {
  since = q.begin - t->again_begin;
  if (t->again != 0 && t->again + 1u == t->used && t->again_entries < entries && since <= trace::again_tick_mask)
      [[likely]] {
    return &open_record(t)->entry[t->again_entries];
  }
  if (t->used >= trace::slots_per_chunk) {
    return nullptr; // the next chunk begins with the event itself
  }
  since = 0;
  t->again = static_cast<u16>(t->used);
  t->again_entries = 0;
  t->again_begin = q.begin;
  auto* r = open_record(t);
  *r = {trace::record_kind::again, 1, 0, 0, q.begin, {}};
  t->chunk->used.store(++t->used, std::memory_order_release);
  return &r->entry[0];
}

} // namespace

bool quick_begin(thread_state* t, quick_event& q, call_class c) {
  const own_calls own;
  const u8 slot = may_repeat(c) ? like(t, q) : u8{0};
  q.chunk = t->chunk;
  q.word = nullptr;
  if (slot != 0) {
    const auto& e = *static_cast<const trace::event*>(slot_of(t->chunk, slot));
    if (equal(e, q)) [[likely]] {
      q.result = e.result;
      q.begin = now_ticks();
      u64 since = 0;
      q.word = next_word(t, q, since);
      if (q.word != nullptr) [[likely]] {
        __atomic_store_n(q.word, slot | since << 8 | under_way, __ATOMIC_RELEASE);
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

quick_result quick_end(thread_state* t, quick_event& q, CUresult result) {
  q.end = now_ticks();
  if (t->chunk != q.chunk) [[unlikely]] {
    return quick_result::eventful;
  }
  const own_calls own;
  if (q.word != nullptr) [[likely]] {
    const u64 took = q.end - q.begin;
    // Unless a signal handler has made calls meanwhile and wrote in its place, or behind it.
    const bool still_next = q.word == &open_record(t)->entry[t->again_entries] && t->again + 1u == t->used;
    if (still_next && static_cast<std::int32_t>(result) == q.result && took < trace::again_tick_mask) [[likely]] {
      __atomic_store_n(q.word, (*q.word & ~under_way) | took << (8 + trace::again_tick_bits), __ATOMIC_RELEASE);
      t->again_begin = q.begin;
      if (++t->again_entries == entries) {
        __builtin_prefetch(slot_of(t->chunk, t->used), 1);
      }
      return quick_result::written;
    }
    if (still_next) {
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
  }
  commit(t, 1);
}

} // namespace capturesan::shim
