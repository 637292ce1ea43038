#include "analyzer/model.h"

#include <algorithm>

#include <fmt/format.h>

namespace capturesan {

namespace {

using trace::call_class;

// The special stream handles of cuda.h.
constexpr std::uint64_t null_stream = 0, legacy_stream = 1, per_thread_stream = 2;
constexpr stream_key legacy_key = 1;
constexpr stream_key per_thread_bit = std::uint64_t{1} << 63;

bool names_event(call_class c) {
  switch (c) {
  case call_class::sync:
  case call_class::query:
  case call_class::timing:
  case call_class::stream_wait:
  case call_class::event_record:
  case call_class::context_event:
    return true;
  default:
    return false;
  }
}

memory_kind kind_of_allocation(std::string_view api) {
  if (api == "cuMemAllocManaged") return memory_kind::managed;
  if (api.ends_with("Async")) return memory_kind::pool;
  return memory_kind::device;
}

// What cuCtxDestroy destroys, by its documentation. Memory of pools and mapped memory belong to no context. What the
// reset of a primary context destroys is documented in general words only; taken to be the same.
bool goes_with_context(memory_kind kind, std::string_view api) {
  return kind == memory_kind::device || kind == memory_kind::managed || api == "cuMemAllocHost";
}

// Opened again, the handle of another process gives the same address (measured on an H200); it is unmapped when it has
// been closed as often (documentation of cuIpcCloseMemHandle).
bool opened_again(const process_state& p, std::uint64_t base) {
  const auto a = p.memory.find(base);
  if (!a || a->base != base || a->kind != memory_kind::ipc) return false;
  ++a->opened;
  return true;
}

bool still_open(const process_state& p, std::uint64_t base) {
  const auto a = p.memory.find(base);
  if (!a || a->base != base || a->opened == 0) return false;
  --a->opened;
  return true;
}

} // namespace

bool is_capture_result(int result) { return result >= 900 && result <= 908; }

stream_key key_of(std::uint64_t stream, bool per_thread_variant, std::uint32_t thread) {
  if (stream == per_thread_stream || (stream == null_stream && per_thread_variant)) return per_thread_bit | thread;
  if (stream == null_stream || stream == legacy_stream) return legacy_key;
  return stream;
}

std::string stream_name(const process_state& p, stream_key key) {
  if (key == legacy_key) return "the legacy default stream";
  if ((key & per_thread_bit) != 0) return fmt::format("the default stream of thread {}", key & ~per_thread_bit);
  const auto it = p.streams.find(key);
  if (it == p.streams.end()) return fmt::format("stream {:#x}", key);
  return fmt::format("stream {:#x} ({})", key, it->second.nonblocking ? "non-blocking" : "blocking");
}

stream_kind kind_of_stream(const event_view& v) {
  const stream_key key = key_of(v.event->stream, v.call->per_thread, v.event != nullptr ? v.thread->index : 0);
  if (key == legacy_key) return stream_kind::legacy;
  if ((key & per_thread_bit) != 0) return stream_kind::per_thread;
  const auto it = v.process->streams.find(key);
  if (it == v.process->streams.end()) return stream_kind::unknown;
  return it->second.nonblocking ? stream_kind::nonblocking : stream_kind::blocking;
}

thread_role role_of(const event_view& v) {
  if (v.capture == nullptr) return thread_role::none;
  if (v.capture->thread == v.thread->index) return thread_role::owner;
  return v.capture->workers.contains(v.thread->index) ? thread_role::participant : thread_role::outsider;
}

last_record last_record_of(const event_view& v) {
  if (v.operand_event == nullptr) return last_record::none;
  if (v.operand_event->external) return last_record::external;
  if (v.operand_event->capture == 0) return last_record::eager;
  return v.operand_open ? last_record::open_capture : last_record::ended_capture;
}

pointer_state state_of(const process_state& p, const pointer_use& use, std::int64_t entry_ns) {
  // What goes while the call is under way was there when it was made: a callback may free what it was passed.
  if (!use.memory->live && use.memory->freed_ns > entry_ns) return pointer_state::live;
  if (!use.memory->live) {
    const auto now = p.memory.find(use.address);
    if (!now) return pointer_state::unmapped;
    // Registering moves nothing: what is page-locked again at that address is what was there.
    const bool again = now->kind == memory_kind::registered && use.memory->kind == memory_kind::registered &&
                       now->made_ns > use.memory->freed_ns;
    return again ? pointer_state::live : pointer_state::other_owner;
  }
  if (!use.block || use.block->live) return pointer_state::live;
  // A block of a private pool is kept for the graphs of that pool, whatever the framework says about it. A pool may
  // hand out blocks without a capture too (a warm-up that is part of it, a pool put back into an earlier state), from
  // the same memory of the driver.
  if (use.block->private_pool || p.memory.is_private(*use.memory)) return pointer_state::live;
  return p.blocks.find(use.address) ? pointer_state::other_owner : pointer_state::cached;
}

namespace {

// The legacy default stream waits for all blocking streams, and they for it.
bool ordered(const process_state& p, stream_key first, stream_key second) {
  if (first == second) return true;
  if (first != legacy_key && second != legacy_key) return false;
  const stream_key other = first == legacy_key ? second : first;
  if ((other & per_thread_bit) != 0) return true;
  const auto s = p.streams.find(other);
  return s != p.streams.end() && !s->second.nonblocking;
}

} // namespace

bool launch_may_come_first(const process_state& p, const allocation& dead, stream_key launch) {
  return !dead.live && dead.queued_ns != 0 && !ordered(p, dead.freed_on, launch);
}

capture_state* process_state::capture_by_id(int id) const {
  for (const auto& c : open)
    if (c->id == id) return c.get();
  return nullptr;
}

const capture_state* process_state::capture_at(std::uint64_t stream, std::uint64_t begin) const {
  for (const auto& c : open)
    if (c->stream == stream && c->begin_ticks == begin) return c.get();
  return nullptr;
}

process_state& model::add(trace_file& file) {
  processes_.push_back(std::make_unique<process_state>(file));
  by_file_[&file] = processes_.back().get();
  return *processes_.back();
}

thread_state& model::thread(process_state& p, std::uint32_t index) {
  thread_state& t = p.threads[index];
  t.index = index;
  return t;
}

void model::apply(const merged_event& e, event_view& v) {
  if (e.file != last_file_) {
    last_file_ = e.file;
    last_process_ = by_file_[e.file];
    last_thread_ = nullptr;
  }
  if (last_thread_ == nullptr || last_thread_->index != e.cursor->thread_index()) {
    last_thread_ = &thread(*last_process_, e.cursor->thread_index());
  }
  process_state& p = *last_process_;
  v.process = &p;
  v.thread = last_thread_;
  v.call = e.call;
  v.event = &e.cursor->current();
  v.at_ns = e.at_ns;
  v.capture = nullptr;
  v.status = trace::capture_status::none;
  v.on_capturing_stream = v.after_culprit = v.operand_open = v.is_replay = v.broke_capture = v.names_unknown = false;
  p.now_ns = std::max(p.now_ns, e.at_ns);
  if (!v.call->named) p.trace.gaps.unnamed.add(v.event->begin, v.event->end);
  v.piled_up = v.piled_live = 0;
  v.operand_event = nullptr;
  v.exec = nullptr;
  if (!v.claimed.empty()) v.claimed.clear();
  if (!v.pointers.empty()) v.pointers.clear();
  if (!v.notices.empty()) v.notices.clear();
  if (!p.ended_now.empty()) p.ended_now.clear();
  v.python = v.runtime_call = {};
  v.modules_loaded = 0;
  if (e.cursor->has_side_records()) read_side_records(p, v, *e.cursor);
  if ((v.event->flags & trace::event_unfinished) != 0) { // it has no result yet
    if (v.call->cls == call_class::graph_launch) pending_launch(p, v);
    return;
  }
  apply_call(p, v, *e.cursor);
}

void model::apply_call(process_state& p, event_view& v, const thread_cursor& records) {
  const trace::event& e = *v.event;
  const call_class cls = v.call->cls;
  const bool in_capture = !p.open.empty() || !p.unexplained.empty();
  if (names_event(cls)) look_at_operand_event(p, v);
  if (in_capture) find_capture(p, v, records);
  if (e.result != 0) {
    if (in_capture || records.has_side_records()) judge_refusal(p, v, records);
    apply_failure(p, v);
    return;
  }
  if (v.on_capturing_stream) count_work(p, v);
  if (in_capture) note_beside(p, v);
  if (!p.failed_builds.empty() && !v.on_capturing_stream) work_between(p, v);
  switch (cls) {
  case call_class::capture_begin:
    begin_capture(p, v);
    break;
  case call_class::capture_end:
    end_capture(p, v);
    break;
  case call_class::thread_mode:
    v.thread->mode = static_cast<capture_mode>(std::min<std::uint64_t>(e.arg[0], 2));
    break;
  case call_class::stream_create:
    p.streams[e.arg[0]] = {(e.arg[1] & 1) != 0};
    break;
  case call_class::stream_destroy:
    stream_destroyed(p, v);
    break;
  case call_class::stream_wait:
    wait_event(p, v);
    break;
  case call_class::event_create:
  case call_class::event_destroy:
    p.events.erase(e.arg[0]);
    break;
  case call_class::event_record:
    record_event(p, v);
    break;
  case call_class::memcpy:
  case call_class::memcpy_sync:
  case call_class::memset:
  case call_class::memset_sync:
    if (!v.on_capturing_stream && (!p.table_words.empty() || records.has_side_records())) table_copied(p, v, records);
    break;
  case call_class::sync:
  case call_class::query:
    if (!p.queued_frees.empty()) settle_frees(p, v);
    break;
  case call_class::graph_create:
    p.graphs[e.arg[0]] = {};
    break;
  case call_class::graph_clone:
    graph_cloned(p, v);
    break;
  case call_class::graph_edit:
    // A call that changes a node names only the node.
    (e.arg[0] != 0 ? p.graphs[e.arg[0]].edited_ns : p.node_edited_ns) = v.at_ns;
    if (e.arg[2] != 0 && v.call->cls == call_class::graph_edit) child_added(p, v);
    break;
  case call_class::graph_destroy:
    graph_destroyed(p, v);
    keep_dead_if_needed(p);
    break;
  case call_class::graph_instantiate:
    instantiate(p, v, records);
    break;
  case call_class::graph_update:
    update_exec(p, v, records);
    break;
  case call_class::exec_edit:
    edit_exec(p, v, records);
    break;
  case call_class::graph_launch:
    launch_graph(p, v);
    break;
  case call_class::block_alloc:
  case call_class::block_free:
    block_event(p, v);
    break;
  case call_class::heap_free:
    host_gone(p, v);
    break;
  case call_class::exec_destroy:
    destroy_exec(p, e.arg[0], &v);
    break;
  case call_class::context_create:
  case call_class::context_set:
  case call_class::context_pop:
  case call_class::context_destroy:
  case call_class::context_release:
  case call_class::module_load:
  case call_class::module_unload:
  case call_class::function_get:
    apply_object(p, v);
    break;
  default:
    apply_memory(p, v);
    break;
  }
}

// A call that was refused, or is wrong for another reason.
void model::apply_failure(process_state& p, event_view& v) {
  switch (v.call->cls) {
  case call_class::capture_end:
    end_capture(p, v);
    break;
  case call_class::graph_instantiate:
  case call_class::graph_update:
    build_failed(p, v);
    break;
  case call_class::graph_launch:
    launch_failed(p, v);
    break;
  case call_class::free:
  case call_class::graph_clone:
    memory_event(p, v);
    break;
  default:
    note_refused(v);
    break;
  }
}

// A free in stream order happens when that stream gets there, whatever the host does meanwhile.
void model::queue_free(process_state& p, const event_view& v) {
  constexpr std::size_t most_queued = 4096;
  if (v.call->api != "cuMemFreeAsync") return;
  const auto a = p.memory.find(v.event->arg[0]);
  if (!a || a->base != v.event->arg[0]) return;
  a->queued_ns = p.trace.to_ns(v.event->end);
  a->freed_in = v.thread->context;
  a->freed_on = key_of(v.event->stream, v.call->per_thread, v.thread->index);
  if (!a->in_graph && !p.memory.keeps_dead()) return; // no graph names it
  if (p.queued_frees.size() >= most_queued) p.queued_frees.erase(p.queued_frees.begin());
  p.queued_frees.push_back(a);
}

// The host has waited for a stream, or found it idle: what was freed on it before is freed. Which stream an event is
// of is not recorded at level lite.
void model::settle_frees(process_state& p, const event_view& v) {
  const bool all = v.call->api == "cuCtxSynchronize";
  if (!all && !v.call->api.starts_with("cuStream")) return;
  const stream_key key = key_of(v.event->stream, v.call->per_thread, v.thread->index);
  const std::int64_t entry = p.trace.to_ns(v.event->begin);
  std::erase_if(p.queued_frees, [&](const auto& a) {
    if (a->queued_ns > entry || (all ? a->freed_in != v.thread->context : a->freed_on != key)) return false;
    a->queued_ns = 0;
    p.memory.changed();
    return true;
  });
}

// The copy that the node holds goes on naming what was alive when the child was captured.
void model::child_added(process_state& p, const event_view& v) {
  const auto child = p.graphs.find(v.event->arg[2]);
  if (v.event->arg[0] == 0 || child == p.graphs.end() || child->second.capture == 0) return;
  const graph_state& c = child->second;
  const std::int64_t end = std::max({c.end_ns, c.edited_ns, p.node_edited_ns > c.begin_ns ? p.node_edited_ns : 0});
  graph_state& g = p.graphs[v.event->arg[0]];
  g.children[v.event->arg[1]] = {c.parts.empty() ? c.begin_ns : c.parts.front().begin_ns, end, 0};
  keep_dead_if_needed(p);
}

// Who frees, for the allocations that go with what is destroyed.
allocation model::freed_by(const event_view& v) {
  allocation how;
  how.freed_by = v.call;
  how.freed_stack = v.event->stack;
  how.freed_thread = v.thread->index;
  how.freed_ns = v.at_ns;
  return how;
}

// Contexts, modules and functions.
void model::apply_object(process_state& p, event_view& v) {
  const trace::event& e = *v.event;
  switch (v.call->cls) {
  case call_class::context_create:
    if (v.call->api == "cuDevicePrimaryCtxRetain") {
      p.primary_contexts[e.arg[1]] = e.arg[0];      // retained, not made current
    } else if (v.call->api != "cuGreenCtxCreate") { // nor is a green one
      v.thread->context = e.arg[0];
    }
    break;
  case call_class::context_set:
    v.thread->context = e.arg[0];
    break;
  case call_class::context_pop:
    v.thread->context = 0; // what is below is not recorded
    break;
  case call_class::context_destroy:
    context_gone(p, v, e.arg[0]);
    break;
  case call_class::context_release: {
    // A release only counts down; a reset takes the context's memory with it.
    const auto primary = p.primary_contexts.find(e.arg[0]);
    if (v.call->api != "cuDevicePrimaryCtxReset" || primary == p.primary_contexts.end()) break;
    context_gone(p, v, primary->second);
    break;
  }
  case call_class::module_load:
    p.modules[e.arg[0]] = v.call->api.starts_with("cuModule") ? v.thread->context : 0;
    p.code[e.arg[0]] = e.arg[1];
    break;
  case call_class::module_unload:
    code_unloaded(p, v, e.arg[0], e.arg[0]);
    p.modules.erase(e.arg[0]);
    p.code.erase(e.arg[0]);
    forget_functions(p, e.arg[0]);
    break;
  case call_class::function_get: {
    auto& f = p.functions[e.arg[0]];
    if (!f) f = std::make_shared<function_state>();
    f->module = e.arg[1];
    break;
  }
  default:
    break;
  }
}

// Work on a capturing stream is a node: it allocates and frees when the graph runs, not now.
void model::apply_memory(process_state& p, event_view& v) {
  if (v.on_capturing_stream) return;
  const trace::event& e = *v.event;
  allocation a;
  switch (v.call->cls) {
  case call_class::alloc:
    a.kind = kind_of_allocation(v.call->api);
    break;
  case call_class::host_alloc:
    a.kind = memory_kind::pinned;
    break;
  case call_class::host_register:
    a.kind = memory_kind::registered;
    break;
  case call_class::map:
    a.kind = memory_kind::mapped;
    break;
  case call_class::ipc_open:
    if (opened_again(p, e.arg[0])) return;
    a.kind = memory_kind::ipc;
    break;
  case call_class::free:
  case call_class::host_free:
  case call_class::host_unregister:
  case call_class::ipc_close:
    memory_event(p, v);
    if (v.call->cls == call_class::ipc_close && still_open(p, e.arg[0])) return;
    queue_free(p, v);
    p.memory.remove(e.arg[0], freed_by(v));
    return;
  case call_class::address_reserve:
    p.memory.reserve(e.arg[0], e.arg[1]);
    return;
  case call_class::unmap:
    p.memory.unmap(e.arg[0], e.arg[1], freed_by(v));
    return;
  case call_class::address_free:
    p.memory.release_reservation(e.arg[0]);
    return;
  default:
    return;
  }
  if (e.arg[1] == 0) return;
  if (!p.graph_blocks.empty()) p.graph_blocks.erase(e.arg[0]); // its graph is gone
  a.base = e.arg[0];
  a.size = e.arg[1];
  a.made_by = v.call;
  a.made_stack = e.stack;
  a.made_thread = v.thread->index;
  if (goes_with_context(a.kind, v.call->api)) a.context = v.thread->context;
  a.made_ns = v.at_ns;
  if (a.kind == memory_kind::mapped) {
    p.memory.map(a);
  } else {
    p.memory.add(a);
  }
}

} // namespace capturesan
