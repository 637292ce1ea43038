// The folder of a new trace.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/report.h"
#include "analyzer/result.h"

namespace capturesan::cli {

// Name of the network file system that has this statfs magic; empty if it is none of them.
std::string_view network_file_system(std::uint64_t magic);

inline constexpr std::uint64_t trace_room = 16 << 20; // bytes that must be free where a trace begins

// Why no trace can be kept in this existing folder; empty if one can. Needs `room` bytes free.
std::string unfit_for_trace(const std::string& folder, std::uint64_t room);

// Makes and returns the folder, absolute. `wanted` is the user's choice or empty: then a new folder in the first fit
// place of the working directory, $TMPDIR and /dev/shm. Fails with the reason of every place that was tried.
result<std::string> make_trace_folder(const std::string& wanted, const std::string& session);

// The trace files of a folder, in order of name.
std::vector<std::string> trace_files_in(const std::string& folder);

// The processes that had the shim and could not open their trace there; added to `list` unless it has them.
void add_untraced(std::vector<uncovered_process>& list, const std::string& folder);

// Those that could not even leave a sign there, because they run as another user: they left one in /dev/shm. Removes
// it.
void take_signs_left(std::vector<uncovered_process>& list, const std::string& session);

} // namespace capturesan::cli
