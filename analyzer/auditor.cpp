#include "analyzer/auditor.h"

#include <algorithm>
#include <ctime>
#include <filesystem>

#include <fmt/format.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace capturesan {

namespace {

// While processes run, events younger than this wait: a thread may be about to write an older one.
constexpr std::int64_t settle_ns = 100'000'000;
// How long the culprit of a capture may come after the capture's end in the merged order.
constexpr std::int64_t culprit_wait_ns = 1'000'000'000;
// A clock rate measured over less than this is replaced by a better one.
constexpr std::uint64_t short_span_ns = 100'000'000;
constexpr std::size_t most_notes = 100;

std::uint64_t ticks_now() {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  std::uint64_t t;
  asm volatile("mrs %0, cntvct_el0" : "=r"(t));
  return t;
#else
  return 0;
#endif
}

std::int64_t monotonic_now() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

std::string words(trace::lost_why why) {
  switch (why) {
  case trace::lost_why::disk_full:
    return "the disk was full";
  case trace::lost_why::file_size_limit:
    return "the file size limit (ulimit -f) was reached";
  case trace::lost_why::max_trace:
    return "the size limit of the trace was reached";
  case trace::lost_why::no_memory:
    return "there was no memory";
  case trace::lost_why::io:
    return "writing failed";
  case trace::lost_why::none:
    break;
  }
  return "the shim could not write them";
}

} // namespace

auditor::auditor(const compiled_rules& rules, audit_options options)
    : rules_(rules), options_(std::move(options)), store_(options_.symbols, [this](finding& f) { take(f); }),
      engine_(rules_, store_) {
  set_up();
}

auditor::auditor(rule_set rules, audit_options options)
    : owned_(std::make_unique<rule_set>(std::move(rules))), rules_(owned_->compiled()), options_(std::move(options)),
      store_(options_.symbols, [this](finding& f) { take(f); }), engine_(rules_, store_) {
  set_up();
}

void auditor::take(finding& f) {
  if (options_.suppress) options_.suppress(f);
  if (options_.on_new_finding) options_.on_new_finding(f);
}

void auditor::set_up() {
  model_.code = options_.code.get();
  model_.on_capture = [this](process_state& p, const capture_state& c) { note_capture(p, c); };
  model_.on_exec = [this](process_state&, const exec_state& x) { note_exec(x, true); };
}

result<std::size_t> auditor::add_source(std::unique_ptr<byte_source> bytes, const std::string& name) {
  auto file = trace_file::open(std::move(bytes), name);
  if (!file) return file.problems();
  files_.push_back(std::move(file.value()));
  trace_file& f = *files_.back();
  model_.add(f);
  merger_.add(f);
  const auto began = static_cast<std::int64_t>(f.process().clock_ns);
  start_ns_ = files_.size() == 1 ? began : std::min(start_ns_, began);
  store_.set_start(start_ns_);
  return std::size_t{1};
}

result<std::size_t> auditor::add(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ec;
  std::vector<std::string> found;
  if (fs::is_directory(path, ec)) {
    for (fs::directory_iterator it(path, ec), end; !ec && it != end; it.increment(ec)) {
      if (it->path().extension() == trace::file_suffix) found.push_back(it->path().string());
    }
    std::sort(found.begin(), found.end());
    if (found.empty() && !options_.follow) {
      return problem{{path},
                     "TRC006",
                     "there is no trace in this folder",
                     "a trace is a " + std::string(trace::file_suffix) +
                         " file; nothing was recorded, or it lies elsewhere",
                     ""};
    }
  } else {
    found.push_back(path);
  }
  std::size_t added = 0;
  std::vector<problem> problems;
  for (const auto& file : found) {
    if (paths_.contains(file)) continue;
    auto bytes = open_file(file, options_.follow);
    auto one = bytes ? add_source(std::move(bytes.value()), file) : result<std::size_t>(bytes.problems());
    if (one) {
      paths_.insert(file);
      ++added;
    } else if (!options_.follow) { // a file that is being created becomes readable by and by
      problems.insert(problems.end(), one.problems().begin(), one.problems().end());
    }
  }
  if (!problems.empty()) return problems;
  return added;
}

// All processes of a machine share one tick rate; the longest measurement of it is the best.
void auditor::set_rates() {
  trace_file* best = nullptr;
  for (const auto& f : files_)
    if (best == nullptr || f->clock_span_ns() > best->clock_span_ns()) best = f.get();
  for (const auto& f : files_) {
    traced_process& p = f->process();
    if (options_.follow && !finished_ && p.state == trace::process_state::running) {
      const std::uint64_t ticks = ticks_now();
      const std::int64_t ns = monotonic_now() - static_cast<std::int64_t>(p.clock_ns);
      if (ticks > p.clock_ticks && ns > 1'000'000)
        f->set_rate(static_cast<double>(ns) / static_cast<double>(ticks - p.clock_ticks));
    } else if (!options_.follow && f->clock_span_ns() < short_span_ns && best->clock_span_ns() > f->clock_span_ns()) {
      f->set_rate(best->process().ns_per_tick);
    }
  }
}

