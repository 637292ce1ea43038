// The fields of what the model noticed (notice.h).
#include "analyzer/subject.h"

namespace capturesan {

namespace {

field_value number(std::uint64_t n) { return {true, static_cast<std::int64_t>(n), {}}; }
field_value truth(bool b) { return {true, b ? 1 : 0, {}}; }
template <class E>
field_value word(E e) {
  return {true, static_cast<std::int64_t>(e), {}};
}

field_group group_of(own_event what) {
  switch (what) {
  case own_event::operation_dropped:
    return field_group::dropped;
  case own_event::work_escaped:
    return field_group::escaped;
  case own_event::first_use:
    return field_group::first_use;
  case own_event::capture_abandoned:
    return field_group::abandoned;
  case own_event::graph_memory:
    return field_group::gmem;
  case own_event::build_failed:
    return field_group::build;
  case own_event::code_unloaded:
    return field_group::code;
  case own_event::pageable_copy:
    return field_group::copy;
  default:
    return field_group::always;
  }
}

} // namespace

field_value subject::notice_field(field_id id) const {
  if (noticed == nullptr || info(id).group != group_of(noticed->what)) return {};
  const notice& n = *noticed;
  switch (id) {
  case field_id::dropped_substitute:
    return word(n.instead);
  case field_id::escaped_launches:
    return number(n.escaped_launches);
  case field_id::escaped_operations:
    return number(n.escaped_operations);
  case field_id::escaped_empty:
    return truth(n.ended_empty);
  case field_id::escaped_reads_captured:
    return truth(n.reads_captured);
  case field_id::escaped_reads_fresh:
    return truth(n.reads_fresh);
  case field_id::escaped_default_stream:
    return truth(n.default_stream);
  case field_id::first_use_loads:
    return number(n.loads);
  case field_id::first_use_slow:
    return number(n.slow_calls);
  case field_id::first_use_time:
    return {true, n.load_ns, {}};
  case field_id::abandoned_by_:
    return word(n.abandoned);
  case field_id::build_update:
    return truth(n.update);
  case field_id::build_recovered:
    return truth(n.recovered);
  case field_id::build_old_launched:
    return truth(n.old_launched);
  case field_id::build_nothing_between:
    return truth(n.nothing_between);
  case field_id::build_from_capture:
    return truth(n.from_capture);
  case field_id::code_kernel:
    return keep(names_ != nullptr ? names_->demangle(n.kernel) : n.kernel);
  case field_id::code_node:
  case field_id::copy_node:
    return {true, n.node, {}};
  case field_id::code_handle:
    return number(n.code);
  case field_id::code_unloaded_by:
    return {true, 0, n.unloaded_by};
  case field_id::copy_address:
    return number(n.address);
  case field_id::copy_bytes:
    return number(n.bytes);
  case field_id::copy_to_host:
    return truth(n.to_host);
  default:
    return memory_notice_field(id);
  }
}

field_value subject::memory_notice_field(field_id id) const {
  const notice& n = *noticed;
  const bool kernel = n.user != nullptr && n.user->function;
  switch (id) {
  case field_id::gmem_fault:
    return word(n.fault);
  case field_id::gmem_address:
    return number(n.address);
  case field_id::gmem_size:
    return number(n.bytes);
  case field_id::gmem_count:
    return number(n.count);
  case field_id::gmem_scratch:
    return truth(n.scratch);
  case field_id::gmem_node:
    return {true, n.node, {}};
  case field_id::gmem_node_type:
    return word(n.user == nullptr ? trace::node_type::empty : n.user->type);
  case field_id::gmem_kernel:
    return keep(!kernel             ? std::string()
                : names_ != nullptr ? names_->demangle(n.user->function->name)
                                    : n.user->function->name);
  case field_id::gmem_memory_node:
    return {true, n.memory_node, {}};
  case field_id::gmem_certainty:
    return word(n.sure);
  default:
    return {};
  }
}

} // namespace capturesan
