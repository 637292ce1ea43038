#include "analyzer/subject.h"

#include <algorithm>
#include <fmt/format.h>

namespace capturesan {

namespace {

field_value number(std::int64_t n) { return {true, n, {}}; }
field_value text(std::string_view s) { return {true, 0, s}; }
template <class E>
field_value word(E e) {
  return number(static_cast<std::int64_t>(e));
}
field_value absent() { return {}; }

// FNV-1a. Generations count in one process, and in one map of it; memory of the host that nobody registered has none.
std::int64_t id_of(const traced_process& t, const allocation& a) {
  std::uint64_t h = 0xcbf29ce484222325ull;
  for (const std::uint64_t part :
       {std::uint64_t{t.pid}, static_cast<std::uint64_t>(t.clock_ns),
        static_cast<std::uint64_t>(a.kind == memory_kind::block), a.generation, a.generation != 0 ? 0 : a.base}) {
    for (int shift = 0; shift < 64; shift += 8) h = (h ^ (part >> shift & 0xff)) * 0x100000001b3ull;
  }
  return static_cast<std::int64_t>(h >> 1);
}

} // namespace

field_value subject::keep(std::string s) const {
  kept_.push_front(std::move(s));
  return text(kept_.front());
}

std::string subject::thread_name(std::uint32_t index) const {
  const auto& threads = view_.process->trace.threads;
  const auto it = threads.find(index);
  if (it == threads.end() || it->second.name.empty()) return fmt::format("thread {}", index);
  // A thread inherits the name of the one that made it: a name that several have says nothing by itself.
  const auto same = [&](const auto& other) { return other.first != index && other.second.name == it->second.name; };
  return std::any_of(threads.begin(), threads.end(), same) ? fmt::format("{} (thread {})", it->second.name, index)
                                                           : it->second.name;
}

std::string subject::kernel_name() const {
  const exec_node& n = view_.exec->nodes[pointer->node];
  if (!n.function) return {};
  return names_ != nullptr ? names_->demangle(n.function->name) : n.function->name;
}

std::string subject::owner_now() const {
  const process_state& p = *view_.process;
  if (pointer->owner().live) return {};
  const auto now = pointer->memory->live ? p.blocks.find(pointer->address) : p.memory.find(pointer->address);
  if (!now || now->made_by == nullptr) return {};
  return fmt::format("{} bytes at {:#x}, allocated by {}", now->size, now->base, now->made_by->api);
}

// The first frame that is neither the driver's nor the CUDA runtime's.
std::string subject::place_of(std::uint32_t stack) const {
  const traced_process& t = view_.process->trace;
  for (const std::uint64_t address : t.stack(stack)) {
    const traced_module* m = t.module_at(address);
    if (m == nullptr) continue;
    const std::string_view name = std::string_view(m->path).substr(m->path.rfind('/') + 1);
    if (name.starts_with("libcuda.so") || name.starts_with("libcudart") || name.starts_with("libcapturesan")) continue;
    return std::string(name);
  }
  return {};
}

// That the program itself did both says nothing: so it is unless somebody is named.
std::string subject::modules_of(const allocation& a) const {
  const std::string made = place_of(a.made_stack), freed = place_of(a.freed_stack);
  const auto& texts = view_.process->trace.texts;
  const auto program = std::find_if(texts.begin(), texts.end(),
                                    [](const traced_text& t) { return t.role == trace::text_role::executable; });
  if (program != texts.end()) {
    const std::string_view path = program->text;
    const std::string_view own = path.substr(path.rfind('/') + 1);
    if ((made.empty() || made == own) && (freed.empty() || freed == own)) return {};
  }
  if (made.empty() && freed.empty()) return {};
  if (freed.empty()) return ", allocated in " + made;
  if (made.empty()) return ", freed in " + freed;
  return made == freed ? ", allocated and freed in " + made : ", allocated in " + made + " and freed in " + freed;
}

bool subject::same_extent() const {
  const allocation& was = pointer->owner();
  if (was.live) return false;
  const process_state& p = *view_.process;
  const auto now = pointer->memory->live ? p.blocks.find(pointer->address) : p.memory.find(pointer->address);
  return now && now->base == was.base && now->size == was.size;
}

bool subject::same_again() const {
  const allocation& was = pointer->owner();
  if (was.live) return false;
  // Whatever its size: a program that allocates as much as each step needs, and compares addresses, is right.
  if (was.kind == memory_kind::block) { // no call stack of blocks is recorded, at most a line
    const auto next = view_.process->blocks.find(pointer->address);
    if (!next || next->base != was.base) return false;
    return was.place == 0 || next->place == 0 || next->place == was.place;
  }
  const auto now = view_.process->memory.find(pointer->address);
  if (!now || now->base != was.base || now->generation == was.generation) return false;
  return was.made_stack == 0 || now->made_stack == 0 || now->made_stack == was.made_stack;
}

// The free was put on a stream, and the launch is not known to come after it: it may run before the free does.
bool subject::may_run_first() const {
  const trace::event& e = *view_.event;
  return launch_may_come_first(*view_.process, pointer->owner(),
                               key_of(e.stream, view_.call->per_thread, view_.thread->index));
}

field_value subject::get(field_id id) const {
  switch (id) {
  case field_id::event_class:
    return word(kind_);
  case field_id::trace_level:
  case field_id::trace_driver:
  case field_id::trace_driver_version:
  case field_id::trace_dropped:
  case field_id::trace_text:
  case field_id::trace_count:
    return trace_field(id);
  case field_id::capture_active:
    return number(view_.capture != nullptr ? 1 : 0);
  case field_id::capture_status:
    return word(view_.capture != nullptr
                    ? view_.status == trace::capture_status::unknown ? 3 : static_cast<int>(view_.status)
                    : 0);
  case field_id::capture_this_stream:
    return number(view_.on_capturing_stream ? 1 : 0);
  case field_id::capture_broken_here:
    return number(view_.broke_capture ? 1 : 0);
  case field_id::graph_made:
    return number(static_cast<std::int64_t>(view_.piled_live));
  case field_id::graph_idle_alike:
    return number(static_cast<std::int64_t>(view_.piled_up));
  case field_id::capture_id:
  case field_id::capture_mode:
  case field_id::capture_stream:
  case field_id::capture_thread:
  case field_id::capture_result:
  case field_id::capture_nodes:
  case field_id::capture_operations:
  case field_id::capture_unjoined_count:
  case field_id::capture_unjoined:
  case field_id::capture_failed_before:
  case field_id::fork_stream:
  case field_id::fork_thread:
    return view_.capture == nullptr ? absent() : capture_field(id);
  case field_id::graph_id:
  case field_id::graph_replay:
  case field_id::graph_nodes:
  case field_id::graph_capture:
  case field_id::graph_name:
    return view_.exec == nullptr ? absent() : graph_field(id);
  case field_id::param_node:
  case field_id::param_node_type:
  case field_id::param_kernel:
  case field_id::param_operand:
  case field_id::param_index:
  case field_id::param_offset:
  case field_id::param_address:
  case field_id::param_certainty:
  case field_id::param_access:
  case field_id::mem_kind:
  case field_id::mem_id:
  case field_id::mem_state:
  case field_id::mem_base:
  case field_id::mem_size:
  case field_id::mem_offset:
  case field_id::mem_allocated_by:
  case field_id::mem_freed_by:
  case field_id::mem_owner_now:
  case field_id::mem_same_again:
  case field_id::mem_same_extent:
  case field_id::mem_free_may_wait:
  case field_id::mem_allocated_in:
  case field_id::mem_freed_in:
  case field_id::mem_modules:
  case field_id::mem_private:
  case field_id::mem_end_proved:
    return pointer == nullptr ? absent() : memory_field(id);
  default:
    return info(id).group == field_group::always ? call_field(id) : notice_field(id);
  }
}

// Fields of the call itself; neutral values where the analyzer speaks for itself.
field_value subject::call_field(field_id id) const {
  if (view_.event == nullptr) {
    const bool is_text = info(id).type == field_type::text;
    return is_text ? text("") : number(0);
  }
  const trace::event& e = *view_.event;
  switch (id) {
  case field_id::event_api:
    return text(view_.call->api);
  case field_id::event_symbol:
    return text(view_.call->symbol);
  case field_id::event_result:
    return number(e.result);
  case field_id::event_duration:
    if ((e.flags & (trace::event_untimed | trace::event_unfinished)) != 0) return absent();
    return number(e.end < e.begin ? 0 : view_.process->trace.to_ns(e.end) - view_.process->trace.to_ns(e.begin));
  case field_id::event_in_window:
    return number((e.flags & trace::event_in_window) != 0 ? 1 : 0);
  case field_id::thread_name:
    return keep(thread_name(view_.thread->index));
  case field_id::thread_mode:
    return word(view_.thread->mode);
  case field_id::thread_role:
    return word(role_of(view_));
  case field_id::stream_name:
    return keep(capturesan::stream_name(*view_.process, key_of(e.stream, view_.call->per_thread, view_.thread->index)));
  case field_id::stream_kind:
    return word(kind_of_stream(view_));
  case field_id::cuda_event_last_record:
    return word(last_record_of(view_));
  default:
    return absent();
  }
}

field_value subject::capture_field(field_id id) const {
  const capture_state& c = *view_.capture;
  switch (id) {
  case field_id::capture_id:
    return number(c.id);
  case field_id::capture_mode:
    return word(c.mode);
  case field_id::capture_stream:
    return keep(capturesan::stream_name(*view_.process, c.origin));
  case field_id::capture_thread:
    return keep(thread_name(c.thread));
  case field_id::capture_result:
    return c.ended ? number(c.result) : absent();
  case field_id::capture_nodes:
    return c.ended ? number(static_cast<std::int64_t>(c.nodes)) : absent();
  case field_id::capture_operations:
    return number(static_cast<std::int64_t>(c.operations));
  case field_id::capture_unjoined_count:
    return number(static_cast<std::int64_t>(c.unjoined().size()));
  case field_id::capture_unjoined: {
    std::string all;
    for (const stream_key k : c.unjoined())
      all += (all.empty() ? "" : ", ") + capturesan::stream_name(*view_.process, k);
    return keep(all.empty() ? "a stream the trace does not show" : all);
  }
  case field_id::capture_failed_before:
    return number(view_.after_culprit ? 1 : 0);
  case field_id::fork_stream:
    return fork == nullptr ? absent() : keep(capturesan::stream_name(*view_.process, *fork));
  case field_id::fork_thread:
    return fork == nullptr ? absent() : keep(thread_name(c.members.at(*fork).forked_by));
  default:
    return absent();
  }
}

field_value subject::graph_field(field_id id) const {
  const exec_state& x = *view_.exec;
  switch (id) {
  case field_id::graph_id:
    return number(x.id);
  case field_id::graph_replay:
    return number(static_cast<std::int64_t>(x.replays));
  case field_id::graph_nodes:
    return number(static_cast<std::int64_t>(x.nodes.size()));
  case field_id::graph_capture:
    return number(x.capture);
  case field_id::graph_name:
    return keep(x.place.empty() ? fmt::format("graph {}", x.id) : fmt::format("graph {} ({})", x.id, x.place));
  default:
    return absent();
  }
}

field_value subject::memory_field(field_id id) const {
  const pointer_use& u = *pointer;
  const exec_node& n = view_.exec->nodes[u.node];
  const allocation& a = u.owner();
  switch (id) {
  case field_id::param_node:
    return number(n.index);
  case field_id::param_node_type:
    return word(n.type);
  case field_id::param_kernel:
    return keep(kernel_name());
  case field_id::param_operand:
    return word(u.role);
  case field_id::param_index:
    return number(u.parameter);
  case field_id::param_offset:
    return number(u.offset);
  case field_id::param_address:
    return number(static_cast<std::int64_t>(u.address));
  case field_id::param_certainty:
    return word(u.sure);
  case field_id::param_access:
    return u.access.empty() ? text("") : keep(", which the kernel uses as an address (" + u.access + ")");
  case field_id::mem_kind:
    return word(a.kind);
  case field_id::mem_id:
    return number(id_of(view_.process->trace, a));
  case field_id::mem_state:
    return word(state_of(*view_.process, u, view_.process->trace.to_ns(view_.event->begin)));
  case field_id::mem_base:
    return number(static_cast<std::int64_t>(a.base));
  case field_id::mem_size:
    return number(static_cast<std::int64_t>(a.size));
  case field_id::mem_offset:
    return number(static_cast<std::int64_t>(u.address - a.base));
  case field_id::mem_allocated_by:
    return text(a.made_by != nullptr ? std::string_view(a.made_by->api) : std::string_view());
  case field_id::mem_freed_by:
    if (a.kind == memory_kind::stack && !a.live)
      return text(a.thread_ended ? "the end of its thread" : "the return of its function");
    return text(a.freed_by != nullptr ? std::string_view(a.freed_by->api) : std::string_view());
  case field_id::mem_owner_now: {
    std::string owner = owner_now();
    return a.live ? text("its allocation") : owner.empty() ? text("nobody") : keep(std::move(owner));
  }
  case field_id::mem_same_again:
    return number(same_again() ? 1 : 0);
  case field_id::mem_same_extent:
    return number(same_extent() ? 1 : 0);
  case field_id::mem_free_may_wait:
    return number(may_run_first() ? 1 : 0);
  case field_id::mem_allocated_in:
    return keep(place_of(a.made_stack));
  case field_id::mem_freed_in:
    return keep(place_of(a.freed_stack));
  case field_id::mem_modules:
    return keep(modules_of(a));
  case field_id::mem_private:
    return number(a.private_pool ? 1 : 0);
  case field_id::mem_end_proved:
    return number(a.end_proved ? 1 : 0);
  default:
    return absent();
  }
}

field_value subject::trace_field(field_id id) const {
  const traced_process& t = view_.process->trace;
  switch (id) {
  case field_id::trace_level:
    return word(t.level);
  case field_id::trace_driver:
    return word(static_cast<std::uint32_t>(t.driver) > 2 ? trace::driver_kind::unknown : t.driver);
  case field_id::trace_driver_version:
    return number(t.driver_version);
  case field_id::trace_dropped:
    return number(static_cast<std::int64_t>(t.lost));
  case field_id::trace_text:
    return facts == nullptr || facts->text.empty() ? absent() : text(facts->text);
  case field_id::trace_count:
    return facts == nullptr || facts->text.empty() ? absent() : number(static_cast<std::int64_t>(facts->count));
  default:
    return absent();
  }
}

} // namespace capturesan
