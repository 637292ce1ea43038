// What the device can do, measured in the same run as the kernels: the denominators of every share we report.
#pragma once

#include <string>
#include <vector>

namespace verify_mla {

struct ceiling {
  std::string name;
  double value;
  std::string unit; // "GB/s" or "TFLOP/s"
};

// Device 0, default stream. `gathers`: also the row gathers with every way of issuing them.
std::vector<ceiling> measure_ceilings(bool gathers);

} // namespace verify_mla
