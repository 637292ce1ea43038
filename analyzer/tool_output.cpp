#include "analyzer/tool_output.h"

#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace capturesan {

namespace {

using clock = std::chrono::steady_clock;
constexpr std::size_t most_output = std::size_t{64} << 20;

// In a process group of its own, so that what it starts ends with it; with the signals as a program expects them.
pid_t start(const std::vector<std::string>& arguments, int output, int inherited) {
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t how;
  if (::posix_spawn_file_actions_init(&files) != 0) return -1;
  if (::posix_spawnattr_init(&how) != 0) {
    ::posix_spawn_file_actions_destroy(&files);
    return -1;
  }
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  if (inherited >= 0) ::posix_spawn_file_actions_adddup2(&files, inherited, inherited); // no longer closed on exec
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  ::posix_spawnattr_setsigmask(&how, &none);
  ::posix_spawnattr_setsigdefault(&how, &all);
  ::posix_spawnattr_setpgroup(&how, 0);
  ::posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  pid_t pid = -1;
  if (::posix_spawn(&pid, argv[0], &files, &how, argv.data(), environ) != 0) pid = -1;
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&how);
  return pid;
}

// False: out of time or room.
bool read_all(int fd, clock::time_point end, std::string& to) {
  char part[65536];
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - clock::now()).count();
    pollfd wait{fd, POLLIN, 0};
    if (left <= 0 || ::poll(&wait, 1, static_cast<int>(left)) == 0) return false;
    const ssize_t n = ::read(fd, part, sizeof part);
    if (n == 0) return true;
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) to.append(part, static_cast<std::size_t>(n));
    if (to.size() > most_output) return false;
  }
}

} // namespace

std::optional<std::string> tool_output(const std::vector<std::string>& arguments, int inherited,
                                       std::chrono::nanoseconds most) {
  const auto end = clock::now() + most;
  int ends[2];
  if (arguments.empty() || ::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  const pid_t pid = start(arguments, ends[1], inherited);
  ::close(ends[1]);
  std::string text;
  bool good = pid > 0 && read_all(ends[0], end, text);
  ::close(ends[0]);
  if (pid <= 0) return std::nullopt;
  if (!good) ::kill(-pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!good || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return text;
}

} // namespace capturesan
