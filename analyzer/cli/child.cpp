#include "analyzer/cli/child.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyzer/cli/terminal.h"

namespace capturesan::cli {

namespace {

// Would end this command before it has reported. A signal that was ignored when the command started (nohup) stays
// ignored.
constexpr int taken_over[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
// Only ignored here: a closed pipe on stderr and a small RLIMIT_FSIZE must not cost the report its other targets.
constexpr int ignored[] = {SIGPIPE, SIGXFSZ};

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  list.reserve(words.size() + 1);
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

} // namespace

signal_watch::signal_watch() {
  sigset_t watched;
  sigemptyset(&watched);
  sigaddset(&watched, SIGCHLD);
  for (const int signal : taken_over) {
    struct sigaction now {};
    if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&watched, signal);
  }
  // An ignored SIGCHLD, inherited, would make the kernel reap the child before we can ask how it ended.
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  saved before{SIGCHLD, {}};
  ::sigaction(SIGCHLD, &action, &before.action);
  actions_.push_back(before);
  for (const int signal : ignored) {
    action.sa_handler = SIG_IGN;
    before.signal = signal;
    ::sigaction(signal, &action, &before.action);
    actions_.push_back(before);
  }
  ::sigprocmask(SIG_BLOCK, &watched, &mask_before_);
  fd_ = ::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  start_sentinel();
}

signal_watch::~signal_watch() {
  stop_sentinel();
  if (fd_ >= 0) ::close(fd_);
  // The mask stays: a second Ctrl-C while this command is about to return its exit code must not change that code.
}

void signal_watch::start_sentinel() {
  const pid_t parent = ::getpid();
  sentinel_ = ::fork();
  if (sentinel_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
#ifdef SYS_close_range
  ::syscall(SYS_close_range, 0u, ~0u, 0u); // whoever waits for the end of a pipe must not wait for us
#endif
  for (;;) ::pause();
}

void signal_watch::stop_sentinel() {
  if (sentinel_ <= 0) return;
  ::kill(sentinel_, SIGKILL);
  ::waitpid(sentinel_, nullptr, 0);
  sentinel_ = -1;
}

bool signal_watch::sentinel_has(int signal) const {
  std::ifstream status(fmt::format("/proc/{}/status", sentinel_));
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("ShdPnd:")) continue;
    return (std::strtoull(line.c_str() + 7, nullptr, 16) >> (signal - 1)) & 1;
  }
  return false;
}

int signal_watch::wait(int milliseconds, bool* to_group) {
  pollfd waiting{fd_, POLLIN, 0};
  if (::poll(&waiting, 1, milliseconds) <= 0) return 0;
  signalfd_siginfo info{};
  while (::read(fd_, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD) continue;
    const int signal = static_cast<int>(info.ssi_signo);
    // The kernel queues it for the members of the group one after the other.
    ::usleep(5000);
    *to_group = sentinel_has(signal);
    if (*to_group) {
      stop_sentinel();
      start_sentinel();
    }
    return signal;
  }
  return 0;
}

void signal_watch::restore_in_child() const {
  for (const saved& before : actions_) ::sigaction(before.signal, &before.action, nullptr);
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

result<child_process> child_process::start(const std::string& path, const std::vector<std::string>& argv,
                                           const std::vector<std::string>& environment, const signal_watch& signals) {
  problem p;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    p.message = fmt::format("cannot make a pipe: {}", std::strerror(errno));
    return p;
  }
  const std::vector<char*> words = pointers(argv), variables = pointers(environment);
  child_process child;
  child.pid_ = ::fork();
  if (child.pid_ == 0) {
    signals.restore_in_child();
    ::execvpe(path.c_str(), words.data(), variables.data());
    const int error = errno;
    write_all(ends[1], {reinterpret_cast<const char*>(&error), sizeof error});
    ::_exit(127);
  }
  int error = child.pid_ < 0 ? errno : 0;
  ::close(ends[1]);
  if (child.pid_ > 0 && ::read(ends[0], &error, sizeof error) != sizeof error) error = 0;
  ::close(ends[0]);
  if (error == 0) return child;
  if (child.pid_ > 0) ::waitpid(child.pid_, nullptr, 0);
  p.message = fmt::format("{}: {}", path, std::strerror(error));
  return p;
}

std::optional<int> child_process::poll() {
  int status = 0;
  if (exit_ || ::waitpid(pid_, &status, WNOHANG) != pid_) return exit_;
  if (WIFSIGNALED(status)) {
    signal_ = WTERMSIG(status);
    exit_ = 128 + signal_;
  } else {
    exit_ = WEXITSTATUS(status);
  }
  return exit_;
}

void child_process::send(int signal) const {
  if (!exit_) ::kill(pid_, signal);
}

} // namespace capturesan::cli
