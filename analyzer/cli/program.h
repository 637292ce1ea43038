// The program to be watched, before it is started: which file will run, and can the shim get into it?
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/result.h"

namespace capturesan::cli {

struct program_file {
  std::string path;                // what exec will be given
  std::string image;               // the ELF file behind it: the interpreter of a script, else `path`
  bool elf = false;                // false: neither ELF nor a script with an interpreter; exec will tell
  std::string interpreter;         // the dynamic loader; empty = statically linked
  std::string foreign;             // "32-bit", "another architecture"; empty = like this command
  std::string privileged;          // "setuid", "setgid", "file capabilities"; empty = none that matters to this user
  std::vector<std::string> needed; // libraries it names
  bool device_code = false;        // built by a CUDA compiler
  bool runtime_text = false;       // has the texts of a CUDA runtime in it
  bool own_runtime = false;        // that runtime is the one of the simulated driver

  bool musl() const { return interpreter.find("ld-musl") != std::string::npos; }
  // The library of the address sanitizer it links, which insists on being first; empty = none.
  std::string sanitizer() const;
  // Has NVIDIA's runtime linked in, which works with NVIDIA's driver only.
  bool static_runtime() const;
  // The shared runtime it names, if that is of another major release than ours; empty = none.
  std::string other_runtime() const;
  // Why the shim cannot be preloaded, as a sentence about `image`; empty if it can.
  std::string obstacle() const;
};

// Finds it as execvp would. Fails if there is no such command or it may not be executed.
result<program_file> inspect_program(const std::string& name);

} // namespace capturesan::cli
