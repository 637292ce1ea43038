#include "analyzer/findings.h"

#include <algorithm>

#include <fmt/format.h>

#include "analyzer/cuda_results.h"
#include "analyzer/evidence.h"
#include "analyzer/python_frames.h"

namespace capturesan {

namespace {

constexpr std::size_t most_cascade = 64;
constexpr std::size_t fingerprint_frames = 3;
constexpr std::size_t most_alike = 256; // findings of one fingerprint
constexpr std::string_view shim_name = "libcapturesan.so";

std::string file_name(std::string_view path) {
  const auto slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

// FNV-1a, 64 bits, twice with different starts: stable over platforms and versions, which std::hash is not.
std::string digest(std::string_view text) {
  const auto fnv = [&](std::uint64_t h) {
    for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
    return h;
  };
  return fmt::format("{:016x}{:016x}", fnv(0xcbf29ce484222325ull), fnv(0x9ae16a3b2f90404full));
}

// Frames of the driver and of the CUDA runtime say which call it was, those of the C library and of the interpreter how
// the program was started; not who made the call.
bool is_nobodys(std::string_view module) {
  static constexpr std::string_view names[] = {"libcuda.so", "libcudart", "libc.so", "libpthread.so",
                                               "ld-linux",   "libpython", "python3"};
  return std::any_of(std::begin(names), std::end(names), [&](auto name) { return module.starts_with(name); });
}

// The compiler's clones of a function ("f(int) [clone .isra.0]", "f.part.0") come and go with optimisation.
std::string_view without_clone(std::string_view symbol) {
  symbol = symbol.substr(0, symbol.find(" [clone"));
  for (const std::string_view mark : {".isra.", ".constprop.", ".part.", ".cold", ".lto_priv."}) {
    symbol = symbol.substr(0, symbol.find(mark));
  }
  return symbol;
}

void add_frames(std::string& all, const std::vector<stack_frame>& stack) {
  std::size_t used = 0;
  for (const stack_frame& frame : stack) {
    if (used == fingerprint_frames) break;
    if (is_nobodys(frame.module) || frame.symbol == "_start") continue;
    // A Python frame has no module; its file is as good, without the folders of this machine.
    all += '\n' + (frame.module.empty() ? file_name(frame.file) : frame.module) + '!';
    all += without_clone(frame.symbol);
    ++used;
  }
}

bool groups_by(const rule& r, field_id id) {
  return std::find(r.group_by.begin(), r.group_by.end(), id) != r.group_by.end();
}

// What differs from run to run although the mistake is the same.
bool is_fleeting(field_id id) {
  return id == field_id::mem_id || id == field_id::graph_id || info(id).type == field_type::address;
}

// The insides of the simulated driver's CUDA runtime say nothing about the program.
bool is_our_runtime(std::string_view symbol) { return symbol.find("capturesan::runtime::") != symbol.npos; }

} // namespace

thread_ref finding_store::thread(const process_state& p, std::uint32_t index) const {
  thread_ref t;
  t.pid = p.trace.pid;
  t.index = index;
  const auto it = p.trace.threads.find(index);
  if (it != p.trace.threads.end()) {
    t.tid = it->second.tid;
    t.name = it->second.name;
  }
  return t;
}

std::vector<stack_frame> finding_store::stack(process_state& p, std::uint32_t id) {
  return frames(p, p.trace.stack(id));
}

std::vector<stack_frame> finding_store::frames(process_state& p, std::span<const std::uint64_t> addresses) {
  std::vector<stack_frame> out;
  for (const std::uint64_t address : addresses) {
    const traced_module* m = p.trace.module_at(address);
    if (m != nullptr && file_name(m->path).starts_with(shim_name)) continue;
    if (m != nullptr && names_ != nullptr) {
      const bool runtime = file_name(m->path).starts_with("libcudart");
      for (const stack_frame& f : names_->frame(m->path, m->build_id, m->bias, address))
        if (!runtime || !is_our_runtime(f.symbol)) out.push_back(f);
      continue;
    }
    stack_frame f;
    f.address = address;
    if (m != nullptr) {
      f.module = file_name(m->path);
      f.offset = address - m->bias;
    }
    out.push_back(std::move(f));
  }
  return out;
}

capture_ref finding_store::capture(process_state& p, const capture_state& c) {
  static constexpr std::string_view modes[] = {"global", "thread_local", "relaxed"};
  capture_ref r;
  r.id = c.id;
  r.mode = modes[static_cast<std::size_t>(c.mode)];
  r.stream = stream_name(p, c.origin);
  if (constexpr std::string_view word = "stream "; r.stream.starts_with(word))
    r.stream.erase(0, word.size()); // reports say it
  r.origin_thread = thread(p, c.thread);
  r.began_at = stack(p, c.stack);
  return r;
}

pointer_ref finding_store::pointer(process_state& p, const subject& s, bool whole) {
  const pointer_use& u = *s.pointer;
  const exec_node& n = s.view().exec->nodes[u.node];
  const allocation& a = u.owner();
  pointer_ref r;
  r.graph = s.view().exec->id;
  r.address = u.address;
  r.node = n.index;
  r.node_type = show(field_id::param_node_type, s.get(field_id::param_node_type));
  r.operand = show(field_id::param_operand, s.get(field_id::param_operand));
  r.kernel = s.kernel_name();
  r.parameter = u.parameter;
  r.offset = u.offset;
  r.allocation = a.base;
  r.allocation_bytes = a.size;
  r.allocation_offset = u.address - a.base;
  r.owner_now = s.owner_now();
  r.allocated_in = s.place_of(a.made_stack);
  r.freed_in = s.place_of(a.freed_stack);
  if (!whole) return r;
  r.allocated_at = stack(p, a.made_stack);
  r.freed_at = stack(p, a.freed_stack);
  return r;
}

std::span<const std::uint64_t> finding_store::addresses_of(const process_state& p, const event_view& v) {
  const std::span<const std::uint64_t> own = p.trace.stack(v.event->stack);
  if (!own.empty() || v.exec == nullptr || v.call->cls != trace::call_class::graph_launch) return own;
  for (const auto& [caller, first] : v.exec->launch_sites) {
    if (caller == v.event->arg[1]) return p.trace.stack(first);
  }
  return v.event->arg[1] == 0 ? own : std::span(&v.event->arg[1], 1);
}

finding finding_store::make(const rule& r, const subject& s, const rule_variant* variant) {
  const event_view& v = s.view();
  process_state& p = *v.process;
  finding f;
  f.rule = r.about.id;
  f.name = r.about.name;
  f.sev = variant != nullptr && variant->sev ? *variant->sev : r.about.sev;
  f.conf = variant != nullptr && variant->conf ? *variant->conf : r.about.conf;
  f.message = (variant != nullptr && variant->message ? *variant->message : r.message).fill(s);
  f.remediation = (variant != nullptr && variant->remediation ? *variant->remediation : r.remediation).fill(s);
  f.doc = r.about.doc;
  f.time_s = seconds(v.at_ns);
  if (v.event != nullptr) {
    f.api = v.call->api;
    f.symbol = v.call->symbol;
    f.returned = (v.event->flags & trace::event_unfinished) == 0;
    f.result = v.event->result;
    if (f.returned) f.result_name = result_name(f.result);
    f.thread = thread(p, v.thread->index);
    f.stack = frames(p, addresses_of(p, v));
    f.python = python_frames(v.python);
    f.runtime_api = v.runtime_call;
  } else {
    f.thread.pid = p.trace.pid;
  }
  if (v.capture != nullptr) f.capture = capture(p, *v.capture);
  if (v.exec != nullptr)
    f.graph = graph_ref{v.exec->id, v.is_replay ? v.exec->replays : 0, v.exec->nodes.size(), v.exec->place};
  if (s.pointer != nullptr) f.pointers.push_back(pointer(p, s, true));
  if (v.after_culprit && v.capture != nullptr && v.capture->culprit_finding >= 0) {
    f.after = findings_[static_cast<std::size_t>(v.capture->culprit_finding)].fingerprint;
  }
  f.fingerprint = fingerprint(r, s, f);
  doubt(f, s);
  return f;
}

// Where records are missing, what looks like a fault may be none.
void finding_store::doubt(finding& f, const subject& s) {
  if (f.conf == confidence::suspected) return;
  if (s.pointer != nullptr && s.pointer->guessed) {
    f.conf = confidence::suspected;
    f.message += " (which of several captures the node is of was guessed from its place in the graph)";
  }
  if (s.pointer != nullptr && s.view().exec->nodes[s.pointer->node].doubtful) {
    f.conf = confidence::suspected;
    f.message += " (which node it is was guessed from its place, after an update from another graph)";
  }
  if (evidence_is_whole(s)) return;
  f.conf = confidence::suspected;
  f.over_gap = true;
  f.message += " (the trace has a gap that this may hang on)";
}

// Rule, call, the nearest callers by module and symbol, and what the rule groups by. Nothing that a rebuild, another
// load address or an added line would change. Findings may have it in common; a number behind it counts them.
std::string finding_store::fingerprint(const rule& r, const subject& s, const finding& f) {
  std::string all = r.about.id + '\n' + f.api;
  add_frames(all, f.python);
  add_frames(all, f.stack);
  for (const field_id g : r.group_by) {
    if (!is_fleeting(g)) all += '\n' + std::string(info(g).name) + '=' + show(g, s.get(g));
  }
  if (groups_by(r, field_id::mem_id) && !f.pointers.empty()) { // of the first of its uses
    const pointer_ref& u = f.pointers.front();
    all += fmt::format("\n{} {} {} {}", u.kernel.empty() ? u.node_type : u.kernel, u.operand, u.parameter, u.offset);
    add_frames(all, u.allocated_at);
  }
  return digest(all);
}

// The exact place: return addresses, relative to what they are in, and lines of Python.
void finding_store::add_place(std::string& all, const process_state& p, std::span<const std::uint64_t> addresses) {
  for (const std::uint64_t address : addresses) {
    const traced_module* m = p.trace.module_at(address);
    const std::string module = m == nullptr ? std::string() : file_name(m->path);
    if (is_nobodys(module) || module.starts_with(shim_name)) continue;
    all += fmt::format("\n{}+{:x}", module, m == nullptr ? address : address - m->bias);
  }
}

// What makes two findings different in this run. How bad and how sure it is does not: the worst is kept.
std::string finding_store::identity(const rule& r, const subject& s) {
  const event_view& v = s.view();
  std::string all = r.about.id;
  for (const field_id g : r.group_by) all += '\n' + show(g, s.get(g));
  if (v.event == nullptr) return all;
  all += '\n';
  all += v.call->api;
  if (groups_by(r, field_id::mem_id)) return all;
  all += '\n';
  all += v.python;
  add_place(all, *v.process, addresses_of(*v.process, v));
  return all;
}

// Another use of what a finding is about, or the same again.
void finding_store::count(int index, const subject& s) {
  finding& f = findings_[static_cast<std::size_t>(index)];
  tally& t = tallies_[static_cast<std::size_t>(index)];
  const event_view& v = s.view();
  const auto call =
      v.event == nullptr ? std::pair<std::uint64_t, std::uint32_t>() : std::pair(v.event->begin, v.thread->index);
  if (v.event == nullptr || t.process != v.process || t.call != call) ++f.count;
  t.process = v.process;
  t.call = call;
  if (s.pointer == nullptr || v.exec == nullptr) return;
  const std::pair node(v.exec->id, s.pointer->node);
  if (!t.uses
           .emplace(node.first, node.second, s.pointer->address,
                    s.pointer->parameter * 8 + static_cast<int>(s.pointer->role))
           .second)
    return;
  ++f.uses;
  f.nodes += t.node != node ? 1 : 0;
  t.node = node;
  t.graphs.insert(v.exec->id);
  f.graphs = t.graphs.size();
  const bool by_make = f.uses == 1;
  if (!by_make && f.pointers.size() < most_pointers) f.pointers.push_back(pointer(*v.process, s, false));
}

// Findings of one fingerprint are numbered, so that a baseline counts them. What is only suspected has numbers of its
// own: whether it is seen may be chance, and a baseline leaves it out.
void finding_store::number(finding& f, const std::string& kind) {
  alike& same = by_fingerprint_[kind];
  if (f.conf == confidence::suspected) {
    f.fingerprint = kind + "-suspected" + (++same.suspected > 1 ? fmt::format("-{}", same.suspected) : "");
  } else {
    f.fingerprint = kind + (++same.sure > 1 ? fmt::format("-{}", same.sure) : "");
  }
}

// One more than are listed: it is counted with the last of its kind, which a baseline that knows fewer does not know
// then.
int finding_store::not_listed(const listed& of, const std::string& kind) {
  finding& last = findings_[static_cast<std::size_t>(of.last)];
  if (++last.not_listed == 1) {
    last.fingerprint = kind + (last.conf == confidence::suspected ? "-suspected" : "") + "-and-more";
    if (on_new_) on_new_(last);
  }
  return of.last;
}

// Seen again: worse, or without what made it doubtful.
void finding_store::raise(int index, const rule& r, const subject& s, const rule_variant* variant) {
  finding& f = findings_[static_cast<std::size_t>(index)];
  const auto sev = variant != nullptr && variant->sev ? *variant->sev : r.about.sev;
  const auto conf = variant != nullptr && variant->conf ? *variant->conf : r.about.conf;
  const bool worse = sev > f.sev && conf >= f.conf;
  const bool surer = sev >= f.sev && conf > f.conf; // a look-alike is excluded this time, or nothing is missing
  if ((!worse && !surer) || !evidence_is_whole(s)) return;
  finding again = make(r, s, variant);
  if (again.conf < f.conf) return; // doubted for another reason
  const bool was_suspected = f.conf == confidence::suspected;
  f.sev = again.sev;
  f.conf = again.conf;
  f.message = std::move(again.message);
  f.over_gap = false;
  // What it speaks of comes first; if it is a new use, count() has put it last.
  const auto speaks_of = std::find_if(f.pointers.begin(), f.pointers.end(), [&](const pointer_ref& u) {
    return !again.pointers.empty() && u.node == again.pointers.front().node &&
           u.address == again.pointers.front().address;
  });
  if (speaks_of != f.pointers.end()) std::rotate(f.pointers.begin(), speaks_of, speaks_of + 1);
  if (was_suspected && f.conf != confidence::suspected && f.not_listed == 0)
    number(f, tallies_[static_cast<std::size_t>(index)].kind);
  if (on_new_) on_new_(f);
}

int finding_store::add(const rule& r, const subject& s, const rule_variant* variant) {
  std::string key = digest(identity(r, s));
  if (const auto known = by_identity_.find(key); known != by_identity_.end()) {
    count(known->second, s);
    raise(known->second, r, s, variant);
    return known->second;
  }
  const auto unlisted = unlisted_.find(key);
  if (unlisted != unlisted_.end()) { // counted already, unless it is worse or surer now
    const auto sev = variant != nullptr && variant->sev ? *variant->sev : r.about.sev;
    const auto conf = variant != nullptr && variant->conf ? *variant->conf : r.about.conf;
    if (sev <= unlisted->second.sev && conf <= unlisted->second.conf) return unlisted->second.counted_with;
  }
  finding f = make(r, s, variant);
  const std::string kind = f.fingerprint;
  // For each severity, and apart from what is only suspected: many harmless ones must not hide what is not.
  alike& same = by_fingerprint_[kind];
  listed& of = f.conf == confidence::suspected ? same.of_suspected : same.of_severity[static_cast<std::size_t>(f.sev)];
  if (of.count == most_alike) {
    if (unlisted != unlisted_.end() && f.sev <= unlisted->second.sev && f.conf <= unlisted->second.conf) return of.last;
    unlisted_.insert_or_assign(std::move(key), unlisted_finding{f.sev, f.conf, of.last});
    return not_listed(of, kind);
  }
  ++of.count;
  number(f, kind);
  const int index = static_cast<int>(findings_.size());
  of.last = index;
  by_identity_.emplace(std::move(key), index);
  f.count = 0;
  findings_.push_back(std::move(f));
  tallies_.emplace_back();
  tallies_.back().kind = kind;
  count(index, s);
  if (on_new_) on_new_(findings_.back());
  return index;
}

void finding_store::add_cascade(std::vector<cascade_call>& list, const cascade_call& c) {
  const auto same = std::find_if(list.begin(), list.end(), [&](const cascade_call& o) {
    return o.api == c.api && o.result == c.result && o.thread.pid == c.thread.pid && o.thread.index == c.thread.index;
  });
  if (same != list.end()) {
    ++same->count;
  } else if (list.size() < most_cascade) {
    list.push_back(c);
  }
}

void finding_store::add_cascade(int index, const cascade_call& c) {
  if (index >= 0) add_cascade(findings_[static_cast<std::size_t>(index)].cascade, c);
}

} // namespace capturesan
