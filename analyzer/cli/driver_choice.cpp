#include "analyzer/cli/driver_choice.h"

#include <cstring>
#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

namespace capturesan::cli {

namespace {

struct answer { // of the probing process, through a pipe
  int loadable = 0, version = 0;
  char text[1024] = {}; // path or error
};

// Runs in the child: the driver's constructors must not touch this process.
answer load_driver() {
  answer a;
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!library) {
    const char* error = ::dlerror();
    std::strncpy(a.text, error ? error : "unknown error", sizeof a.text - 1);
    return a;
  }
  a.loadable = 1;
  link_map* map = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map) std::strncpy(a.text, map->l_name, sizeof a.text - 1);
  using get_version = int (*)(int*);
  if (auto version = reinterpret_cast<get_version>(::dlsym(library, "cuDriverGetVersion"))) version(&a.version);
  return a;
}

} // namespace

driver_probe probe_driver() {
  driver_probe probe;
  probe.device = ::access("/dev/nvidiactl", F_OK) == 0;
  int ends[2];
  if (::pipe(ends) != 0) return probe;
  const pid_t child = ::fork();
  if (child == 0) {
    const answer a = load_driver();
    const ssize_t written = ::write(ends[1], &a, sizeof a);
    ::_exit(written == sizeof a ? 0 : 1);
  }
  ::close(ends[1]);
  answer a;
  if (::read(ends[0], &a, sizeof a) == sizeof a) {
    probe.loadable = a.loadable != 0;
    probe.version = a.version;
    (probe.loadable ? probe.path : probe.error) = a.text;
  } else {
    probe.error = "loading it ended the process that tried";
  }
  ::close(ends[0]);
  if (child > 0) ::waitpid(child, nullptr, 0);
  return probe;
}

result<driver_choice> choose_driver(const std::string& wanted, const driver_probe& probe, bool have_sim) {
  problem p;
  const std::string missing = !probe.device ? "no NVIDIA GPU here (/dev/nvidiactl is missing)"
                                            : "libcuda.so.1 cannot be loaded: " + probe.error;
  if (wanted == "real" && !probe.usable()) {
    p.message = "--driver real: " + missing;
    p.hint = "use --driver sim, or see capturesan doctor";
    return p;
  }
  driver_choice choice;
  choice.simulated = wanted == "sim" || (wanted == "auto" && !probe.usable());
  if (choice.simulated && !have_sim) {
    p.message = wanted == "sim" ? std::string("--driver sim: the simulated driver is not installed")
                                : fmt::format("{}, and the simulated driver is not installed", missing);
    return p;
  }
  if (wanted == "auto" && choice.simulated) {
    choice.remark = fmt::format("{}: using the simulated driver, which proves nothing about hardware",
                                probe.device ? "libcuda.so.1 cannot be loaded" : "no GPU");
  }
  return choice;
}

} // namespace capturesan::cli
