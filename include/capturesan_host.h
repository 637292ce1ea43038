/* Kernels of the CUDA runtime on the host, for the simulated driver: C++17, header only.
 *
 *   capturesan::run_on_host(scale, [](const capturesan::place& at, float* data, unsigned count) {
 *     if (at.x() < count) data[at.x()] *= 2;
 *   });
 *
 * From then on the simulated driver calls the function once for each thread of each launch of `scale`, eager or from a
 * graph, block after block in ascending order; parameters have the types of the kernel's own. A kernel whose threads
 * wait for each other needs capturesan_use_host_function instead, which is called once for the whole grid. On a real
 * driver nothing happens and the kernel itself runs.
 */
#ifndef CAPTURESAN_HOST_H
#define CAPTURESAN_HOST_H

#include "capturesan.h"

#include <cstddef>
#include <new>
#include <utility>

namespace capturesan {

struct extent3 {
  unsigned x, y, z;
};

/* Where a thread of a launch is: gridDim, blockDim, blockIdx and threadIdx of device code. */
struct place {
  extent3 grid, block, block_index, thread_index;
  unsigned x() const { return block_index.x * block.x + thread_index.x; }
  unsigned y() const { return block_index.y * block.y + thread_index.y; }
  unsigned z() const { return block_index.z * block.z + thread_index.z; }
};

namespace detail {

/* Calls `body` for each value of `index` below `limit`, x fastest as on the device. */
template <class Body>
void for_each(const extent3& limit, extent3& index, const Body& body) {
  for (index.z = 0; index.z < limit.z; ++index.z)
    for (index.y = 0; index.y < limit.y; ++index.y)
      for (index.x = 0; index.x < limit.x; ++index.x) body();
}

template <class Function, class... Parameters>
struct host_body {
  static void run(const capturesan_host_launch* launch, void* user) {
    if (launch->parameter_count != sizeof...(Parameters)) return;
    run_with(launch, *static_cast<const Function*>(user), std::index_sequence_for<Parameters...>{});
  }

  template <std::size_t... I>
  static void run_with(const capturesan_host_launch* launch, const Function& body, std::index_sequence<I...>) {
    place at{};
    at.grid = {launch->grid[0], launch->grid[1], launch->grid[2]};
    at.block = {launch->block[0], launch->block[1], launch->block[2]};
    for_each(at.grid, at.block_index, [&] {
      for_each(at.block, at.thread_index, [&] { body(at, *static_cast<const Parameters*>(launch->parameters[I])...); });
    });
  }
};

} /* namespace detail */

/* 1 if the kernel will run on the host; 0 if there is no simulated driver. The function is kept for the process. */
template <class... Parameters, class Function>
int run_on_host(void (*kernel)(Parameters...), Function function) {
  if (!capturesan_register_host_function) return 0;
  auto* kept = new (std::nothrow) Function(std::move(function));
  if (!kept) return 0;
  return capturesan_use_host_function(reinterpret_cast<const void*>(kernel),
                                      &detail::host_body<Function, Parameters...>::run, kept);
}

} /* namespace capturesan */
#endif
