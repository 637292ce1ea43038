#include "call_names.h"

#include "trace/call.h"

const std::vector<call_name>& call_names() {
  static const auto all = [] {
    std::vector<call_name> made;
    for (const auto& call : capturesan::trace::call_table)
      made.push_back({std::string(call.symbol), std::string(call.api), call.since,
                      capturesan::trace::per_thread_variant(call.symbol)});
    return made;
  }();
  return all;
}
