// The watched program as a child process: started as a shell would, signalled once, waited for.
#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "analyzer/result.h"

namespace capturesan::cli {

// Signals that would end this command are taken over for as long as this object lives, so that it can still report.
// One at a time in a process; no other threads may exist.
class signal_watch {
 public:
  signal_watch();
  ~signal_watch();
  signal_watch(const signal_watch&) = delete;
  signal_watch& operator=(const signal_watch&) = delete;

  // Waits at most `milliseconds`. A signal that ends programs, if one came; 0 = time is over or a child changed.
  // `*to_group` says that it went to the whole process group, as Ctrl-C does, so that the child has it already.
  int wait(int milliseconds, bool* to_group);

  // In a forked child: the signal state this command was started with.
  void restore_in_child() const;

 private:
  struct saved {
    int signal;
    struct sigaction action;
  };
  void start_sentinel();
  void stop_sentinel();
  bool sentinel_has(int signal) const;

  int fd_ = -1;
  sigset_t mask_before_{};
  std::vector<saved> actions_;
  // A sleeping process of the same group: what is sent to the group reaches it too, what is sent to us alone does not.
  pid_t sentinel_ = -1;
};

class child_process {
 public:
  // Fails if exec fails. The child inherits stdin, stdout, stderr, terminal, process group and working directory.
  static result<child_process> start(const std::string& path, const std::vector<std::string>& argv,
                                     const std::vector<std::string>& environment, const signal_watch& signals);

  pid_t pid() const { return pid_; }
  // The exit code as a shell would show it (128 + signal), once the child has ended.
  std::optional<int> poll();
  int signal() const { return signal_; } // that killed it; 0 = none
  void send(int signal) const;

 private:
  pid_t pid_ = -1;
  std::optional<int> exit_;
  int signal_ = 0;
};

} // namespace capturesan::cli
