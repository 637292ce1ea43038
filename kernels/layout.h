// Order of a partial result in the workspace. It is the order in which the accumulators lie in registers, so both
// kernels read and write whole 128-byte lines and nobody transposes until the final store.
#pragma once

#include "partition.h"

#include <cstddef>

namespace verify_mla {

// Element (row, column) of one group's partial, row < 8 * nt_count, column < 512, from the group's start.
VERIFY_MLA_HD size_t partial_index(int row, int column, int nt_count) {
  const int value_tile = column / 16;
  const int lane = column % 8 * 4 + row % 8 / 2;
  const int element = column % 16 / 8 * 2 + row % 2;
  return (static_cast<size_t>(value_tile) * nt_count + row / 8) * 128 + static_cast<size_t>(lane) * 4 + element;
}

} // namespace verify_mla
