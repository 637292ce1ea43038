#include "sim/runtime/driver.h"

#include <atomic>
#include <dlfcn.h>

namespace capturesan::runtime {
namespace {

// For calls the driver lacks. Every call of the list answers a CUresult, and the caller clears the arguments.
CUresult absent() { return CUDA_ERROR_NOT_FOUND; }

void* library() {
  static void* const handle = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return handle;
}

std::atomic<void*> entries[trace::call_count];

} // namespace

void* driver_entry(call_id id) {
  auto& entry = entries[static_cast<std::size_t>(id)];
  if (void* known = entry.load(std::memory_order_acquire)) return known;
  void* found = library() ? ::dlsym(library(), trace::info(id).symbol.data()) : nullptr;
  if (!found) found = reinterpret_cast<void*>(&absent);
  entry.store(found, std::memory_order_release);
  return found;
}

bool driver_there() { return library() != nullptr; }

void* driver_symbol(const char* name) { return library() ? ::dlsym(library(), name) : nullptr; }

void note_lacking(const char* call) {
  using lacks = void (*)(const char*);
  static const auto note = reinterpret_cast<lacks>(driver_symbol("capturesan_sim_lacks"));
  if (note) note(call);
}

} // namespace capturesan::runtime
