#include "host_registration.h"

#include "config.h"
#include "eager.h"
#include "host_kernels.h"
#include "kernels.h"

#include "capturesan.h"

namespace verify_mla {
namespace {

// What a kernel was instantiated with, for the function that stands in for it.
struct shape {
  int granules, tile_tokens, value_tiles;
};

template <class T>
const T& parameter(const capturesan_host_launch* launch, unsigned i) {
  return *static_cast<const T*>(launch->parameters[i]);
}

void run_partial(const capturesan_host_launch* launch, void* user) {
  const auto& s = *static_cast<const shape*>(user);
  verify_mla_host_partial(launch->grid[0], launch->block[0], parameter<kernel_args>(launch, 0), s.granules,
                          s.tile_tokens);
}

void run_reduce(const capturesan_host_launch* launch, void* user) {
  const auto& s = *static_cast<const shape*>(user);
  verify_mla_host_reduce(launch->grid[0], launch->block[0], parameter<kernel_args>(launch, 0),
                         parameter<int>(launch, 1), parameter<int>(launch, 2), s.value_tiles);
}

void run_widen(const capturesan_host_launch* launch, void*) {
  const auto* from = parameter<const int32_t*>(launch, 0);
  auto* to = parameter<int64_t*>(launch, 1);
  for (int64_t i = 0; i < parameter<int64_t>(launch, 2); ++i) to[i] = from[i];
}

int use(const void* kernel, capturesan_host_kernel function, const shape& s) {
  if (kernel == nullptr) return 0;
  return capturesan_use_host_function(kernel, function, new shape(s)); // kept for the life of the process
}

} // namespace

int use_host_kernels() {
  if (!capturesan_register_host_function) return 0;
  int count = 0;
  for (bool bf16 : {false, true}) {
    for (int granules : ROW_GRANULES) {
      count += use(wide_kernel(granules, bf16).function, run_partial, {granules, WIDE_TOKENS, 0});
      count += use(narrow_kernel(granules, bf16).function, run_partial, {granules, NARROW_TOKENS, 0});
    }
    for (int tiles : REDUCE_TILES) count += use(reduce_entry(tiles, bf16).function, run_reduce, {0, 0, tiles});
  }
  return count + use(widen_kernel(), run_widen, {});
}

} // namespace verify_mla
