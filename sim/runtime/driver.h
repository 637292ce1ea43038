// The driver, found at run time as a program's runtime finds it: by name in libcuda.so.1. Thus whatever is preloaded
// sees every call, and a program that is linked with the static library needs no -lcuda.
#pragma once

#include "sim/runtime/cuda_runtime.h"
#include "trace/call.h"

namespace capturesan::runtime {

using trace::call_id;

// The address of a driver call; one that the driver lacks, or all of them without a driver, answers
// CUDA_ERROR_NOT_FOUND whatever its arguments. Never null. Thread-safe.
void* driver_entry(call_id id);

bool driver_there();
// A symbol of the driver that is no driver call; null: absent.
void* driver_symbol(const char* name);
// Counted by the simulated driver as a call that it lacks.
void note_lacking(const char* call);

template <call_id>
struct driver_signature;
#define CALL(symbol, ...)                                                                                              \
  template <>                                                                                                          \
  struct driver_signature<call_id::symbol> {                                                                           \
    using pointer = decltype(&::symbol);                                                                               \
  };
#include "trace/calls.def"

template <call_id id>
auto driver() {
  return reinterpret_cast<typename driver_signature<id>::pointer>(driver_entry(id));
}

// CU(cuMemFree_v2)(address) calls the driver. CU_PTSZ and CU_PTDS choose the variant by what stream 0 means in the
// current runtime call.
#define CU(symbol) ::capturesan::runtime::driver<::capturesan::runtime::call_id::symbol>()
#define CU_PTSZ(symbol) (::capturesan::runtime::per_thread_streams() ? CU(symbol##_ptsz) : CU(symbol))
#define CU_PTDS(symbol) (::capturesan::runtime::per_thread_streams() ? CU(symbol##_ptds) : CU(symbol))

// Whether the current runtime call is a _ptsz or _ptds variant.
bool per_thread_streams();

} // namespace capturesan::runtime
