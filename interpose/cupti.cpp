#include "interpose/cupti.h"

#include <dlfcn.h>

#include "interpose/writer.h"

namespace capturesan::shim {

namespace {

// The few declarations of cupti.h that are needed; its layout is stable since CUDA 8 (CUpti_CallbackData begins with
// the site).
using subscriber_handle = void*;
using callback_fn = void (*)(void* user, int domain, u32 callback_id, const void* data);
using subscribe_fn = int (*)(subscriber_handle*, callback_fn, void*);
using unsubscribe_fn = int (*)(subscriber_handle);
using enable_domain_fn = int (*)(u32 enable, subscriber_handle, int domain);
using callback_name_fn = int (*)(int domain, u32 callback_id, const char** name);
constexpr int domain_driver_api = 1; // CUPTI_CB_DOMAIN_DRIVER_API
constexpr int site_enter = 0;        // CUPTI_API_ENTER
constexpr int multiple_subscribers = 39;

constexpr u32 max_callbacks = 2048;
std::atomic<u64> cupti_counts[max_callbacks];
std::atomic<u32> counting;
void* library;
subscriber_handle subscriber;

void on_callback(void*, int domain, u32 id, const void* data) {
  if (domain == domain_driver_api && id < max_callbacks && *static_cast<const int*>(data) == site_enter &&
      counting.load(std::memory_order_relaxed) != 0 && !inside_own_calls()) {
    cupti_counts[id].fetch_add(1, std::memory_order_relaxed);
  }
}

void* find_library() {
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
  }
  return nullptr;
}

template <class Fn>
Fn symbol(const char* name) {
  return reinterpret_cast<Fn>(libc_dlsym(library, name));
}

} // namespace

void cupti_start(thread_state* t) {
  static std::atomic<u32> begun;
  if (!options.verify || begun.exchange(1) != 0) {
    return;
  }
  library = find_library();
  trace::cupti_state state = trace::cupti_state::unavailable;
  if (library != nullptr) {
    auto subscribe = symbol<subscribe_fn>("cuptiSubscribe");
    auto enable = symbol<enable_domain_fn>("cuptiEnableDomain");
    const int r = subscribe == nullptr || enable == nullptr ? -1 : subscribe(&subscriber, on_callback, nullptr);
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
