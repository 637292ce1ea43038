// What a rule is evaluated against: an event with the state around it, or one of the pointers or forks it is walked
// over.
#pragma once

#include <forward_list>
#include <string>

#include "analyzer/condition.h"
#include "analyzer/model.h"
#include "analyzer/symbolizer.h"

namespace capturesan {

// What the analyzer itself reports, where there is no call.
struct own_facts {
  std::string text;
  std::uint64_t count = 0;
};

class subject final : public field_source {
 public:
  subject(const event_view& view, event_kind kind, symbolizer* names) : view_(view), kind_(kind), names_(names) {}

  field_value get(field_id id) const override;

  const event_view& view() const { return view_; }
  event_kind kind() const { return kind_; }
  const pointer_use* pointer = nullptr; // with each: graph.ptr
  const stream_key* fork = nullptr;     // with each: capture.unjoined
  const own_facts* facts = nullptr;     // of an own event
  const notice* noticed = nullptr;      // of a notice

  std::string thread_name(std::uint32_t index) const;
  std::string kernel_name() const;
  std::string owner_now() const;
  std::string place_of(std::uint32_t stack) const; // file name of the object that called the driver

 private:
  field_value keep(std::string s) const; // strings made on demand live as long as the subject
  field_value call_field(field_id id) const;
  field_value capture_field(field_id id) const;
  field_value graph_field(field_id id) const;
  field_value memory_field(field_id id) const;
  field_value trace_field(field_id id) const;
  field_value notice_field(field_id id) const;        // subject_notice.cpp
  field_value memory_notice_field(field_id id) const; // subject_notice.cpp
  std::string modules_of(const allocation& a) const;
  bool same_extent() const;
  bool may_run_first() const;
  bool same_again() const;

  const event_view& view_;
  event_kind kind_;
  symbolizer* names_;
  mutable std::forward_list<std::string> kept_;
};

} // namespace capturesan
