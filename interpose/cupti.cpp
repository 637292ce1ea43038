#include "interpose/cupti.h"

#include <dlfcn.h>

#include "interpose/window.h"
#include "interpose/writer.h"

namespace capturesan::shim {

namespace {

// The few declarations of cupti_callbacks.h that are needed; the layouts are stable since CUDA 8.
using subscriber_handle = void*;
using callback_fn = void (*)(void* user, int domain, u32 callback_id, const void* data);
using subscribe_fn = int (*)(subscriber_handle*, callback_fn, void*);
using unsubscribe_fn = int (*)(subscriber_handle);
using enable_domain_fn = int (*)(u32 enable, subscriber_handle, int domain);
using enable_callback_fn = int (*)(u32 enable, subscriber_handle, int domain, u32 callback_id);
using callback_name_fn = int (*)(int domain, u32 callback_id, const char** name);
constexpr int domain_driver_api = 1;                                  // CUPTI_CB_DOMAIN_DRIVER_API
constexpr int domain_runtime_api = 2;                                 // CUPTI_CB_DOMAIN_RUNTIME_API
constexpr int domain_resource = 3;                                    // CUPTI_CB_DOMAIN_RESOURCE
constexpr int site_enter = 0;                                         // CUPTI_API_ENTER
constexpr u32 module_loaded = 6, node_created = 13, node_cloned = 20; // CUPTI_CBID_RESOURCE_...
constexpr int multiple_subscribers = 39;

struct callback_data { // begin of CUpti_CallbackData
  int site;
  const char* function_name;
};

struct subscriber_params { // CUpti_SubscriberParams of cuptiSubscribe_v2
  std::size_t bytes;
  const char* name;
  char* old_name;
  std::size_t old_name_bytes;
};
using subscribe_v2_fn = int (*)(subscriber_handle*, callback_fn, void*, subscriber_params*);

// process_state::cupti_slot
enum slot_state : u32 { slot_free = 0, slot_changing = 1, slot_held = 2, slot_given_up = 3 };
constexpr u32 most_refusals = 16; // then it is not asked for any more

constexpr u32 max_callbacks = 2048;
std::atomic<u64> cupti_counts[max_callbacks];
std::atomic<u32> counting;
void* library;
subscriber_handle subscriber;

void count_callback(void*, int domain, u32 id, const void* data) {
  if (domain == domain_driver_api && id < max_callbacks && *static_cast<const int*>(data) == site_enter &&
      counting.load(std::memory_order_relaxed) != 0 && !inside_own_calls()) {
    cupti_counts[id].fetch_add(1, std::memory_order_relaxed);
  }
}

// On the thread that made the call, before and after it.
void window_callback(void*, int domain, u32 id, const void* data) {
  if (inside_own_calls() || process == nullptr || options.off) {
    return;
  }
  const errno_keeper keep;
  if (domain == domain_resource && id != module_loaded) {
    process->cupti_nodes_created.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  thread_state* t = enter_thread();
  if (t == nullptr) {
    return;
  }
  if (domain == domain_resource) {
    ++t->modules_loaded;
  } else if (domain == domain_runtime_api) {
    const auto* call = static_cast<const callback_data*>(data);
    t->runtime_call = call->site == site_enter ? call->function_name : nullptr;
    t->runtime_window = process->cupti_windows.load(std::memory_order_relaxed);
  }
}

void* find_library(bool loaded_only) {
  using dlopen_fn = void* (*)(const char*, int);
  auto open = reinterpret_cast<dlopen_fn>(libc_dlsym(RTLD_NEXT, "dlopen"));
  if (open == nullptr) {
    return nullptr;
  }
  static const char* const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
  for (const int extra : {static_cast<int>(RTLD_NOLOAD), 0}) {
    for (const char* name : names) {
      if (void* l = open(name, RTLD_LAZY | extra)) {
        return l;
      }
    }
    if (loaded_only) {
      break;
    }
  }
  return nullptr;
}

template <class Fn>
Fn symbol(const char* name) {
  return reinterpret_cast<Fn>(libc_dlsym(library, name));
}

// Who holds the slot, as CUPTI tells from 13.0 on.
void write_holder(thread_state* t) {
  char name[128] = "";
  if (auto ask = symbol<subscribe_v2_fn>("cuptiSubscribe_v2")) {
    subscriber_params p{sizeof p, "CaptureSan", name, sizeof name};
    subscriber_handle got = nullptr;
    if (ask(&got, window_callback, nullptr, &p) == 0) { // given back in this very moment
      if (auto leave = symbol<unsubscribe_fn>("cuptiUnsubscribe")) {
        leave(got);
      }
      return;
    }
    name[sizeof(name) - 1] = 0;
  }
  write_text(t, trace::text_role::cupti_holder, multiple_subscribers, name[0] != 0 ? name : "another client");
}

// `unavailable` says that CUPTI was asked for: a trace without it is incomplete then.
void note_missing(thread_state* t, trace::cupti_state otherwise) {
  if (options.cupti == cupti_use::require) {
    if (process->header->cupti.exchange(trace::cupti_state::unavailable) != trace::cupti_state::unavailable) {
      write_text(t, trace::text_role::note, 0, "--cupti=require: CUPTI was not to be had");
    }
  } else {
    process->header->cupti.store(otherwise);
  }
}

// The slot's next state.
slot_state take_slot(thread_state* t) {
  const bool required = options.cupti == cupti_use::require;
  if (library == nullptr) {
    // The search allocates, so it is made anew only if an object has been loaded since the last one.
    static std::atomic<u64> searched_at{0};
    const u64 loaded = objects_loaded();
    if (required || loaded == 0 || searched_at.exchange(loaded, std::memory_order_relaxed) != loaded) {
      library = find_library(!required);
    }
  }
  if (library == nullptr) {
    if (required) {
      note_missing(t, trace::cupti_state::off);
      return slot_given_up;
    }
    return slot_free; // the process may load one before its next capture
  }
  auto subscribe = symbol<subscribe_fn>("cuptiSubscribe");
  auto domain = symbol<enable_domain_fn>("cuptiEnableDomain");
  auto one = symbol<enable_callback_fn>("cuptiEnableCallback");
  if (subscribe == nullptr || domain == nullptr || one == nullptr) {
    note_missing(t, trace::cupti_state::off);
    return slot_given_up;
  }
  process->cupti_windows.fetch_add(1, std::memory_order_relaxed);
  const int r = subscribe(&subscriber, window_callback, nullptr);
  if (r == multiple_subscribers) {
    if (process->cupti_refusals.fetch_add(1, std::memory_order_relaxed) == 0) {
      write_holder(t);
    }
    note_missing(t, trace::cupti_state::held);
    return process->cupti_refusals.load(std::memory_order_relaxed) < most_refusals ? slot_free : slot_given_up;
  }
  if (r != 0) {
    note_missing(t, trace::cupti_state::off);
    return slot_given_up;
  }
  domain(1, subscriber, domain_runtime_api);
  for (const u32 id : {module_loaded, node_created, node_cloned}) {
    one(1, subscriber, domain_resource, id);
  }
  if (process->header->cupti.load() == trace::cupti_state::off) {
    process->header->cupti.store(trace::cupti_state::on);
  }
  return slot_held;
}

} // namespace

void cupti_window_opens(thread_state* t) {
  if (options.cupti == cupti_use::off || options.cupti == cupti_use::verify || process->header == nullptr ||
      t->busy != 0) {
    return;
  }
  u32 expected = slot_free;
  if (!process->cupti_slot.compare_exchange_strong(expected, slot_changing, std::memory_order_acq_rel)) {
    return; // held already, being given back by another thread, or given up
  }
  t->busy = 1;
  const slot_state now = take_slot(t);
  t->busy = 0;
  process->cupti_slot.store(now, std::memory_order_release);
}

void cupti_after_call() {
  if (process->cupti_slot.load(std::memory_order_relaxed) != slot_held || window_open()) {
    return;
  }
  u32 expected = slot_held;
  if (!process->cupti_slot.compare_exchange_strong(expected, slot_changing, std::memory_order_acq_rel)) {
    return;
  }
  if (auto leave = symbol<unsubscribe_fn>("cuptiUnsubscribe")) {
    leave(subscriber);
  }
  process->cupti_slot.store(slot_free, std::memory_order_release);
}

void write_cupti_facts(call_frame& f) {
  thread_state* t = f.t;
  if (t->modules_loaded != 0) {
    write_text(t, trace::text_role::loaded, t->modules_loaded, "");
    t->modules_loaded = 0;
  }
  // Captured work that went well names nobody in a finding, and there is much of it.
  const bool plain = f.result == CUDA_SUCCESS && f.when == trace::record_when::window;
  // A call during which the slot was given back never reported its end: what it left holds for its own window alone.
  if (t->runtime_call != nullptr && !plain && process->cupti_slot.load(std::memory_order_relaxed) == slot_held &&
      t->runtime_window == process->cupti_windows.load(std::memory_order_relaxed)) {
    write_text(t, trace::text_role::runtime_call, 0, t->runtime_call);
  }
  if (f.cls == call_class::capture_end) {
    if (const u64 n = process->cupti_nodes_created.exchange(0, std::memory_order_relaxed); n != 0) {
      write_text(t, trace::text_role::graph_nodes, n, "");
    }
  }
}

void cupti_start(thread_state* t) {
  static std::atomic<u32> begun;
  if (options.cupti != cupti_use::verify || begun.exchange(1) != 0) {
    return;
  }
  library = find_library(false);
  trace::cupti_state state = trace::cupti_state::unavailable;
  if (library != nullptr) {
    auto subscribe = symbol<subscribe_fn>("cuptiSubscribe");
    auto enable = symbol<enable_domain_fn>("cuptiEnableDomain");
    const int r = subscribe == nullptr || enable == nullptr ? -1 : subscribe(&subscriber, count_callback, nullptr);
    if (r == 0 && enable(1, subscriber, domain_driver_api) == 0) {
      state = trace::cupti_state::on;
    } else if (r == multiple_subscribers) {
      state = trace::cupti_state::held;
    }
  }
  process->header->cupti.store(state);
  if (state == trace::cupti_state::on) {
    for (std::atomic<u64>& c : process->counts) {
      c.store(0, std::memory_order_relaxed);
    }
    counting.store(1, std::memory_order_release);
  } else {
    write_text(t, trace::text_role::note, 0, "--cupti=verify: CUPTI could not be subscribed");
  }
}

void cupti_finish() {
  if (counting.exchange(0) == 0) {
    return;
  }
  thread_state* t = enter_thread();
  if (t == nullptr || t->busy != 0) {
    return;
  }
  const own_calls own;
  t->busy = 1;
  auto name_of = symbol<callback_name_fn>("cuptiGetCallbackName");
  for (u32 i = 0; name_of != nullptr && i < max_callbacks; ++i) {
    const u64 n = cupti_counts[i].load(std::memory_order_relaxed);
    const char* name = nullptr;
    if (n != 0 && name_of(domain_driver_api, i, &name) == 0 && name != nullptr) {
      write_text(t, trace::text_role::cupti_count, n, name);
    }
  }
  for (std::size_t i = 0; i < trace::call_count; ++i) {
    const u64 n = process->counts[i].load(std::memory_order_relaxed);
    // CUPTI has no callback for cuGetExportTable (580.159: 28 calls by the runtime, none reported).
    if (n != 0 && static_cast<call_id>(i) != call_id::cuGetExportTable) {
      write_text(t, trace::text_role::hook_count, n, trace::call_table[i].symbol.data());
    }
  }
  t->busy = 0;
  // Not unsubscribed: the library's own exit handlers may have run.
}

} // namespace capturesan::shim
