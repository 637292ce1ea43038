// Looks into kernels with NVIDIA's cuobjdump, where that is installed.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "analyzer/code_reader.h"
#include "analyzer/sass.h"

namespace capturesan {

// Where cuobjdump is: `setting` is the option `disassembler`, empty = PATH, CUDA_HOME, CUDA_PATH, /usr/local/cuda.
// Empty: nowhere, or "off".
std::string find_disassembler(const std::string& setting);

class disassembler : public code_reader {
 public:
  struct limits {
    std::chrono::milliseconds one{10'000}, all{30'000}; // for one kernel, and together
  };
  explicit disassembler(std::string tool) : disassembler(std::move(tool), limits{}) {}
  disassembler(std::string tool, limits most) : tool_(std::move(tool)), limits_(most), left_(most.all) {}

  std::optional<std::string> use_of(const code_question& q) override;

 private:
  const std::vector<sass::listing>& listings(const code_question& q);

  std::string tool_;
  limits limits_;
  std::chrono::nanoseconds left_;
  std::map<std::string, std::vector<sass::listing>> known_; // none where they could not be had
};

} // namespace capturesan
