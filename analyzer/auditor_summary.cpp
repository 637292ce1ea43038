// What the audit says beside its findings: captures, graphs, processes, and which rules could not be evaluated.
#include <algorithm>

#include <fmt/format.h>

#include "analyzer/auditor.h"
#include "analyzer/fields.h"

namespace capturesan {

namespace {

constexpr std::size_t most_listed = 10'000; // captures and graphs in the summary
constexpr std::size_t most_nodes = 1000;    // listed of one graph
constexpr std::size_t most_unresolved = 16; // kernels listed of one graph

} // namespace

void auditor::note_capture(process_state& p, const capture_state& c) {
  if (c.id > 0) summary_.captures_begun = std::max(summary_.captures_begun, static_cast<std::uint64_t>(c.id));
  if (c.id <= 0 || static_cast<std::size_t>(c.id) > most_listed) return;
  const auto index = static_cast<std::size_t>(c.id) - 1;
  if (summary_.captures.size() <= index) summary_.captures.resize(index + 1);
  capture_summary& s = summary_.captures[index];
  if (!c.ended) s.ref = store_.capture(p, c);
  s.begin_s = store_.seconds(c.begin_ns);
  s.result = c.result;
  if (!c.ended) return;
  s.end_s = store_.seconds(c.end_ns);
  s.nodes = c.nodes;
}

// As they are now: an update may have changed them.
void auditor::list_nodes(graph_summary& s, const exec_state& x) const {
  const std::span<const std::string_view> types = words_of(field_id::param_node_type);
  s.listed.clear();
  for (const exec_node& n : x.nodes) {
    if (s.listed.size() >= most_nodes) return;
    std::string kernel = n.function == nullptr ? std::string() : n.function->name;
    if (!kernel.empty() && options_.symbols != nullptr) kernel = options_.symbols->demangle(kernel);
    const auto type = static_cast<std::size_t>(n.type);
    s.listed.push_back(
        {n.index, std::string(type < types.size() ? types[type] : "unknown"), std::move(kernel), n.enabled});
  }
}

// How many kernel nodes have an address that is known, and which have none.
void auditor::count_kernels(graph_summary& s, const exec_state& x) const {
  s.kernel_nodes = s.kernel_nodes_resolved = s.of_device = 0;
  s.unresolved.clear();
  for (const exec_node& n : x.nodes) {
    if (n.covered == coverage::no_kernel) continue;
    ++s.kernel_nodes;
    if (n.covered == coverage::resolved) {
      ++s.kernel_nodes_resolved;
      continue;
    }
    if (n.covered == coverage::of_device) ++s.of_device;
    const std::string_view why = n.covered == coverage::takes_nothing ? "it takes no parameters"
                                 : n.covered == coverage::no_address  ? "no parameter is an address of known memory"
                                 : n.covered == coverage::of_device   ? "the device may change its parameters"
                                                                      : "its parameters could not be read";
    const std::string kernel = n.function == nullptr ? std::string() : n.function->name;
    const auto same = std::find_if(s.unresolved.begin(), s.unresolved.end(),
                                   [&](const auto& u) { return u.kernel == kernel && u.why == why; });
    if (same != s.unresolved.end()) {
      ++same->nodes;
    } else if (s.unresolved.size() < most_unresolved) {
      s.unresolved.push_back({kernel, std::string(why), 1});
    }
  }
  if (options_.symbols == nullptr) return;
  for (auto& u : s.unresolved) u.kernel = options_.symbols->demangle(u.kernel);
}

void auditor::note_exec(const exec_state& x, bool changed) {
  if (x.id <= 0 || static_cast<std::size_t>(x.id) > most_listed) return;
  const auto index = static_cast<std::size_t>(x.id) - 1;
  if (summary_.graphs.size() <= index) summary_.graphs.resize(index + 1);
  graph_summary& s = summary_.graphs[index];
  if (options_.list_nodes && (s.id == 0 || s.replays != x.replays || finished_)) list_nodes(s, x);
  s.id = x.id;
  s.capture = x.capture;
  s.nodes = x.nodes.size();
  s.place = x.place;
  s.replays = x.replays;
  s.bodies = x.bodies;
  s.unjudged = x.unjudged;
  if (changed || finished_) count_kernels(s, x);
  if (x.capture > 0 && static_cast<std::size_t>(x.capture) <= summary_.captures.size()) {
    summary_.captures[static_cast<std::size_t>(x.capture) - 1].nodes = x.nodes.size();
  }
}

void auditor::summarize() {
  audit_summary& s = summary_;
  s.replays = model_.replays();
  s.processes = files_.size();
  s.threads = s.dropped = 0;
  s.ranks.clear();
  for (const auto& p : model_.processes()) {
    const traced_process& t = p->trace;
    for (const traced_text& text : t.texts) {
      if (text.role == trace::text_role::rank) s.ranks.push_back({t.pid, text.text, text.key});
    }
    s.threads += t.threads.size();
    s.dropped += t.lost;
    if (t.has_gaps()) s.complete = false;
    for (const auto& [handle, x] : p->execs) note_exec(*x, false);
    if (s.driver.kind != "unknown" || t.driver == trace::driver_kind::unknown) continue;
    s.driver.kind = t.driver == trace::driver_kind::real ? "real" : "simulated";
    s.driver.version = t.driver_string.empty() && t.driver_version != 0
                           ? fmt::format("CUDA {}.{}", t.driver_version / 1000, t.driver_version % 1000 / 10)
                           : t.driver_string;
    s.driver.device = t.device;
  }
  if (s.dropped > 0) s.complete = false;
}

// Of launched graphs: what the rules about their operands could not look at. Empty if there is nothing.
std::string auditor::unseen_parts() const {
  std::uint64_t replays = 0, bodies = 0, kernels = 0;
  for (const graph_summary& g : summary_.graphs) {
    replays += g.unjudged;
    if (g.replays == 0) continue;
    bodies += g.bodies;
    kernels += g.of_device;
  }
  std::string all;
  const auto add = [&](std::uint64_t n, std::string_view one, std::string_view more) {
    if (n == 0) return;
    all += fmt::format("{}{} {}", all.empty() ? "" : ", ", n, n == 1 ? one : more);
  };
  add(replays, "replay of a graph that was changed in a way the trace does not show",
      "replays of graphs that were changed in a way the trace does not show");
  add(bodies, "conditional node, whose bodies are not recorded", "conditional nodes, whose bodies are not recorded");
  add(kernels, "kernel node whose parameters the device may change",
      "kernel nodes whose parameters the device may change");
  return all;
}

void auditor::summarize_rules() {
  constexpr const char* few_of_host = "graphs name more memory of the host than could be watched";
  constexpr const char* few_of_blocks = "there were more blocks of PyTorch's allocator than could be followed";
  summary_.rules.clear();
  const std::string unseen = unseen_parts();
  const bool any_full = std::any_of(files_.begin(), files_.end(),
                                    [](const auto& f) { return f->process().level == trace::trace_level::full; });
  const auto gave_up = [&](trace::text_role role) {
    return std::any_of(files_.begin(), files_.end(), [&](const auto& f) {
      const auto& texts = f->process().texts;
      return std::any_of(texts.begin(), texts.end(), [&](const traced_text& t) { return t.role == role; });
    });
  };
  const bool host_lost = gave_up(trace::text_role::untracked_host);
  const bool blocks_lost = gave_up(trace::text_role::untracked_blocks);
  const bool recycled =
      std::any_of(files_.begin(), files_.end(), [](const auto& f) { return f->process().recycled > 0; });
  const bool damaged = std::any_of(files_.begin(), files_.end(), [](const auto& f) { return f->process().truncated; });
  for (const auto& r : rules_.rules) {
    if (!r->about.enabled) continue;
    rule_status status;
    status.id = r->about.id;
    status.name = r->about.name;
    status.sev = r->about.sev;
    status.description = r->about.description;
    status.remediation = r->about.remediation;
    status.doc = r->about.doc;
    status.tags = r->about.tags;
    for (const finding& f : store_.all()) status.findings += f.rule == status.id ? 1 : 0;
    if (r->needs_full && !any_full) {
      status.evaluated = false;
      status.why_not = "needs level full";
    } else if (r->each == each_kind::graph_ptr && !unseen.empty() && status.findings == 0) {
      status.evaluated = false;
      status.why_not = unseen;
    } else if (r->asks_host && host_lost && status.findings == 0) {
      status.evaluated = false;
      status.why_not = few_of_host;
    } else if (r->asks_blocks && blocks_lost && status.findings == 0) {
      status.evaluated = false;
      status.why_not = few_of_blocks;
    } else if (summary_.dropped > 0 && status.findings == 0) {
      status.evaluated = false;
      status.why_not = "records were dropped";
    } else if (!summary_.complete && status.findings == 0) {
      status.evaluated = false;
      status.why_not = recycled  ? "the trace keeps only its newest part"
                       : damaged ? "the trace is cut off or damaged"
                                 : "the trace does not show all that happened";
    }
    if (status.evaluated && r->asks_host && host_lost) status.partly = few_of_host;
    if (status.evaluated && r->asks_blocks && blocks_lost) status.partly = few_of_blocks;
    summary_.rules.push_back(std::move(status));
  }
}

} // namespace capturesan
