// Device code as far as the simulation needs it: names, parameter layouts and variables of a cubin, a fatbin or PTX
// text.
#pragma once

#include "sim/operation.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace capturesan::sim {

struct variable_info {
  std::string name;
  std::size_t bytes = 0;
  std::vector<std::byte> initial; // empty: zeros
};

struct image {
  std::vector<std::shared_ptr<const kernel_info>> kernels;
  std::vector<variable_info> variables;

  std::shared_ptr<const kernel_info> find_kernel(std::string_view name) const;
};

struct image_result {
  std::shared_ptr<const image> loaded; // null: see error
  CUresult error = CUDA_SUCCESS;
};

// What a pointer of the program points to, as cuModuleLoadData takes it. Its size is in its own headers (PTX: a
// terminating 0).
image_result load_image(const void* data);
image_result load_image_file(const char* path);

// The three formats. Null: malformed.
std::shared_ptr<const image> parse_elf(std::span<const std::byte> elf);
std::shared_ptr<const image> parse_ptx(std::string_view text);
image_result parse_fatbin(const std::byte* header);

} // namespace capturesan::sim
