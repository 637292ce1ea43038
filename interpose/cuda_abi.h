// cuda.h with every ABI name declared and none renamed. Only for the few files that call or wrap the driver.
#pragma once

#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>

#include "interpose/platform.h"

namespace capturesan::shim {

inline constexpr u64 legacy_stream = 1;     // CU_STREAM_LEGACY
inline constexpr u64 per_thread_stream = 2; // CU_STREAM_PER_THREAD

} // namespace capturesan::shim
