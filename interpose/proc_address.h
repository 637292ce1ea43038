// The ways a program gets hold of a driver function without linking to it: cuGetProcAddress and dlsym.
#pragma once

#include "interpose/hook.h"

namespace capturesan::shim {

// Both answer exactly as the driver does, with the address of a known entry point replaced by its wrapper; an address
// that calls.def does not know is passed through and named in the trace (CS902).
CUresult CUDAAPI get_proc_address_v1(const char* symbol, void** pfn, int version, cuuint64_t flags);
CUresult CUDAAPI get_proc_address_v2(const char* symbol, void** pfn, int version, cuuint64_t flags,
                                     CUdriverProcAddressQueryResult* status);

template <>
struct hook<call_id::cuGetProcAddress, decltype(::cuGetProcAddress)> {
  static constexpr auto* call = &get_proc_address_v1;
};
template <>
struct hook<call_id::cuGetProcAddress_v2, decltype(::cuGetProcAddress_v2)> {
  static constexpr auto* call = &get_proc_address_v2;
};

} // namespace capturesan::shim
