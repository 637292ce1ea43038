// The processes the program starts: who of them uses the driver without the shim, and which traced ones are still
// alive.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <sys/types.h>
#include <vector>

#include "analyzer/report.h"

namespace capturesan::cli {

// Looks through /proc for the descendants of a process. Costs little: scans come less often when they take long.
class descendant_scan {
 public:
  // `folder`: of the trace; a process that may not write there is not covered, whatever it has loaded.
  descendant_scan(pid_t root, std::string folder);

  // Looks again if it is time.
  void poll();
  const std::vector<uncovered_process>& uncovered() const { return uncovered_; }

 private:
  struct seen {
    std::uint64_t started = 0; // clock ticks since boot: tells a pid from its successor
    std::string image;         // of /proc/<pid>/exe when it was judged
    std::pair<uid_t, gid_t> owner{};
    bool settled = false; // covered, or listed already
  };
  void scan();
  void judge(pid_t pid);

  std::string folder_;
  std::map<pid_t, seen> processes_; // alive at the last scan; children stay known when their parent ends
  std::vector<uncovered_process> uncovered_;
  std::set<std::pair<pid_t, std::uint64_t>> listed_;
  std::chrono::steady_clock::time_point next_{};
  int scans_ = 0;
};

// Process ids of the trace files in a folder that have not been closed by their process and whose process is alive.
std::vector<pid_t> running_processes(const std::string& trace);

} // namespace capturesan::cli
