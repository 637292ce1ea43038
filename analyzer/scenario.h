// The `given` of an inline test as a trace. Names such as s1 or buf become handles and addresses far apart.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/audit.h"
#include "analyzer/trace_builder.h"
#include "analyzer/yaml_tree.h"
#include "trace/call.h"

namespace capturesan {

// What is wrong with a test itself, and where. Thrown and caught inside the analyzer only.
struct bad_test {
  const yaml_node* at;
  std::string message, hint = {};
};

class scenario {
 public:
  explicit scenario(trace::trace_level level) : builder_(1000, level) {}

  // Adds one event; throws bad_test.
  void add(const yaml_node& n);

  std::vector<std::byte> bytes() const { return builder_.bytes(); }
  // What is said about suppressions at the end.
  const std::vector<own_note>& suppressions() const { return suppressions_; }
  // Which given event (from 1) happened at that time; 0 = none.
  int event_at(std::int64_t ns) const;

 private:
  void add_one(const yaml_node& n);
  std::uint64_t handle(const std::string& name);
  std::uint64_t value(const yaml_node& n);
  std::uint32_t thread(const yaml_node* n);
  std::uint64_t stream(const yaml_node& n);
  std::uint64_t mode(const yaml_node& n);
  std::uint32_t stack(std::uint32_t t, const std::string& name);
  void add_record(const yaml_node& n, const yaml_node& own);
  void add_call(const yaml_node& n);
  bool operand(const trace::call_info& call, const std::string& key, const yaml_node& v, built_call& c);
  void add_statuses(std::uint32_t t, const yaml_node& n);
  // scenario_graph.cpp
  void add_nodes(std::uint32_t t, const yaml_node& n);
  void add_node(std::uint32_t t, const yaml_node& n, std::uint32_t index);
  void add_table(std::uint32_t t, const yaml_node& n);
  void add_edges(std::uint32_t t, const yaml_node& n);
  void add_kernel(std::uint32_t t, const yaml_node& n, trace::node_record& r);

  trace_builder builder_;
  std::vector<own_note> suppressions_;
  std::uint64_t iteration_ = 0; // of the event being added
  std::map<std::string, std::uint64_t> names_;
  std::map<std::string, std::uint32_t> threads_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> open_; // captures: stream, begin
  std::vector<std::pair<std::int64_t, std::int64_t>> spans_;
};

// 12 or 0x10; nothing if it is no number.
std::optional<std::uint64_t> scenario_integer(std::string_view s);

} // namespace capturesan
