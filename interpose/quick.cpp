#include "interpose/quick.h"

#include "interpose/writer.h"

namespace capturesan::shim {

namespace {

constexpr u16 entries = sizeof(trace::again_record::entry) / sizeof(u64);

bool equal(const trace::event& e, const quick_event& q) {
  const u64 differs = (e.stream ^ q.stream) | (e.arg[0] ^ q.arg[0]) | (e.arg[1] ^ q.arg[1]) | (e.arg[2] ^ q.arg[2]);
  return differs == 0 && e.call == static_cast<u16>(q.id) && e.result == static_cast<std::int32_t>(q.result);
}

// True if it fits into a word: of an open record, or of one that still fits into the chunk.
bool write_again(thread_state* t, u32 slot, const quick_event& q) {
  const u64 took = q.end - q.begin;
  if (took > trace::again_tick_mask) {
    return false;
  }
  const u64 word = slot | took << (8 + trace::again_tick_bits);
  const u64 since = q.begin - t->again_begin;
  if (t->again != 0 && t->again + 1u == t->used && t->again_entries < entries && since <= trace::again_tick_mask)
      [[likely]] {
    auto* r = static_cast<trace::again_record*>(slot_of(t->chunk, t->again));
    __atomic_store_n(&r->entry[t->again_entries], word | since << 8, __ATOMIC_RELEASE);
    t->again_begin = q.begin;
    if (++t->again_entries == entries) {
      __builtin_prefetch(slot_of(t->chunk, t->used), 1);
    }
    return true;
  }
  if (t->used >= trace::slots_per_chunk) {
    return false; // the next chunk begins with the event itself
  }
  auto* r = static_cast<trace::again_record*>(slot_of(t->chunk, t->used));
  *r = {trace::record_kind::again, 1, 0, 0, q.begin, {word, 0, 0, 0, 0, 0}};
  t->again = static_cast<u16>(t->used);
  t->again_entries = 1;
  t->again_begin = q.begin;
  t->chunk->used.store(++t->used, std::memory_order_release);
  return true;
}

} // namespace

void write_quick(thread_state* t, const quick_event& q) {
  const own_calls own;
  const u64 words = q.arg[0] ^ (q.stream << 3) ^ (static_cast<u64>(q.id) << 48);
  u8& like = t->like[(words * 0x9e3779b97f4a7c15ull) >> 58];
  if (like != 0 && equal(*static_cast<const trace::event*>(slot_of(t->chunk, like)), q) && write_again(t, like, q))
      [[likely]] {
    return;
  }
  auto* e = static_cast<trace::event*>(reserve_unset(t, 1));
  if (e == nullptr) {
    return;
  }
  e->kind = trace::record_kind::event;
  e->slots = 1;
  e->call = static_cast<u16>(q.id);
  e->result = static_cast<std::int32_t>(q.result);
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
  like = static_cast<u8>(t->used); // of the chunk it came to be in
  commit(t, 1);
}

} // namespace capturesan::shim
