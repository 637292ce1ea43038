// `doctor`: everything that is known to keep the shim or the driver away, and what to do about each.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <sys/resource.h>
#include <unistd.h>

#include "analyzer/cli/bystanders.h"
#include "analyzer/cli/command.h"
#include "analyzer/cli/driver_choice.h"
#include "analyzer/cli/exit_code.h"
#include "analyzer/cli/installation.h"
#include "analyzer/cli/program.h"
#include "analyzer/cli/session_environment.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/cli/trace_folder.h"
#include "analyzer/disassembler.h"
#include "analyzer/report.h"

namespace capturesan::cli {

namespace {

// The shim finds the driver's functions through cuGetProcAddress, and the edges of a graph through cuGraphGetEdges_v2
// (`since` in calls.def).
constexpr int oldest_driver = 11030, oldest_full_driver = 12030;
constexpr double oldest_toolkit = 12.4; // that can compile kernels and examples

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string read_file_of(const std::string& process, std::string_view name) {
  std::ifstream file(fmt::format("/proc/{}/{}", process, name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// NAME=VALUE, from text with a 0 after each.
std::vector<std::string> split_environment(const std::string& text) {
  std::vector<std::string> entries;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\0', at), text.size());
    if (end > at) entries.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return entries;
}

std::string version_text(int version) { return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10); }

class examination {
 public:
  void good(const std::string& text) { print(fmt::format("ok    {}\n", printable(text))); }
  void remark(const std::string& text) { print(fmt::format("note  {}\n", printable(text))); }
  void bad(const std::string& text, const std::string& cure) {
    ++obstacles_;
    print(fmt::format("STOP  {}\n      -> {}\n", printable(text), printable(cure)));
  }
  int end() {
    const std::string text = obstacles_ == 0
                                 ? "nothing stands in the way: a program in which nothing was seen made no driver call"
                                 : fmt::format("{} obstacle{}", obstacles_, obstacles_ == 1 ? "" : "s");
    print(fmt::format("capturesan: {}\n", text));
    return obstacles_ ? exit_findings : exit_ok;
  }

  void parts();
  void surroundings();
  void driver(const std::string& wanted);
  void toolkit();
  void disassembler(const std::string& wanted);
  void trace(const std::string& wanted);
  void program(const std::string& name, bool simulated);
  void process(const std::string& pid);

 private:
  int obstacles_ = 0;
};

void examination::parts() {
  const installation& where = installed();
  if (where.has_shim()) {
    good("shim: " + where.shim);
  } else {
    bad("the shim is missing: " + where.shim, "build or install it again");
  }
  if (where.shim.find_first_of(": ") != std::string::npos) {
    bad("the path of the shim has a space or colon, which LD_PRELOAD cannot hold", "install capturesan elsewhere");
  }
  if (where.has_sim()) {
    good("simulated driver: " + where.sim_folder + "/libcuda.so.1");
  } else {
    remark("no simulated driver in " + where.sim_folder + "; --driver sim will not work");
  }
  const result<std::vector<std::string>> rules = rule_files({});
  if (rules) {
    good(
        fmt::format("rules: {} pack{} in {}", rules.value().size(), rules.value().size() == 1 ? "" : "s", where.rules));
  } else {
    bad(rules.problems()[0].message, "build or install them again");
  }
}

void examination::surroundings() {
  if (variable("CAPTURESAN") == "off") bad("CAPTURESAN=off makes the shim do nothing", "unset CAPTURESAN");
  const std::string preload = variable("LD_PRELOAD");
  if (!preload.empty()) remark(fmt::format("LD_PRELOAD is set and will be kept: {}", preload));
  std::vector<std::string> entries;
  for (auto entry = environ; *entry; ++entry) entries.emplace_back(*entry);
  for (const std::string& text : tools_in_environment(entries)) remark(text);
}

void examination::driver(const std::string& wanted) {
  const driver_probe probe = probe_driver();
  if (probe.loadable) {
    const std::string text = fmt::format("libcuda.so.1 here is {}, {}", probe.path, version_text(probe.version));
    if (probe.version > 0 && probe.version < oldest_driver) {
      bad(text, fmt::format("use a driver for {} or newer", version_text(oldest_driver)));
    } else {
      good(text);
    }
    if (probe.version >= oldest_driver && probe.version < oldest_full_driver) {
      remark(fmt::format("before {} a driver does not tell all edges of a graph", version_text(oldest_full_driver)));
    }
  }
  if (!probe.device || !probe.loadable) {
    const std::string text =
        !probe.device ? "no GPU: /dev/nvidiactl is missing" : "libcuda.so.1 cannot be loaded: " + probe.error;
    if (wanted == "real") {
      bad(text, "run where there is a GPU, in a container started with --gpus, or use --driver sim");
    } else {
      remark(text + "; the simulated driver will be used");
    }
  }
}

// Only for those who build kernels: the command itself needs none.
void examination::toolkit() {
  const std::string version = toolkit_version();
  if (version.empty()) return remark("no CUDA toolkit (nvcc) on PATH; only building kernels would need one");
  if (std::strtod(version.c_str(), nullptr) < oldest_toolkit) {
    return remark(
        fmt::format("the CUDA toolkit on PATH is {}; {} or newer is needed to build kernels", version, oldest_toolkit));
  }
  good("CUDA toolkit " + version);
}

// Without it a word inside a struct stays a suspicion.
void examination::disassembler(const std::string& wanted) {
  const std::string tool = find_disassembler(wanted);
  if (!tool.empty()) return good("disassembler: " + tool);
  if (wanted == "off") return remark("the disassembler is off: addresses inside structs are suspected only");
  remark(fmt::format("no cuobjdump {}: addresses inside structs are suspected only",
                     wanted.empty() ? "on PATH, in CUDA_HOME or in /usr/local/cuda" : "at " + wanted));
}

void examination::trace(const std::string& wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < trace_room) {
    bad(fmt::format("files may not grow beyond {} KiB (ulimit -f), too little for a trace", limit.rlim_cur / 1024),
        "raise the limit");
  }
  std::error_code error;
  std::vector<std::string> places = {wanted};
  if (wanted.empty()) places = {std::filesystem::current_path(error).string(), variable("TMPDIR"), "/dev/shm"};
  std::string reasons;
  for (const std::string& place : places) {
    if (place.empty()) continue;
    std::filesystem::path folder = std::filesystem::absolute(place, error);
    while (!std::filesystem::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
    const std::string why = unfit_for_trace(folder, trace_room);
    if (why.empty()) return good("the trace can be kept in " + place);
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", place, why);
  }
  bad("no place for the trace: " + reasons, "name a local folder with -o");
}

void examination::program(const std::string& name, bool simulated) {
  const result<program_file> found = inspect_program(name);
  if (!found) return bad(found.problems()[0].message, "check the name and PATH");
  const program_file& file = found.value();
  const std::string obstacle = file.obstacle();
  if (obstacle.empty()) {
    good(fmt::format("{} can be preloaded", file.image));
  } else {
    std::string cure = "link it dynamically";
    if (!file.privileged.empty()) cure = "run a copy without these rights (cp does not keep them)";
    if (file.musl()) cure = "use a build for glibc";
    if (!file.foreign.empty()) cure = "use a build for this machine";
    bad(obstacle, cure);
  }
  if (file.static_runtime() && simulated) {
    bad(fmt::format("{} has NVIDIA's runtime linked in, which refuses the simulated driver", file.image),
        "link it with -cudart shared, or run it on a GPU");
  } else if (file.static_runtime()) {
    good("it has NVIDIA's runtime linked in; its calls are seen at the driver");
  }
  const std::string python = python_version(file);
  if (!python.empty() && !python_has_frames(python)) {
    remark(fmt::format("Python {}: no Python frames; they can be had from 3.11 to 3.13", python));
  }
  if (!file.sanitizer().empty())
    remark(fmt::format("it links {}, which will be preloaded before the shim", file.sanitizer()));
}

void examination::process(const std::string& pid) {
  const std::string maps = read_file_of(pid, "maps");
  if (maps.empty())
    return bad(fmt::format("process {} cannot be read", pid), "check the pid; use the account it runs under");
  const bool shim = maps.find("/libcapturesan.so") != std::string::npos;
  const bool driver = maps.find("/libcuda.so.") != std::string::npos;
  if (shim) good(fmt::format("process {} has the shim", pid));
  if (shim && !driver) remark(fmt::format("process {} has not loaded libcuda.so.1 (yet)", pid));
  std::string environment = read_file_of(pid, "environ");
  environment.insert(environment.begin(), '\0');
  if (environment.find(std::string_view("\0CAPTURESAN=off\0", 16)) != std::string::npos) {
    bad(fmt::format("process {} was started with CAPTURESAN=off", pid), "start it without");
  }
  for (const std::string& text : tools_in_environment(split_environment(environment))) remark(text);
  for (const std::string& text : tools_in_maps(maps)) remark(text);
  const std::string python = python_version(maps);
  if (!python.empty() && !python_has_frames(python)) {
    remark(fmt::format("Python {}: no Python frames; they can be had from 3.11 to 3.13", python));
  }
  const std::string status = read_file_of(pid, "status");
  const auto tracer = status.find("TracerPid:\t");
  if (tracer != std::string::npos && status.compare(tracer + 11, 2, "0\n") != 0) {
    remark(fmt::format("process {} is being traced by another one (ptrace)", pid));
  }
  if (shim) return;
  const bool asked = environment.find("libcapturesan.so") != std::string::npos;
  std::error_code error;
  const std::string image = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), error);
  if (asked) {
    bad(fmt::format("process {} was started with the shim in LD_PRELOAD but has not loaded it", pid),
        "see the next lines");
    program(image, false);
  } else {
    bad(fmt::format("process {} ({}) was started without the shim in LD_PRELOAD", pid, image),
        "start it under `capturesan run`, or with the variables of `capturesan env`; sudo, ssh, env -i and batch "
        "systems drop them");
  }
}

} // namespace

int doctor_command(const invocation& in) {
  examination e;
  if (in.options.given("pid")) {
    e.process(std::to_string(static_cast<long>(in.options.number("pid"))));
    return e.end();
  }
  e.parts();
  e.surroundings();
  e.driver(in.options.text("driver"));
  e.toolkit();
  e.disassembler(in.options.text("disassembler"));
  e.trace(in.options.text("output"));
  const std::string wanted = in.options.text("driver");
  const bool simulated = wanted == "sim" || (wanted == "auto" && !probe_driver().usable());
  if (!in.program.empty()) e.program(in.program[0], simulated);
  return e.end();
}

} // namespace capturesan::cli
