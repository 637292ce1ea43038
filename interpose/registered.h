// Host memory that the program registered (cuMemHostRegister). It is page-locked, and yet the program's own: unlike
// memory that the driver allocated, it goes by free or munmap.
#pragma once

#include "interpose/platform.h"

namespace capturesan::shim {

void note_registered(u64 base, u64 bytes);
void note_unregistered(u64 base);
bool is_registered(u64 address);

} // namespace capturesan::shim
