// cuda.h with every ABI name declared and its renames off, so that one name in the source is one symbol in the library.
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
