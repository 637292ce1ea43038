// Which libcuda.so.1 the program will meet.
#pragma once

#include <string>

#include "analyzer/result.h"

namespace capturesan::cli {

struct driver_probe {
  bool device = false;   // /dev/nvidiactl exists
  bool loadable = false; // libcuda.so.1 can be loaded
  int version = 0;       // as cuDriverGetVersion, 0 = unknown
  std::string path;      // the file that was loaded
  std::string error;     // of the loader

  bool usable() const { return device && loadable; }
};

// Loads the driver in a process of its own, which ends at once.
driver_probe probe_driver();

struct driver_choice {
  bool simulated = false;
  std::string remark; // one line for the user; empty if he chose himself
};

// `wanted`: auto, real or sim. Fails if the wanted driver cannot be had.
result<driver_choice> choose_driver(const std::string& wanted, const driver_probe& probe, bool have_sim);

} // namespace capturesan::cli
