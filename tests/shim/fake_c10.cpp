#include "tests/shim/fake_c10.h"

namespace {
fake_profile profile;
}

void c10::reportMemoryUsageToProfiler(void* block, std::int64_t bytes, std::size_t allocated, std::size_t reserved,
                                      Device device) {
  profile.calls += block != nullptr ? 1 : 0;
  profile.bytes += bytes * (device.type + 2 * device.index);
  profile.last_allocated = allocated;
  profile.last_reserved = reserved;
}

fake_profile fake_c10_profile() { return profile; }
