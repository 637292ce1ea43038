// A trace without what tells of the machine and of who used it, so that it can be given away: what the rules look at
// stays.
//   goes    folders of all paths, arguments of the program, and whatever is left over from records used anew
//   stays   file names, names of functions, kernels, threads and driver, build ids, addresses, times, and the
//   parameters
//           of kernels as they were passed
#pragma once

#include <cstddef>
#include <span>

namespace capturesan {

// In place; both are as long as trace/format.h says, or as the file still has.
void redact_header(std::span<std::byte> header);
void redact_chunk(std::span<std::byte> chunk);

} // namespace capturesan
