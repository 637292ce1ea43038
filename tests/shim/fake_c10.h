// Stand-ins for the two libraries of PyTorch between which blocks of its allocator are reported: the same function name
// and signature, so that the shim is met as it would be.
#pragma once

#include <cstddef>
#include <cstdint>

namespace c10 {

struct Device {
  signed char type, index;
};

// In libc10.so; the profiler's side.
void reportMemoryUsageToProfiler(void* block, std::int64_t bytes, std::size_t allocated, std::size_t reserved,
                                 Device device);

} // namespace c10

extern "C" {
// What the profiler has been told so far.
struct fake_profile {
  std::uint64_t calls;
  std::int64_t bytes;
  std::uint64_t last_allocated, last_reserved;
};
fake_profile fake_c10_profile();

// In libfake_torch.so, the allocator's side: reports a block that was handed out, or taken back.
void fake_torch_report(void* block, std::int64_t bytes, int device_type);
// The same from a thread of its own, as the autograd engine has them.
void fake_torch_report_elsewhere(void* block, std::int64_t bytes, int device_type);
// Nanoseconds that handing a block out and taking it back costs, each of them `times` times.
double fake_torch_time(void* block, int times);
}
