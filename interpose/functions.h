// Kernels: their names and parameter layouts, and the parameter blocks of launches and nodes packed by them.
#pragma once

#include "interpose/cuda_abi.h"
#include "interpose/state.h"

namespace capturesan::shim {

inline constexpr int max_parameters = 512;
inline constexpr u32 max_parameter_bytes = 8192; // a longer block is cut and marked

struct parameter_layout {
  int count; // parameters; -1: unknown
  u32 bytes; // end of the last one
  u16 offset[max_parameters];
  u16 size[max_parameters];
};

// A CUfunction or a CUkernel; the driver has different questions for the two.
struct kernel_handle {
  CUfunction function;
  CUkernel kernel;
  u64 key() const { return function != nullptr ? reinterpret_cast<u64>(function) : reinterpret_cast<u64>(kernel); }
};

// The layout of a function, asked once and kept until a module is unloaded (handles may come back then). Null: no
// memory, or a layout that cannot be had; the caller then has nothing to pack by.
const parameter_layout* known_layout(kernel_handle& k, parameter_layout& scratch);
void forget_layouts();

// Asks the driver for the layout (cuFuncGetParamInfo / cuKernelGetParamInfo: harmless in every capture, same file). A
// launch may pass a CUkernel as its CUfunction; `k` is corrected if the driver says so.
void read_layout(kernel_handle& k, parameter_layout& out);

// Writes the function record once per process, and again after a module was unloaded. cuFuncGetName and cuKernelGetName
// are harmless in every capture (tests/golden/harmless_calls_580.159.csv).
void write_function(thread_state* t, kernel_handle k, const parameter_layout& layout);

// Packs the values as the device will see them. Returns the bytes written; sets `cut` if they did not fit or are not
// known.
u32 pack_parameters(const parameter_layout& layout, void** values, void** extra, u8* out, u32 capacity, bool& cut);

// A params record for the launch that follows.
void write_launch_parameters(thread_state* t, kernel_handle k, void** values, void** extra, bool& cut);

} // namespace capturesan::shim
