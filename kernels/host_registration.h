// Where there is no GPU: the simulated driver runs the library's kernels on the host (host_kernels.h), eager or
// replayed.
#pragma once

namespace verify_mla {

// Registers every kernel of the library. Returns how many will run on the host: 0 on a real driver, where nothing
// changes. Call once, before the first launch.
int use_host_kernels();

} // namespace verify_mla
