// A compiled rule: what the engine evaluates. Made by rule_loader; changed by nobody after that.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/condition.h"
#include "analyzer/finding.h"
#include "analyzer/message.h"
#include "analyzer/rule_set.h"
#include "analyzer/yaml_tree.h"

namespace capturesan {

enum class each_kind : std::uint8_t { event, graph_ptr, capture_unjoined };

// What changes when a further condition holds. The first variant that holds counts.
struct rule_variant {
  std::unique_ptr<expr> when;
  std::optional<severity> sev;
  std::optional<confidence> conf;
  std::optional<message_template> message, remediation;
};

// Known to be fine: no finding where it holds.
struct rule_exception {
  std::string id, reason, owner, expires;
  std::unique_ptr<expr> when;
  bool expired = false;
};

// No finding before `at_least` matches with the same `per` values within `within_ns` (0 = any time).
struct rule_threshold {
  std::uint64_t at_least = 1;
  std::vector<field_id> per;
  std::int64_t within_ns = 0;
};

struct rule {
  rule_info about;
  std::vector<event_kind> events;
  each_kind each = each_kind::event;
  std::unique_ptr<expr> when;
  bool possible_if_ok = true; // may hold for a call that answered 0
  message_template message, remediation;
  std::vector<field_id> group_by;
  std::vector<rule_variant> variants;
  std::vector<rule_exception> exceptions;
  std::optional<rule_threshold> threshold;
  bool needs_full = false;
  bool asks_host = false, asks_blocks = false; // about memory of the host, about blocks of a framework's allocator

  std::shared_ptr<const yaml_document> source;
  const yaml_node* id = nullptr;    // in `source`
  const yaml_node* tests = nullptr; // a sequence in `source`; may be null
};

struct compiled_rules {
  std::vector<std::unique_ptr<rule>> rules; // by id
  std::vector<problem> warnings;
};

} // namespace capturesan
