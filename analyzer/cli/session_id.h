// Names of sessions: the local time and the process, so that folders sort by age.
#pragma once

#include <string>

namespace capturesan::cli {

std::string new_session_id(); // "20261129-101500-4711"

} // namespace capturesan::cli
