// The state of the simulated driver: one per process, one lock. Every call holds the lock from entry to return
// (entry.h); only the program's own functions (host nodes, host kernels, callbacks) run without it.
#pragma once

#include "sim/capture.h"
#include "sim/heap.h"
#include "sim/objects.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace capturesan::sim {

struct device {
  int ordinal = 0;
  CUuuid uuid{};
  device_heap heap;
  CUcontext primary = nullptr;
  unsigned primary_references = 0;
  unsigned primary_flags = 0;
  CUresult fault = CUDA_SUCCESS; // of a context on it: the process gets no other one
  CUmemoryPool default_pool = nullptr;
  CUmemoryPool pool = nullptr;
  std::vector<CUmemoryPool> pools; // all of it
  std::size_t graph_used = 0, graph_used_high = 0;
};

// Set once, from CAPTURESAN_SIM_... in the environment, by the first call.
struct settings {
  int devices = 1;     // CAPTURESAN_SIM_DEVICES
  bool strict = false; // CAPTURESAN_SIM_STRICT=1: any use of freed memory is an error
  bool refuse = true;  // CAPTURESAN_SIM_REFUSE=0: no call is refused because of a capture
};

enum class object_kind : std::uint8_t {
  context,
  stream,
  event,
  module,
  function,
  library,
  kernel,
  graph,
  node,
  exec,
  pool,
  user_object
};

template <class T>
struct kind_of;
template <>
struct kind_of<CUctx_st> {
  static constexpr auto value = object_kind::context;
};
template <>
struct kind_of<CUstream_st> {
  static constexpr auto value = object_kind::stream;
};
template <>
struct kind_of<CUevent_st> {
  static constexpr auto value = object_kind::event;
};
template <>
struct kind_of<CUmod_st> {
  static constexpr auto value = object_kind::module;
};
template <>
struct kind_of<CUfunc_st> {
  static constexpr auto value = object_kind::function;
};
template <>
struct kind_of<CUlib_st> {
  static constexpr auto value = object_kind::library;
};
template <>
struct kind_of<CUkern_st> {
  static constexpr auto value = object_kind::kernel;
};
template <>
struct kind_of<CUgraph_st> {
  static constexpr auto value = object_kind::graph;
};
template <>
struct kind_of<CUgraphNode_st> {
  static constexpr auto value = object_kind::node;
};
template <>
struct kind_of<CUgraphExec_st> {
  static constexpr auto value = object_kind::exec;
};
template <>
struct kind_of<CUmemPoolHandle_st> {
  static constexpr auto value = object_kind::pool;
};
template <>
struct kind_of<CUuserObject_st> {
  static constexpr auto value = object_kind::user_object;
};

struct driver_state {
  std::mutex lock;
  settings options;
  bool initialised = false;
  bool forked = false; // this process is a fork of one that had initialised
  std::vector<std::unique_ptr<device>> devices;
  std::unordered_map<const void*, object_kind> objects; // every live handle
  memory_map memory;
  std::vector<std::shared_ptr<capture>> captures; // those not ended
  std::uint64_t next_id = 1;
  std::uint64_t next_capture = 1;
};

// Never destroyed: other threads and destructors of the program may still call.
driver_state& state();

// What each thread has of its own.
struct thread_state {
  thread_id id;
  std::vector<CUcontext> contexts;               // the stack of current contexts, top last
  unsigned mode = CU_STREAM_CAPTURE_MODE_GLOBAL; // a number: the driver takes any
  std::unique_lock<std::mutex>* held = nullptr;  // the driver's lock, while this thread is inside
  bool per_thread_streams = false;               // what stream 0 means in the current call
  thread_state();
};
thread_state& this_thread();

// The current context, or null.
CUcontext current_context();
// Whether there is none because it was destroyed.
bool current_is_destroyed();

// Runs a function of the program without the driver's lock.
template <class F>
void unlocked(F&& function) {
  auto* held = this_thread().held;
  if (held) held->unlock();
  function();
  if (held) held->lock();
}

template <class T>
bool is_live(const T* object) {
  auto found = state().objects.find(object);
  return found != state().objects.end() && found->second == kind_of<T>::value;
}

// Objects live until destroy(); handles are their addresses.
template <class T>
T* create() {
  auto object = std::make_unique<T>();
  state().objects.emplace(object.get(), kind_of<T>::value);
  return object.release();
}

template <class T>
void destroy(T* object) {
  state().objects.erase(object);
  delete object;
}

CUcontext new_context(device& owner, unsigned flags, bool primary);
// Destroys the context and all that lives in it.
void end_context(CUcontext context);
// The stream behind a handle of the program: 0, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD or a created one; null if it is
// none.
CUstream stream_of(CUstream handle);
CUstream default_stream(bool per_thread);
device* device_of(CUdevice ordinal);

} // namespace capturesan::sim
