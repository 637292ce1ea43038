// What a hook does around the real call, whatever the call is.
#include "interpose/blocks.h"
#include "interpose/cupti.h"
#include "interpose/driver_facts.h"
#include "interpose/functions.h"
#include "interpose/graph_walk.h"
#include "interpose/hook.h"
#include "interpose/host_memory.h"
#include "interpose/pointer_tables.h"
#include "interpose/poison.h"
#include "interpose/python.h"
#include "interpose/registered.h"
#include "interpose/stack.h"
#include "interpose/window.h"
#include "interpose/writer.h"

namespace capturesan::shim {

namespace {

// 900-908: the results that only a capture can cause.
bool is_refusal(CUresult r) {
  return r >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && r <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

bool wanted(call_frame& f) {
  const bool window = f.in_window || window_open();
  if (window && is_refusal(f.result)) {
    return true;
  }
  if (f.cls == call_class::context_set) {
    // Frameworks set the same context again and again; only a change is news.
    if (f.result != CUDA_SUCCESS || f.arg[0] == f.t->context) {
      return f.result != CUDA_SUCCESS;
    }
    f.t->context = f.arg[0];
    return true;
  }
  // These change it too; which one is current afterwards the next call that sets one will tell.
  if (f.cls == call_class::context_pop || f.cls == call_class::context_create || f.cls == call_class::context_destroy) {
    f.t->context = unknown_context;
  }
  switch (f.when) {
  case trace::record_when::always:
    return true;
  case trace::record_when::window:
    return window || options.full || f.first_launch;
  case trace::record_when::refused:
    return false;
  }
  return false;
}

bool wants_stack(const call_frame& f) {
  if (f.in_window || (f.result != CUDA_SUCCESS && f.result != CUDA_ERROR_NOT_READY)) {
    return true;
  }
  switch (f.cls) {
  case call_class::alloc:
  case call_class::free:
  case call_class::host_alloc:
  case call_class::host_free:
  case call_class::host_register:
  case call_class::host_unregister:
  case call_class::ipc_open:
  case call_class::ipc_close:
  case call_class::map:
  case call_class::unmap:
  case call_class::pool_destroy:
  case call_class::capture_begin:
  case call_class::capture_end:
  case call_class::graph_instantiate:
  case call_class::graph_update:
  case call_class::exec_destroy:
  case call_class::module_unload:
    return true;
  case call_class::graph_launch: {
    const u64 site = launch_site(f.arg[0], f.caller);
    const bool repeated = site == f.t->last_site;
    f.t->last_site = site;
    return !repeated && process->launch_sites.insert(site);
  }
  default:
    return false;
  }
}

// Python frames cost ten times a native stack: only where a finding may begin, not for every captured launch.
bool wants_python(const call_frame& f) {
  if (f.result != CUDA_SUCCESS && f.result != CUDA_ERROR_NOT_READY) {
    return f.in_window;
  }
  switch (f.cls) {
  case call_class::capture_begin:
  case call_class::capture_end:
  case call_class::graph_instantiate:
    return true;
  case call_class::alloc:
  case call_class::free:
    return f.in_window || options.full;
  default:
    return false;
  }
}

// Bytes of the allocation that begins there; 0 if the driver does not say.
u64 size_at(u64 address) {
  auto* get = driver_function<decltype(cuMemGetAddressRange_v2)>(call_id::cuMemGetAddressRange_v2);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  return get != nullptr && get(&base, &bytes, address) == CUDA_SUCCESS ? bytes : 0;
}

bool takes_to_device(call_id id) {
  return id == call_id::cuMemcpyHtoD_v2 || id == call_id::cuMemcpyHtoD_v2_ptds || id == call_id::cuMemcpyHtoDAsync_v2 ||
         id == call_id::cuMemcpyHtoDAsync_v2_ptsz;
}

// Programs of the CUDA runtime pass a descriptor, which names the fatbin. The driver has read it, so it can be read
// here.
u64 code_behind(u64 image) {
  struct descriptor { // __fatDeviceText of fatbinary_section.h
    u32 magic, version;
    u64 code;
  };
  constexpr u32 descriptor_magic = 0x466243b1;
  if (image == 0 || image % alignof(u32) != 0) {
    return image;
  }
  descriptor d{};
  std::memcpy(&d.magic, reinterpret_cast<const void*>(image), sizeof(d.magic));
  if (d.magic != descriptor_magic) {
    return image;
  }
  std::memcpy(&d, reinterpret_cast<const void*>(image), sizeof(d));
  return d.code;
}

// Records that belong to the event and come before it.
void write_details(call_frame& f, u8& flags) {
  bool cut = false;
  if (f.result == CUDA_SUCCESS) {
    switch (f.cls) {
    case call_class::capture_end:
      f.arg[1] = node_count(reinterpret_cast<CUgraph>(f.arg[0]));
      break;
    case call_class::graph_instantiate:
    case call_class::graph_update:
      describe_framework(f.t);
      if (f.cls == call_class::graph_instantiate) {
        exec_made();
      }
      forget_host_ranges(f.arg[0]);
      cut = !write_graph(f.t, f.arg[0], reinterpret_cast<CUgraph>(f.arg[1]));
      break;
    case call_class::ipc_open:
      f.arg[1] = size_at(f.arg[0]);
      note_device_memory(f.arg[0], f.arg[1]);
      break;
    case call_class::host_register:
      note_registered(f.arg[0], f.arg[1]);
      break;
    case call_class::host_unregister:
      note_unregistered(f.arg[0]);
      break;
    case call_class::alloc:
    case call_class::map:
      note_device_memory(f.arg[0], f.arg[1]);
      break;
    case call_class::memcpy:
    case call_class::memcpy_sync:
      if (takes_to_device(f.id)) {
        write_pointer_table(f.t, f.arg[0], f.arg[1], f.arg[2]);
      }
      break;
    case call_class::exec_edit:
      write_edited_node(f.t, f.arg[0], f.arg[1], f.edit);
      break;
    case call_class::launch:
      if (options.full && f.arg[0] != 0) {
        write_launch_parameters(f.t, {reinterpret_cast<CUfunction>(f.arg[0]), nullptr}, f.arrays[0], f.arrays[1], cut);
      }
      break;
    case call_class::module_load:
      f.arg[1] = code_behind(f.arg[1]);
      break;
    case call_class::function_get:
      if (f.arg[2] != 0) { // address of the name
        write_text(f.t, trace::text_role::function_name, f.arg[0], reinterpret_cast<const char*>(f.arg[2]));
      }
      break;
    default:
      break;
    }
  }
  if (f.cls == call_class::function_get) {
    f.arg[2] = 0;
  }
  if (f.result != CUDA_SUCCESS && f.result != CUDA_ERROR_NOT_READY && window_open()) {
    write_statuses(f.t);
  }
  if (f.in_window) {
    write_cupti_facts(f);
  }
  if (cut) {
    flags = static_cast<u8>(flags | trace::event_truncated);
  }
}

void write_event(call_frame& f) {
  write_call_name(f.t, f.id);
  u8 flags = 0;
  if (f.in_window) {
    flags = static_cast<u8>(flags | trace::event_in_window);
  }
  if (f.first_launch) {
    flags = static_cast<u8>(flags | trace::event_eager_first);
  }
  write_details(f, flags);
  const u32 stack = wants_stack(f) ? record_stack(f.t) : 0;
  if (wants_python(f)) {
    write_python_stack(f.t);
  }
  auto* e = static_cast<trace::event*>(reserve(f.t, 1));
  if (e == nullptr) {
    return;
  }
  e->kind = trace::record_kind::event;
  e->slots = 1;
  e->call = static_cast<u16>(f.id);
  e->result = static_cast<std::int32_t>(f.result);
  e->begin = f.begin;
  e->end = f.end;
  e->stream = f.stream;
  e->arg[0] = f.arg[0];
  e->arg[1] = f.cls == call_class::graph_launch ? f.caller : f.arg[1];
  e->arg[2] = f.arg[2];
  e->stack = stack;
  e->flags = flags;
  commit(f.t, 1);
}

void keep_window_state(call_frame& f) {
  switch (f.cls) {
  case call_class::capture_begin:
    capture_opened(f.t, f.result == CUDA_SUCCESS, f.stream, f.begin);
    break;
  case call_class::stream_destroy:
    if (f.result != CUDA_SUCCESS) {
      put_stream_back(f.taken);
    }
    break;
  default:
    break;
  }
}

} // namespace

void write_call_name(thread_state* t, call_id id) {
  if (t->last_call == static_cast<u32>(id) + 1) {
    return;
  }
  t->last_call = static_cast<u32>(id) + 1;
  std::atomic<u8>& done = process->named_calls[static_cast<std::size_t>(id)];
  if (done.load(std::memory_order_acquire) != 0) {
    return;
  }
  const std::string_view name = trace::info(id).symbol;
  trace::payload_record head{};
  head.kind = trace::record_kind::call_name;
  head.aux = static_cast<u16>(id);
  write_payload(t, head, name.data(), name.size());
  // Only now: an event of another thread must never be visible before the name of its call. Two threads may both write
  // it.
  done.store(1, std::memory_order_release);
}

CUresult missing_entry_point(call_id) {
  return (attention.load(std::memory_order_relaxed) & attention_unresolved) == 0 ? CUDA_ERROR_NOT_SUPPORTED
                                                                                 : CUDA_ERROR_NOT_INITIALIZED;
}

bool launched_before(u64 function) {
  // Direct-mapped cache of what `launched` holds for sure.
  static std::atomic<u64> cache[1024];
  std::atomic<u64>& line = cache[mix(function) % 1024];
  const process_state* p = process;
  if (p == nullptr) {
    return true; // inert
  }
  if (line.load(std::memory_order_relaxed) == (function ^ p->session.load(std::memory_order_relaxed))) [[likely]] {
    return true;
  }
  if (!p->launched.contains(function)) {
    return false;
  }
  line.store(function ^ p->session.load(std::memory_order_relaxed), std::memory_order_relaxed);
  return true;
}

bool enter_call(call_frame& f) {
  const errno_keeper keep;
  // Both bits clear: started and resolved. The usual case looks at nothing else.
  if ((attention.load(std::memory_order_acquire) & (attention_unresolved | attention_off)) != 0) {
    start();
    if (!resolve_driver() || options.off) {
      return false;
    }
  }
  f.t = enter_thread(f.entry);
  return f.t != nullptr;
}

void before_call(call_frame& f) {
  const errno_keeper keep;
  const own_calls own;
  count_call(f.id);
  f.in_window = window_open();
  f.begin = now_ticks();
  switch (f.cls) {
  case call_class::capture_begin:
    if (!f.in_window) {
      cupti_window_opens(f.t);
    }
    capture_opening();
    break;
  case call_class::stream_destroy:
    f.taken = take_stream_out(f.stream);
    break;
  case call_class::context_destroy:
    take_context_out(f.arg[0]);
    break;
  case call_class::exec_destroy:
    forget_host_ranges(f.arg[0]);
    break;
  case call_class::free:
    if (options.poison) {
      poison_before_free(f);
    }
    break;
  default:
    break;
  }
  if (may_block(f.cls) && f.t->chunk != nullptr) {
    publish(f.t->chunk, f.id, f.stream, f.arg[0], f.begin);
  }
  if (f.cls == call_class::launch && !f.in_window) {
    f.first_launch = f.arg[0] != 0 && process->launched.insert(f.arg[0]);
  }
}

void after_call(call_frame& f) {
  const errno_keeper keep;
  const own_calls own;
  if (f.t->session == 0 || f.t->session != process->session.load(std::memory_order_relaxed)) {
    return; // the call forked (a host callback): another process, another file
  }
  if (may_block(f.cls)) {
    unpublish(f.t);
  }
  if (f.t->busy != 0) {
    count_lost(trace::lost_why::none, 1);
    return;
  }
  keep_window_state(f);
  if (f.cls == call_class::module_unload) {
    forget_layouts();
  }
  if (f.cls == call_class::capture_info) {
    note_capture_answer(f.t, f.result == CUDA_SUCCESS && f.arg[0] == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  }
  if (f.cls == call_class::exec_destroy && f.result == CUDA_SUCCESS) {
    exec_gone();
  }
  if (f.cls == call_class::alloc && options.poison && f.result == CUDA_SUCCESS && !f.in_window) {
    poison_allocated(f.arg[0], f.arg[1]);
  }
  if (f.id == call_id::cuInit && f.result == CUDA_SUCCESS) {
    describe_driver();
    cupti_start(f.t);
  }
  if (f.result == CUDA_ERROR_DEINITIALIZED) {
    uncount_call(f.id); // CUPTI is silent once the driver has shut down
  }
  if (wanted(f)) {
    f.t->busy = 1;
    write_event(f);
    f.t->busy = 0;
  }
  if (f.cls == call_class::capture_end) {
    capture_closed(f.stream); // after write_event: statuses of a refused end are read while it is still in the table
  }
  if (f.cls == call_class::context_release && f.result == CUDA_SUCCESS && f.id != call_id::cuDevicePrimaryCtxRelease) {
    take_context_out(0); // whatever captured in it is gone
  }
  cupti_after_call();
}

} // namespace capturesan::shim
