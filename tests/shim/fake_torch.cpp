#include "tests/shim/fake_c10.h"

#include <chrono>
#include <thread>

void fake_torch_report(void* block, std::int64_t bytes, int device_type) {
  static std::size_t allocated = 0;
  allocated += static_cast<std::size_t>(bytes);
  c10::reportMemoryUsageToProfiler(block, bytes, allocated, std::size_t{1} << 21,
                                   {static_cast<signed char>(device_type), 0});
}

void fake_torch_report_elsewhere(void* block, std::int64_t bytes, int device_type) {
  std::thread([&] { fake_torch_report(block, bytes, device_type); }).join();
}

double fake_torch_time(void* block, int times) {
  const auto from = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) {
    fake_torch_report(block, 512, 1);
    fake_torch_report(block, -512, 1);
  }
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - from).count() / times;
}
