// Records of a trace as lines of text or JSON, both from the same fields.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/merger.h"
#include "analyzer/process.h"

namespace capturesan::cli {

struct dump_field {
  std::string_view key; // static
  std::string value;
  bool number = false; // decimal, so that JSON needs no quotes
};

struct dump_line {
  std::string_view kind; // of the record, as in event.h; "process" for the header of the file
  std::vector<dump_field> fields;

  void number(std::string_view key, std::uint64_t value) { fields.push_back({key, std::to_string(value), true}); }
  void hex(std::string_view key, std::uint64_t value);
  void text(std::string_view key, std::string value) { fields.push_back({key, std::move(value)}); }
};

std::string to_text(const dump_line& line); // "event time=+0.000012 pid=12 ..."
std::string to_json(const dump_line& line);

// The header of a trace file, its threads, and the texts that belong to no call.
std::vector<dump_line> describe_process(const traced_process& process);

// Events in merged order, each after the records that belong to it and, at its first use, its call stack.
class record_describer {
 public:
  explicit record_describer(std::int64_t start_ns) : start_ns_(start_ns) {}
  std::vector<dump_line> describe(const merged_event& event);

 private:
  dump_line describe_event(const merged_event& event) const;
  dump_line describe_stack(const traced_process& process, std::uint32_t id) const;

  std::int64_t start_ns_;
  std::set<std::pair<const traced_process*, std::uint32_t>> stacks_; // printed already
};

} // namespace capturesan::cli
