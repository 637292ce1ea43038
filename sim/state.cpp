#include "sim/state.h"

#include "sim/memory.h"

#include <algorithm>
#include <cstdlib>
#include <pthread.h>

namespace capturesan::sim {
namespace {

int environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::atoi(text) : otherwise;
}

// A child of fork has the state but not the threads; the driver refuses it, as CUDA does.
void before_fork() { state().lock.lock(); }
void after_fork_in_parent() { state().lock.unlock(); }
void after_fork_in_child() {
  state().forked = state().initialised;
  state().lock.unlock();
}

driver_state* make_state() {
  auto* fresh = new driver_state;
  fresh->options.devices = std::clamp(environment("CAPTURESAN_SIM_DEVICES", 1), 0, 64);
  fresh->options.strict = environment("CAPTURESAN_SIM_STRICT", 0) != 0;
  fresh->options.refuse = environment("CAPTURESAN_SIM_REFUSE", 1) != 0;
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  return fresh;
}

std::atomic<thread_id> next_thread{1};

CUstream new_stream(CUcontext context, CUstream_st::kind which, unsigned flags) {
  CUstream stream = create<CUstream_st>();
  stream->context = context;
  stream->which = which;
  stream->flags = flags;
  stream->id = state().next_id++;
  return stream;
}

template <class T>
void destroy_of(CUcontext context) {
  std::vector<T*> doomed;
  for (const auto& [pointer, kind] : state().objects) {
    if (kind != kind_of<T>::value) continue;
    auto* object = static_cast<T*>(const_cast<void*>(pointer));
    if (object->context == context) doomed.push_back(object);
  }
  for (T* object : doomed) destroy(object);
}

} // namespace

driver_state& state() {
  static auto* const only = make_state();
  return *only;
}

thread_state::thread_state() : id(next_thread.fetch_add(1, std::memory_order_relaxed)) {}

thread_state& this_thread() {
  thread_local thread_state own;
  return own;
}

CUcontext current_context() {
  const auto& stack = this_thread().contexts;
  if (stack.empty() || !is_live(stack.back())) return nullptr;
  return stack.back();
}

bool current_is_destroyed() {
  const auto& stack = this_thread().contexts;
  return !stack.empty() && !is_live(stack.back());
}

device* device_of(CUdevice ordinal) {
  auto& all = state().devices;
  return ordinal >= 0 && static_cast<std::size_t>(ordinal) < all.size() ? all[static_cast<std::size_t>(ordinal)].get()
                                                                        : nullptr;
}

CUstream default_stream(bool per_thread) {
  CUcontext context = current_context();
  if (!context) return nullptr;
  if (!per_thread) return context->legacy;
  CUstream& own = context->per_thread[this_thread().id];
  if (!own) own = new_stream(context, CUstream_st::kind::per_thread, CU_STREAM_DEFAULT);
  return own;
}

CUstream stream_of(CUstream handle) {
  if (!handle) return default_stream(this_thread().per_thread_streams);
  if (handle == CU_STREAM_LEGACY) return default_stream(false);
  if (handle == CU_STREAM_PER_THREAD) return default_stream(true);
  return is_live(handle) ? handle : nullptr;
}

// The limits a fresh context has: what driver 580 answers for an H200.
CUcontext new_context(device& owner, unsigned flags, bool primary) {
  CUcontext context = create<CUctx_st>();
  context->device = &owner;
  context->flags = flags;
  context->primary = primary;
  context->id = state().next_id++;
  context->limits[CU_LIMIT_STACK_SIZE] = 1024;
  context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = std::size_t{1} << 20;
  context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = std::size_t{8} << 20;
  context->limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
  context->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  context->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 128;
  context->legacy = new_stream(context, CUstream_st::kind::legacy, CU_STREAM_DEFAULT);
  return context;
}

void end_context(CUcontext context) {
  auto& all = state();
  while (true) { // captures of its streams end with it
    auto open =
        std::find_if(all.captures.begin(), all.captures.end(), [&](const auto& c) { return c->context == context; });
    if (open == all.captures.end()) break;
    leave_capture((*open)->origin);
  }
  destroy_of<CUevent_st>(context);
  for (auto& [pointer, kind] : all.objects)
    if (kind == object_kind::stream) {
      auto* stream = static_cast<CUstream>(const_cast<void*>(pointer));
      if (stream->context == context) leave_capture(stream);
    }
  destroy_of<CUstream_st>(context);
  std::vector<CUdeviceptr> doomed;
  for (const auto& [base, a] : all.memory)
    if (a.context == context && a.kind != memory_kind::graph && a.kind != memory_kind::pool) doomed.push_back(base);
  for (CUdeviceptr base : doomed) release_allocation(*all.memory.at(base));
  destroy_of<CUmod_st>(context);
  if (context->device->primary == context) context->device->primary = nullptr;
  destroy(context);
}

} // namespace capturesan::sim
