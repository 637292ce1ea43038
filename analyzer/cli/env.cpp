#include <cstdlib>
#include <fmt/format.h>
#include <unistd.h>

#include "analyzer/cli/command.h"
#include "analyzer/cli/driver_choice.h"
#include "analyzer/cli/exit_code.h"
#include "analyzer/cli/installation.h"
#include "analyzer/cli/session_environment.h"
#include "analyzer/cli/session_id.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/cli/trace_folder.h"

namespace capturesan::cli {

namespace {

// For a POSIX shell: nothing inside single quotes is special but the quote.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

int refuse(const std::vector<problem>& problems) {
  complain(problems);
  return exit_usage;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

} // namespace

int env_command(const invocation& in) {
  const std::string wanted = in.options.text("driver");
  const driver_probe probe = wanted == "sim" ? driver_probe{} : probe_driver();
  const result<driver_choice> choice = choose_driver(wanted, probe, installed().has_sim());
  if (!choice) return refuse(choice.problems());
  session_request request;
  request.session = new_session_id();
  request.simulated = choice.value().simulated;
  request.preload = variable("LD_PRELOAD");
  request.libraries = variable("LD_LIBRARY_PATH");
  // First without a folder, so that what is refused leaves none behind.
  request.folder = std::string(1, '/'); // assigned as a literal, GCC 12 warns of an overlap that is none
  if (const result<variables> set = session_environment(request, in.options); !set) return refuse(set.problems());
  result<std::string> folder = make_trace_folder(in.options.text("output"), request.session);
  if (!folder) return refuse(folder.problems());
  request.folder = folder.value();
  const result<variables> set = session_environment(request, in.options);
  if (!set) return refuse(set.problems());
  std::string text;
  for (const auto& [name, value] : set.value()) text += fmt::format("export {}={}\n", name, quoted(value));
  print(text);
  if (!output_failure().empty()) {
    ::rmdir(request.folder.c_str()); // nobody knows of it; stays if it is not empty
    return exit_internal;
  }
  say(fmt::format("{}{}start the program, then: capturesan check {}", choice.value().remark,
                  choice.value().remark.empty() ? "" : "; ", request.folder));
  return exit_ok;
}

} // namespace capturesan::cli
