// The driver's own entry points: every ABI name of calls.def that the loaded libcuda has, and the way back from an
// address to the call it belongs to. An address is the identity of an entry point: names and versions only lead to it.
#pragma once

#include "interpose/platform.h"
#include "trace/call.h"

namespace capturesan::shim {

using trace::call_id;

extern void* real_table[trace::call_count]; // null: the driver lacks the name, or is not loaded yet

// What the program gets instead (hooks.cpp): the exported symbols, as a program that is linked with the driver has them
// already. It may compare what it asks for with what it has.
extern void* const export_table[trace::call_count];
extern void* const wrapper_table[trace::call_count]; // what they jump to

// Resolves the table once a libcuda.so.1 is loaded; cheap afterwards. False while there is none.
bool resolve_driver();

// Any symbol of the loaded driver library; null if there is none.
void* driver_symbol(const char* name);

// The export that stands for a driver address; null if the address is none of ours. Of several names for one entry
// point it is that of `name`, if that is among them.
void* export_for(const void* driver_address, const char* name = nullptr);

// The driver address behind a wrapper or an exported symbol of the shim; null if it is neither.
void* driver_for(const void* shim_address);

// libc's own dlsym, whatever is preloaded beside us.
void* libc_dlsym(void* handle, const char* name);

// How many objects the process has loaded in all its life; 0 if libc does not say. A search for a library or a symbol
// that found nothing allocates and need not be made again before this has changed.
u64 objects_loaded();

inline void* real(call_id id) { return real_table[static_cast<std::size_t>(id)]; }

// A driver function of our choice, called past the hooks. `Fn` comes from decltype of cuda.h's declaration.
template <class Fn>
Fn* driver_function(call_id id) {
  return reinterpret_cast<Fn*>(real(id));
}

// Range of the shim's own mapping.
bool own_address(const void* address);

} // namespace capturesan::shim
