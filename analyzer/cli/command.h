// The table of commands: everything `capturesan` can be asked to do, once.
#pragma once

#include <span>
#include <string_view>

#include "analyzer/cli/options.h"

namespace capturesan::cli {

struct command {
  std::string_view name;
  std::string_view arguments; // after the options, as the usage line shows them
  std::string_view summary;   // one line
  int (*run)(const invocation&);
  option_set accepts;
  std::string_view details; // what --help says beyond the options
  std::string_view examples;
};

std::span<const command> commands();
const command* find_command(std::string_view name);

// Bodies, one file each. They return the exit code and print.
int run_command(const invocation& in);
int check_command(const invocation& in);
int report_command(const invocation& in);
int baseline_command(const invocation& in);
int dump_command(const invocation& in);
int redact_command(const invocation& in);
int diff_command(const invocation& in);
int env_command(const invocation& in);
int rules_command(const invocation& in);
int doctor_command(const invocation& in);
int version_command(const invocation& in);

// Parses the words after the program's own name and runs the command. Never throws.
int dispatch(const std::vector<std::string>& words);

} // namespace capturesan::cli
