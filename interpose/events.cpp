#include "interpose/events.h"

#include "interpose/stack.h"
#include "interpose/window.h"
#include "interpose/writer.h"

namespace capturesan::shim {

void write_foreign_event(thread_state* t, trace::foreign_id id, u64 a, u64 b, u64 c, bool with_stack, u64 begin) {
  if (begin == 0) {
    begin = now_ticks();
  }
  t->busy = 1;
  const auto number = static_cast<std::size_t>(id);
  std::atomic<u8>& named = process->named_calls[number];
  if (named.load(std::memory_order_acquire) == 0) {
    const std::string_view name = trace::foreign_table[number - trace::call_count].symbol;
    trace::payload_record head{};
    head.kind = trace::record_kind::call_name;
    head.aux = static_cast<u16>(number);
    write_payload(t, head, name.data(), name.size());
    named.store(1, std::memory_order_release);
  }
  const u32 stack = with_stack ? record_stack(t) : 0;
  if (auto* e = static_cast<trace::event*>(reserve(t, 1))) {
    e->kind = trace::record_kind::event;
    e->slots = 1;
    e->call = static_cast<u16>(number);
    e->begin = begin;
    e->end = begin;
    e->arg[0] = a;
    e->arg[1] = b;
    e->arg[2] = c;
    e->stack = stack;
    e->flags = window_open() ? u8{trace::event_in_window} : u8{0};
    commit(t, 1);
  }
  t->busy = 0;
}

} // namespace capturesan::shim
