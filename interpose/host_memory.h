// Host memory that live graphs refer to: operands of copy nodes and user data of host nodes. `free`, `realloc` and
// `munmap` are interposed to learn when it goes; while no live graph refers to such memory each of them costs one
// relaxed load. Page-locked memory of the driver is not in the table: the driver is told when that goes.
#pragma once

#include "interpose/node_params.h"

namespace capturesan::shim {

inline constexpr std::size_t max_host_ranges = 256;

// Host operands of a node of `w.exec`.
void note_host_operands(node_writer& w, const node_out& out);

// Before an exec is destroyed, or gets all its nodes anew.
void forget_host_ranges(u64 exec);

// At exit: ranges that did not fit.
void write_host_losses();

// The libc function behind an interposed one; null if the address is none of them.
const void* libc_function_behind(const void* address);

} // namespace capturesan::shim
