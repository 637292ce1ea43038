// The audit behind audit.h, open to the analyzer's own parts: rules that are compiled already, traces in memory.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "analyzer/audit.h"
#include "analyzer/byte_source.h"
#include "analyzer/engine.h"
#include "analyzer/merger.h"
#include "analyzer/model.h"
#include "analyzer/rule.h"

namespace capturesan {

class auditor final : public audit {
 public:
  // The rules must outlive the auditor.
  auditor(const compiled_rules& rules, audit_options options);
  // Owns the rules.
  auditor(rule_set rules, audit_options options);

  result<std::size_t> add(const std::string& path) override;
  result<std::size_t> add_source(std::unique_ptr<byte_source> bytes, const std::string& name);
  std::size_t poll() override;
  void finish() override;
  const std::vector<finding>& findings() const override { return store_.all(); }
  const audit_summary& summary() const override { return summary_; }

 private:
  void set_up();
  void take(finding& f); // a new one
  std::size_t read_up_to(std::int64_t horizon_ns);
  void set_rates();
  void note_unfinished();
  void report_process(process_state& p);
  void note_capture(process_state& p, const capture_state& c);
  void note_exec(const exec_state& x, bool changed);
  void count_kernels(graph_summary& s, const exec_state& x) const;
  void list_nodes(graph_summary& s, const exec_state& x) const;
  void summarize();
  void summarize_rules();
  std::string unseen_parts() const;

  std::unique_ptr<rule_set> owned_;
  const compiled_rules& rules_;
  audit_options options_;
  std::vector<std::unique_ptr<trace_file>> files_;
  std::set<std::string> paths_;
  merger merger_;
  model model_;
  finding_store store_;
  engine engine_;
  audit_summary summary_;
  event_view view_;
  std::int64_t start_ns_ = 0, last_ns_ = 0;
  bool finished_ = false;
};

} // namespace capturesan
