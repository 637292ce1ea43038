#pragma once

#include "sim/objects.h"

namespace capturesan::sim {

// The graph in the DOT language, child graphs as clusters.
CUresult write_dot(CUgraph graph, const char* path, unsigned flags);

} // namespace capturesan::sim
