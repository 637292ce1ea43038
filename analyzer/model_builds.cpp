// Execs over their lives: builds that failed and what came of it, execs that pile up, code that goes while an exec
// needs it, copies that read host memory at each replay.
#include <algorithm>

#include "analyzer/model.h"

namespace capturesan {

namespace {

using trace::call_class;

constexpr int not_supported = 801;
constexpr std::size_t most_failed_builds = 256;
constexpr std::size_t most_told_copies = 16; // of one exec

notice told(const failed_build& f) {
  notice n;
  n.what = own_event::build_failed;
  n.about = f.about;
  n.update = f.exec != 0;
  n.from_capture = f.from_capture;
  return n;
}

// Does the code of a function come from `holder`, or from something that came from it?
bool comes_from(const process_state& p, std::uint64_t module, std::uint64_t holder) {
  for (int hops = 0; module != 0 && hops < 4; ++hops) {
    if (module == holder) return true;
    const auto f = p.functions.find(module); // a kernel, or the module of a library
    if (f == p.functions.end()) return false;
    module = f->second->module;
  }
  return false;
}

} // namespace

// ---- instantiations and updates that fail ----

void model::build_failed(process_state& p, event_view& v) {
  const trace::event& e = *v.event;
  if (is_capture_result(e.result)) return;
  const auto g = p.graphs.find(e.arg[1]);
  const bool instantiates = v.call->cls == call_class::graph_instantiate;
  const bool memory_nodes = g != p.graphs.end() && g->second.memory_nodes;
  const auto same_graph = [&](const auto& x) { return x.second->graph == e.arg[1]; };
  if (instantiates && e.result == not_supported && memory_nodes &&
      std::any_of(p.execs.begin(), p.execs.end(), same_graph)) {
    notice n; // measured, "memory nodes: second instantiate"
    n.what = own_event::graph_memory;
    n.fault = memory_fault::second_exec;
    n.about = keep(v);
    v.notices.push_back(std::move(n));
    return;
  }
  failed_build f;
  f.about = keep(v);
  f.graph = e.arg[1];
  f.exec = instantiates ? 0 : e.arg[0];
  f.from_capture = g != p.graphs.end() && g->second.capture != 0;
  f.family = g != p.graphs.end() ? g->second.family : 0;
  if (p.failed_builds.size() >= most_failed_builds) p.failed_builds.erase(p.failed_builds.begin());
  p.failed_builds.push_back(std::move(f));
}

void model::graph_cloned(process_state& p, const event_view& v) {
  const trace::event& e = *v.event;
  const auto original = p.graphs.find(e.arg[1]);
  if (original == p.graphs.end()) {
    p.graphs[e.arg[0]] = {};
    return;
  }
  if (original->second.family == 0) original->second.family = ++p.families;
  const graph_state copy = original->second;
  for (failed_build& f : p.failed_builds)
    if (f.graph == e.arg[1]) f.family = copy.family;
  p.graphs[e.arg[0]] = copy;
}

// Who looks at the result of an update may run the changed work call by call instead.
void model::work_between(process_state& p, const event_view& v) {
  const call_class cls = v.call->cls;
  const bool launches_graph = cls == call_class::graph_launch;
  if (!launches_graph && cls != call_class::launch && cls != call_class::memcpy && cls != call_class::memset &&
      cls != call_class::memcpy_sync && cls != call_class::memset_sync && cls != call_class::host_func)
    return;
  for (failed_build& f : p.failed_builds) f.other_work = f.other_work || !launches_graph || f.exec != v.event->arg[0];
}

// An exec was made or updated: it takes the place of one that could not be.
void model::build_succeeded(process_state& p, event_view& v, const exec_state& x) {
  const auto g = p.graphs.find(v.event->arg[1]);
  const std::uint64_t family = g == p.graphs.end() ? 0 : g->second.family;
  std::erase_if(p.failed_builds, [&](const failed_build& f) {
    const bool same_exec = f.exec != 0 && (f.exec == x.handle || (f.exec_gone && f.about.thread == v.thread->index));
    const bool same_graph = f.graph == v.event->arg[1] || (family != 0 && f.family == family);
    if (!same_graph && !same_exec) return false;
    notice n = told(f);
    n.recovered = true;
    v.notices.push_back(std::move(n));
    return true;
  });
}

void model::builds_at_launch(process_state& p, event_view& v) {
  if (p.failed_builds.empty()) return;
  std::erase_if(p.failed_builds, [&](const failed_build& f) {
    if (f.exec == 0 || f.exec_gone || f.exec != v.exec->handle) return false;
    notice n = told(f);
    n.exec = v.exec;
    n.old_launched = true;
    n.nothing_between = p.trace.level == trace::trace_level::full && !f.other_work;
    v.notices.push_back(std::move(n));
    return true;
  });
}

void model::builds_at_end(process_state& p, std::vector<notice>& out) {
  for (const failed_build& f : p.failed_builds) out.push_back(told(f));
  p.failed_builds.clear();
}

// ---- execs that pile up ----

void model::count_growth(process_state& p, event_view& v, exec_state& x) {
  x.site = v.event->stack;
  if (x.site == 0) return;
  growth_site& s = p.growth[x.site];
  const auto before = p.execs.find(s.newest);
  // One that was never launched waits for its turn: execs may be made in advance.
  const bool used = before != p.execs.end() && before->second->site == x.site && before->second->replays > 0;
  if (used && !before->second->idle) {
    before->second->idle = true;
    ++s.idle[before->second->content];
  }
  ++s.live;
  s.newest = x.handle;
  v.piled_live = s.live;
  const auto alike = s.idle.find(x.content);
  v.piled_up = alike == s.idle.end() ? 0 : alike->second;
}

// The exec is launched again, or destroyed (site 0 afterwards).
void model::leave_growth(process_state& p, exec_state& x, bool destroyed) {
  const auto s = p.growth.find(x.site);
  if (x.site == 0 || s == p.growth.end()) return;
  if (x.idle) {
    const auto alike = s->second.idle.find(x.content);
    if (alike != s->second.idle.end() && --alike->second == 0) s->second.idle.erase(alike);
    x.idle = false;
  }
  if (!destroyed) return;
  if (--s->second.live == 0) p.growth.erase(s);
}

// ---- code that goes ----

// Everything that came from `holder` went with `gone`: itself, or the context that it was loaded into.
void model::code_unloaded(process_state& p, const event_view& v, std::uint64_t holder, std::uint64_t gone) {
  for (const auto& [exec, x] : p.execs) {
    for (std::uint32_t at = 0; at < x->nodes.size(); ++at) {
      exec_node& n = x->nodes[at];
      if (n.type != trace::node_type::kernel || !n.function) continue;
      if (!comes_from(p, n.function->module, holder)) continue;
      n.code_gone = true;
      if (x->unloaded.handle == 0) x->unloaded = {gone, v.call->api, at, false};
    }
  }
}

// A context takes its memory and its modules along. Libraries belong to none.
void model::context_gone(process_state& p, const event_view& v, std::uint64_t context) {
  if (context == 0) return;
  p.memory.remove_context(context, freed_by(v));
  if (v.thread->context == context) v.thread->context = 0;
  for (const auto& [exec, x] : p.execs)
    if (x->context == context) x->context_gone_by = v.call->api;
  std::vector<std::uint64_t> went;
  for (const auto& [module, owner] : p.modules)
    if (owner == context) went.push_back(module);
  for (const std::uint64_t module : went) {
    code_unloaded(p, v, module, context);
    p.modules.erase(module);
    forget_functions(p, module);
  }
}

// The driver says that a context of the graph is destroyed. Which kernels ran in it is not recorded: a graph may be
// instantiated while another context is current than those of its kernels (measured on an H200: it runs on).
void model::blame_context(event_view& v) {
  constexpr int context_is_destroyed = 709;
  exec_state& x = *v.exec;
  if (v.event->result != context_is_destroyed || x.unloaded.handle != 0 || x.context_gone_by.empty()) return;
  const auto kernel = std::find_if(x.nodes.begin(), x.nodes.end(), [](const exec_node& n) {
    return n.type == trace::node_type::kernel && n.function && n.enabled;
  });
  if (kernel == x.nodes.end()) return;
  kernel->code_gone = true;
  x.unloaded = {x.context, x.context_gone_by, static_cast<std::uint32_t>(kernel - x.nodes.begin()), false};
}

// What came from it is gone as well; its handles may be given out again.
void model::forget_functions(process_state& p, std::uint64_t holder) {
  std::vector<std::uint64_t> gone;
  for (const auto& [handle, f] : p.functions)
    if (comes_from(p, f->module, holder)) gone.push_back(handle);
  for (const std::uint64_t handle : gone) p.functions.erase(handle);
}

// A node got other parameters; perhaps it was the one whose code had gone. `function`: the new ones name one that is
// loaded.
void model::edited_code(exec_state& x, std::uint32_t node, bool function) {
  if (function) x.nodes[node].code_gone = false;
  if (x.unloaded.handle == 0 || x.nodes[x.unloaded.node].code_gone) return;
  const auto other = std::find_if(x.nodes.begin(), x.nodes.end(), [](const exec_node& n) { return n.code_gone; });
  if (other == x.nodes.end()) {
    x.unloaded = {};
  } else {
    x.unloaded.node = static_cast<std::uint32_t>(other - x.nodes.begin());
  }
}

void model::stale_code_at_launch(process_state&, event_view& v) {
  exec_state& x = *v.exec;
  if (x.unloaded.handle == 0 || x.unloaded.told || x.unknown || !x.nodes[x.unloaded.node].enabled) return;
  x.unloaded.told = true;
  notice n;
  n.what = own_event::code_unloaded;
  n.about = keep(v);
  n.exec = &x;
  n.kernel = x.nodes[x.unloaded.node].function->name;
  n.node = x.nodes[x.unloaded.node].index;
  n.code = x.unloaded.handle;
  n.unloaded_by = x.unloaded.by;
  v.notices.push_back(std::move(n));
}

// ---- copies of host memory ----

void model::pageable_at_launch(process_state& p, event_view& v) {
  exec_state& x = *v.exec;
  if (!x.changed || x.unknown) return;
  std::size_t count = 0;
  for (host_operand& h : x.host_operands) {
    if (h.told || !x.nodes[h.node].enabled) continue;
    h.told = true;
    if (p.memory.find(h.address) || count++ >= most_told_copies) continue;
    notice n;
    n.what = own_event::pageable_copy;
    n.about = keep(v);
    n.exec = &x;
    n.address = h.address;
    n.bytes = h.bytes;
    n.node = x.nodes[h.node].index;
    n.to_host = h.to_host;
    v.notices.push_back(std::move(n));
  }
}

} // namespace capturesan
