#include "analyzer/cli/installation.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

namespace capturesan::cli {

namespace fs = std::filesystem;

namespace {

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

installation locate() {
  std::error_code ignored;
  const fs::path command = fs::read_symlink("/proc/self/exe", ignored);
  const fs::path prefix = command.parent_path().parent_path();
  installation where;
  where.command = command;
  where.shim = prefix / "lib" / "libcapturesan.so";
  where.sim_folder = prefix / "lib" / "sim";
  where.rules = prefix / "share" / "capturesan" / "rules";
  return where;
}

} // namespace

bool installation::has_shim() const { return is_file(shim); }
bool installation::has_sim() const { return is_file(sim_folder + "/libcuda.so.1"); }

const installation& installed() {
  static const installation where = locate();
  return where;
}

result<std::vector<std::string>> rule_files(const std::vector<std::string>& own) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(installed().rules, error)) {
    if (entry.path().extension() == ".yaml" && entry.is_regular_file(error)) files.push_back(entry.path());
  }
  if (files.empty()) {
    problem p;
    p.message = fmt::format("no rule packs in {}", installed().rules);
    p.hint = "the installation is incomplete";
    return p;
  }
  std::sort(files.begin(), files.end());
  files.insert(files.end(), own.begin(), own.end());
  return files;
}

} // namespace capturesan::cli
