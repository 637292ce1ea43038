#include "analyzer/cli/bystanders.h"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>

namespace capturesan::cli {

namespace {

struct tool {
  std::string_view library; // part of a file name
  std::string_view what;
};

// Names as the tools ship them.
constexpr tool tools[] = {
    {"libToolsInjection", "Nsight Systems is injected: it holds CUPTI, so capturesan works without"},
    {"libsanitizer-collection", "Compute Sanitizer is injected: the program is much slower and CUPTI is taken"},
    {"libInterceptorInjectionTarget", "Nsight Compute or Compute Sanitizer is injected: kernels may run several times"},
    {"libTreeLauncherTargetInjection",
     "Nsight Compute or Compute Sanitizer is injected: kernels may run several times"},
    {"libcuda-injection", "Nsight Compute is injected: kernels may run several times"},
    {"libnvbit", "an NVBit tool is injected"},
    {"libasan.so", "the address sanitizer is in it; it must come before the shim, which `capturesan run` sees to"},
    {"libclang_rt.asan",
     "the address sanitizer is in it; it must come before the shim, which `capturesan run` sees to"},
    {"libtsan.so", "the thread sanitizer is in it: calls of the shim show up in its reports"},
};

// Who loads CUPTI, by a library that tells it.
constexpr tool cupti_users[] = {
    {"libToolsInjection", "Nsight Systems"},
    {"libtorch_cpu.so", "torch.profiler (libtorch_cpu.so)"},
    {"libtensorflow", "the TensorFlow profiler"},
    {"xla_extension", "the JAX profiler"},
    {"libcapturesan.so", "capturesan itself or another client"},
};

constexpr std::string_view injections[] = {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"};

bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

void add_once(std::vector<std::string>& list, std::string text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
}

std::vector<std::string> named_tools(std::string_view text) {
  std::vector<std::string> found;
  for (const tool& t : tools) {
    if (holds(text, t.library)) add_once(found, std::string(t.what));
  }
  return found;
}

// The digits after `mark` as "3.N".
std::string version_after(std::string_view text, std::string_view mark) {
  const auto at = text.find(mark);
  if (at == std::string_view::npos) return {};
  std::string minor;
  for (std::size_t i = at + mark.size(); i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) minor += text[i];
  return minor.empty() ? "" : "3." + minor;
}

} // namespace

std::vector<std::string> tools_in_environment(const std::vector<std::string>& environment) {
  std::vector<std::string> found;
  for (const std::string& entry : environment) {
    const auto equals = entry.find('=');
    const std::string name = entry.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : entry.substr(equals + 1);
    if (value.empty()) continue;
    if (std::find(std::begin(injections), std::end(injections), name) != std::end(injections)) {
      add_once(found, fmt::format("{}={}: another tool watches too; it is kept, and CUPTI is its own", name, value));
    }
    if (name == "NSYS_PROFILING_SESSION_ID") add_once(found, "started under Nsight Systems, which holds CUPTI");
    if (name == "CUDA_LAUNCH_BLOCKING" && value != "0") {
      add_once(found, "CUDA_LAUNCH_BLOCKING is set: launches wait, so timing differs from the usual run");
    }
    if (name != "LD_PRELOAD") continue;
    for (std::string& tool : named_tools(value)) add_once(found, "LD_PRELOAD: " + tool);
  }
  return found;
}

std::vector<std::string> tools_in_maps(std::string_view maps) {
  std::vector<std::string> found = named_tools(maps);
  if (!holds(maps, "/libcupti.so")) return found;
  std::vector<std::string_view> users;
  for (const tool& user : cupti_users) {
    if (holds(maps, user.library)) users.push_back(user.what);
  }
  found.push_back(fmt::format("CUPTI is loaded, and only one client can hold it; here that may be {}",
                              users.empty() ? std::string("any library of the program")
                                            : fmt::format("{}", fmt::join(users, " or "))));
  return found;
}

std::string python_version(const program_file& program) {
  const std::string image = program.image.substr(program.image.rfind('/') + 1); // npos + 1 = 0
  if (image.starts_with("python3.")) return version_after(image, "python3.");
  for (const std::string& library : program.needed) {
    if (library.starts_with("libpython3.")) return version_after(library, "libpython3.");
  }
  return {};
}

std::string python_version(std::string_view maps) {
  const std::string library = version_after(maps, "/libpython3.");
  return library.empty() ? version_after(maps, "/bin/python3.") : library;
}

// Those that interpose/python.cpp can read without the lock of the interpreter.
bool python_has_frames(std::string_view version) { return version == "3.11" || version == "3.12" || version == "3.13"; }

std::string toolkit_version() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen("nvcc --version 2>/dev/null", "r"), &::pclose);
  char text[4096] = {};
  if (!pipe || std::fread(text, 1, sizeof text - 1, pipe.get()) == 0) return {};
  const std::string_view all(text);
  const auto at = all.find("release ");
  if (at == std::string_view::npos) return {};
  const std::string_view rest = all.substr(at + 8);
  return std::string(rest.substr(0, rest.find_first_not_of("0123456789.")));
}

} // namespace capturesan::cli
