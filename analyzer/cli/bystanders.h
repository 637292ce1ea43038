// Other tools that watch or change a program: what an environment, a memory map and a program file tell of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/cli/program.h"

namespace capturesan::cli {

// Sentences about what `environment` (NAME=VALUE, as in /proc/PID/environ) asks for beside the shim.
std::vector<std::string> tools_in_environment(const std::vector<std::string>& environment);

// The same of mapped libraries (text of /proc/PID/maps): profilers, sanitizers, and who may hold CUPTI.
std::vector<std::string> tools_in_maps(std::string_view maps);

// "3.9" for a CPython interpreter; empty for other programs. By the names of the program and its libraries.
std::string python_version(const program_file& program);
std::string python_version(std::string_view maps);

// Whether Python frames can be had from that version.
bool python_has_frames(std::string_view version);

// Version of the CUDA toolkit on PATH as "12.4"; empty if there is none. Nothing is started but nvcc itself.
std::string toolkit_version();

} // namespace capturesan::cli
