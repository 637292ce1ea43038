// The runtime's and the driver's headers with every ABI name declared and the renames off.
#pragma once

#include "sim/cuda_api.h"

#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
