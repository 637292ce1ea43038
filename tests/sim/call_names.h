// The list of calls for files that include cuda.h: its renames would change the names of trace/calls.def.
#pragma once

#include <string>
#include <vector>

struct call_name {
  std::string symbol, api;
  int since;
  bool per_thread;
};

const std::vector<call_name>& call_names();
