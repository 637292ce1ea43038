#pragma once

#include "sim/answer.h"

namespace capturesan::sim {

// The address of the exported symbol, the same that dlsym finds.
void* exported(call_id id);

} // namespace capturesan::sim