std::size_t auditor::read_up_to(std::int64_t horizon_ns) {
  std::size_t records = 0;
  for (const auto& f : files_) records += f->refresh();
  set_rates();
  if (finished_) {
    for (const auto& f : files_) f->add_unfinished();
  }
  merger_.collect();
  merger_.drain(horizon_ns, [&](const merged_event& e) {
    ++summary_.events;
    last_ns_ = e.at_ns;
    model_.apply(e, view_);
    engine_.on_event(view_);
    for (notice& n : view_.notices) engine_.on_notice(*view_.process, n);
    if ((view_.event->flags & trace::event_unfinished) != 0) note_unfinished();
  });
  const std::int64_t settled = finished_ ? merger::no_horizon : last_ns_ - culprit_wait_ns;
  for (auto& [p, c] : model_.take_unexplained(settled)) engine_.on_unexplained(*p, *c);
  if (options_.follow && !options_.keep && !finished_) {
    for (const auto& f : files_) f->release_consumed();
  }
  return records;
}

std::size_t auditor::poll() {
  if (finished_) return 0;
  const std::size_t n = read_up_to(options_.follow ? monotonic_now() - settle_ns : merger::no_horizon);
  summarize();
  summarize_rules();
  return n;
}

void auditor::finish() {
  if (finished_) return;
  finished_ = true;
  read_up_to(merger::no_horizon);
  for (const auto& p : model_.processes()) {
    p->now_ns = INT64_MAX; // nothing follows
    std::vector<notice> found;
    model_.at_end(*p, found);
    for (notice& n : found) engine_.on_notice(*p, n);
    report_process(*p);
  }
  summarize();
  summarize_rules();
  if (const std::string unseen = unseen_parts(); !unseen.empty())
    summary_.notes.push_back("the operands of these were not judged: " + unseen);
  for (const rule_status& r : summary_.rules) {
    if (!r.partly.empty()) summary_.notes.push_back(fmt::format("{} may have missed some: {}", r.id, r.partly));
  }
  if (!options_.close || files_.empty()) return;
  const closing_notes notes = options_.close(summary_);
  summary_.notes.insert(summary_.notes.end(), notes.remarks.begin(), notes.remarks.end());
  for (const own_note& note : notes.suppressions) {
    engine_.on_own_event(own_event::suppression, *model_.processes().front(), last_ns_, {note.text, note.line});
  }
  summarize_rules();
}

// A call that hangs, or was under way when the process was killed.
void auditor::note_unfinished() {
  if (summary_.notes.size() >= most_notes) return;
  const process_state& p = *view_.process;
  summary_.notes.push_back(fmt::format("process {}: {} on thread {} had not returned when the trace ended", p.trace.pid,
                                       view_.call->api, store_.thread(p, view_.thread->index).name));
}

// What a process says about the completeness of its own trace.
void auditor::report_process(process_state& p) {
  const traced_process& t = p.trace;
  if (t.lost > 0) {
    engine_.on_own_event(own_event::trace_lost, p, last_ns_,
                         {fmt::format("{} records were not written because {}", t.lost, words(t.lost_reason)), t.lost});
  }
  if (t.truncated) {
    summary_.complete = false;
    engine_.on_own_event(
        own_event::trace_lost, p, last_ns_,
        {fmt::format("{} is cut off or damaged", std::filesystem::path(t.path).filename().string()), 0});
  }
  if (!t.gaps.unnamed.empty() && !t.truncated) {
    summary_.complete = false;
    engine_.on_own_event(own_event::trace_lost, p, last_ns_, {"the trace does not name all of its calls", 0});
  }
  if (!t.gaps.unseen.empty() && !t.truncated && t.recycled == 0 && t.lost == 0) {
    summary_.complete = false;
    engine_.on_own_event(own_event::trace_lost, p, last_ns_,
                         {"a graph was used whose instantiation is not in the trace", 0});
  }
  if (t.recycled > 0) {
    summary_.complete = false;
    engine_.on_own_event(own_event::trace_lost, p, last_ns_,
                         {"the trace was followed while it was recorded and keeps only its newest part", t.recycled});
  }
  if (t.cupti == trace::cupti_state::unavailable) {
    summary_.complete = false;
    engine_.on_own_event(own_event::trace_lost, p, last_ns_, {"CUPTI was asked for and was not to be had", 0});
  }
  for (const traced_text& text : t.texts) {
    switch (text.role) {
    case trace::text_role::uncovered:
      engine_.on_own_event(own_event::uncovered, p, last_ns_, {text.text, text.key});
      break;
    case trace::text_role::deepbind:
      engine_.on_own_event(own_event::deepbind, p, last_ns_, {text.text, text.key});
      break;
    case trace::text_role::unsupported:
      engine_.on_own_event(own_event::unsupported, p, last_ns_, {text.text, text.key});
      break;
    case trace::text_role::cupti_holder:
      engine_.on_own_event(own_event::cupti_held, p, last_ns_, {text.text, text.key});
      break;
    case trace::text_role::note:
      summary_.notes.push_back(fmt::format("process {}: {}", t.pid, text.text));
      break;
    case trace::text_role::hook_count:
      summary_.coverage[text.text].first += text.key;
      break;
    case trace::text_role::cupti_count:
      summary_.coverage[text.text].second += text.key;
      break;
    default:
      break;
    }
  }
}

} // namespace capturesan
