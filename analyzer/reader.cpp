#include "analyzer/reader.h"

#include <algorithm>
#include <cstddef>

#include "analyzer/reader_bytes.h"

namespace capturesan {

namespace {

using file_bytes::chunk_offset;
using file_bytes::load;
using file_bytes::slot;
using trace::record_kind;

std::string text_of(const std::byte* at, std::size_t most) {
  const char* c = reinterpret_cast<const char*>(at);
  return {c, ::strnlen(c, most)};
}

// Whether this version writes such records.
bool is_known(record_kind kind) {
  switch (kind) {
#define RECORD(name, value, meaning) case record_kind::name:
    CAPTURESAN_RECORDS(RECORD)
#undef RECORD
    return true;
  }
  return false;
}

bool is_of_this_version(byte_source& bytes) {
  std::byte h[sizeof(trace::file_header)];
  using trace::file_header;
  return bytes.read(0, h, sizeof(h)) == sizeof(h) &&
         load<std::uint16_t>(h + offsetof(file_header, major)) == trace::format_major &&
         load<std::uint16_t>(h + offsetof(file_header, minor)) == trace::format_minor;
}

// Texts that say something about the process rather than about the next event.
bool is_process_text(std::uint16_t role) {
  const auto r = static_cast<trace::text_role>(role);
  return r != trace::text_role::function_name && r != trace::text_role::global_name &&
         r != trace::text_role::runtime_call && r != trace::text_role::loaded && r != trace::text_role::graph_nodes;
}

} // namespace

// ---- header ----

problem trace_file::header_problem(const std::byte* h, std::size_t bytes, const std::string& name) const {
  using trace::file_header;
  if (bytes < sizeof(trace::file_magic) || std::memcmp(h, trace::file_magic, sizeof(trace::file_magic)) != 0) {
    return {
        {name}, "TRC002", "not a trace", "pass a " + std::string(trace::file_suffix) + " file or a folder of them", ""};
  }
  if (bytes < sizeof(file_header)) return {{name}, "TRC003", "the trace ends inside its header", "", ""};
  const auto major = load<std::uint16_t>(h + offsetof(file_header, major));
  const auto minor = load<std::uint16_t>(h + offsetof(file_header, minor));
  if (major < trace::format_oldest || major > trace::format_major) {
    return {{name},
            "TRC004",
            "the trace has format " + std::to_string(major) + "." + std::to_string(minor) + ", this version reads " +
                std::to_string(trace::format_major) + "." + std::to_string(trace::format_minor),
            "read it with the version that recorded it",
            ""};
  }
  if (load<std::uint32_t>(h + offsetof(file_header, header_bytes_)) != trace::header_bytes ||
      load<std::uint32_t>(h + offsetof(file_header, chunk_bytes_)) != trace::chunk_bytes ||
      load<std::uint32_t>(h + offsetof(file_header, slot_bytes_)) != trace::slot_bytes) {
    return {{name}, "TRC005", "the trace has a layout this version does not read", "", ""};
  }
  return {};
}

result<std::unique_ptr<trace_file>> trace_file::open(std::unique_ptr<byte_source> bytes, const std::string& name) {
  std::vector<std::byte> head(sizeof(trace::file_header));
  head.resize(bytes->read(0, head.data(), head.size()));
  std::unique_ptr<trace_file> file(new trace_file(std::move(bytes)));
  if (problem p = file->header_problem(head.data(), head.size(), name); !p.message.empty()) return p;
  file->process_.path = name;
  file->read_header(head.data());
  return file;
}

void trace_file::read_header(const std::byte* h) {
  using trace::file_header;
#define FIELD(type, name) load<type>(h + offsetof(file_header, name))
  traced_process& p = process_;
  major_ = FIELD(std::uint16_t, major);
  p.pid = FIELD(std::uint32_t, pid);
  p.parent_pid = FIELD(std::uint32_t, parent_pid);
  p.clock_ticks = FIELD(std::uint64_t, clock_ticks);
  p.clock_ns = FIELD(std::uint64_t, clock_ns);
  p.driver = static_cast<trace::driver_kind>(FIELD(std::uint32_t, driver));
  p.driver_version = FIELD(std::uint32_t, driver_version);
  p.level = static_cast<trace::trace_level>(FIELD(std::uint32_t, level));
  p.state = static_cast<trace::process_state>(FIELD(std::uint32_t, state));
  p.cupti = static_cast<trace::cupti_state>(FIELD(std::uint32_t, cupti));
  p.lost = std::max(FIELD(std::uint64_t, lost), known_lost_);
  p.lost_first = FIELD(std::uint64_t, lost_first);
  p.lost_last = FIELD(std::uint64_t, lost_last);
  p.lost_reason = static_cast<trace::lost_why>(FIELD(std::uint32_t, lost_reason));
  p.driver_string = text_of(h + offsetof(file_header, driver_string), sizeof(file_header::driver_string));
  p.device = text_of(h + offsetof(file_header, device), sizeof(file_header::device));
  p.started_ns = FIELD(std::uint64_t, start_time_ns);
  p.capability = FIELD(std::uint32_t, capability);
  chunks_promised_ = FIELD(std::uint64_t, chunks);
  // What was used anew before it was read here is gone.
  recycled_ = FIELD(std::uint64_t, recycled);
  if (recycled_ > consumed_) p.recycled = recycled_ - consumed_;
  recycled_until_ = FIELD(std::uint64_t, recycled_until);
  const auto ticks2 = FIELD(std::uint64_t, clock2_ticks);
  const auto ns2 = FIELD(std::uint64_t, clock2_ns);
#undef FIELD
  if (ticks2 > p.clock_ticks && ns2 > p.clock_ns) {
    const double scale = static_cast<double>(ns2 - p.clock_ns) / static_cast<double>(ticks2 - p.clock_ticks);
    if (scale > 1e-3 && scale < 1e3) {
      clock_span_ns_ = ns2 - p.clock_ns;
      if (own_rate_) p.ns_per_tick = scale;
    }
  }
}

// ---- index ----

// Looks at a chunk's header: how far it is written, and whether it has been used anew since.
std::uint16_t trace_file::used_slots(std::uint32_t number) {
  using trace::chunk_header;
  std::byte h[sizeof(chunk_header)];
  const std::size_t got = bytes_->read(chunk_offset(number), h, sizeof(h));
  if (got < sizeof(h) || load<std::uint32_t>(h) != trace::chunk_magic) {
    if (number < chunks_promised_) got < sizeof(h) ? void(cut_ = true) : process_.damaged();
    return 0;
  }
  chunk_info& c = chunks_[number];
  const auto sequence = load<std::uint64_t>(h + offsetof(chunk_header, sequence));
  const auto state = static_cast<trace::chunk_state>(load<std::uint32_t>(h + offsetof(chunk_header, state)));
  if (c.released) {
    if (state == trace::chunk_state::consumed || sequence == c.sequence) return c.indexed; // waiting to be used anew
    c = {};
  }
  if (c.sequence != 0 && sequence != c.sequence) { // used anew for another reader, before it was read here
    ++process_.recycled;
    const std::uint16_t unread = c.unread; // segments that their cursors will find gone
    c = {};
    c.unread = unread;
  }
  c.sequence = sequence;
  c.sealed = state != trace::chunk_state::open;
  c.definitions = load<std::uint32_t>(h + offsetof(chunk_header, purpose)) ==
                  static_cast<std::uint32_t>(trace::chunk_purpose::definitions);
  const auto used = load<std::uint32_t>(h + offsetof(chunk_header, used));
  if (used > trace::slots_per_chunk) process_.damaged();
  c.used = static_cast<std::uint16_t>(std::min<std::uint32_t>(used, trace::slots_per_chunk));
  return c.used;
}

void trace_file::note_used() {
  const std::uint64_t size = bytes_->size();
  const std::uint64_t body = size > trace::header_bytes ? size - trace::header_bytes : 0;
  const auto count = static_cast<std::uint32_t>(
      std::min<std::uint64_t>((body + trace::chunk_bytes - 1) / trace::chunk_bytes, 0xffffffffu));
  while (chunks_.size() < count) {
    active_.push_back(static_cast<std::uint32_t>(chunks_.size()));
    chunks_.emplace_back();
  }
  if (chunks_promised_ > count) cut_ = true; // the file grows before the count does
  for (const std::uint32_t n : active_) chunks_[n].seen_used = used_slots(n);
}

std::size_t trace_file::refresh() {
  std::byte head[sizeof(trace::file_header)];
  if (bytes_->read(0, head, sizeof(head)) == sizeof(head)) read_header(head);
  // A record seen in this first look has all its predecessors, in whichever chunk, visible in the second look below. So
  // a thread's move to another chunk is followed only if it was seen here; see index_chunk.
  note_used();
  std::size_t records = 0;
  for (const std::uint32_t n : active_)
    if (!chunks_[n].definitions) records += index_chunk(n);
  // Definitions last: whatever an event refers to was written before it.
  for (const std::uint32_t n : active_)
    if (chunks_[n].definitions) records += index_chunk(n);
  std::erase_if(active_, [&](std::uint32_t n) {
    const chunk_info& c = chunks_[n];
    if (!c.sealed || c.released || c.indexed < c.used) return false;
    if (!c.definitions) sealed_.push_back(n);
    return true;
  });
  note_gaps();
  return records;
}

// Works out when the records were written that are missing.
void trace_file::note_gaps() {
  traced_process& p = process_;
  if (p.lost > known_lost_) p.gaps.dropped.add(p.lost_first, p.lost_first == 0 ? tick_span::no_end : p.lost_last);
  if (p.recycled > 0) p.gaps.recycled.add(0, recycled_until_ == 0 ? tick_span::no_end : recycled_until_);
  if (!cut_) return;
  p.truncated = true;
  // Chunks are taken in the order in which they lie in the file, unless some were used anew: a chunk behind the cut was
  // taken after all before it, each of which was taken after the moment that its first record tells.
  std::uint64_t from = 0;
  if (recycled_ == 0)
    for (const chunk_info& c : chunks_) from = std::max(from, c.started);
  p.gaps.cut.add(from, tick_span::no_end);
}

std::size_t trace_file::index_chunk(std::uint32_t number) {
  const std::uint16_t used = used_slots(number);
  chunk_info& c = chunks_[number];
  if (used <= c.indexed || c.seen_used == 0) return 0;
  const std::uint16_t end = read_slots(number, c.indexed, used, scratch_);
  if (!still_holds(number, c.sequence, used)) return 0;
  if (end < used) cut_ = true;
  const std::uint16_t first = c.indexed;
  std::size_t records = 0;
  for (std::uint16_t at = first; at < end;) {
    const std::byte* r = scratch_.data() + std::size_t{static_cast<std::uint16_t>(at - first)} * slot;
    const auto kind = static_cast<record_kind>(r[0]);
    if (kind == record_kind::thread && at >= c.seen_used) { // next time
      c.sealed = false;
      break;
    }
    const std::uint16_t next = index_record(c, number, r, at, end);
    if (next == at) break; // cut off
    at = next;
    c.indexed = at;
    ++records;
  }
  return records;
}

void trace_file::release_consumed() {
  const auto consumed = static_cast<std::uint32_t>(trace::chunk_state::consumed);
  std::erase_if(sealed_, [&](std::uint32_t n) {
    chunk_info& c = chunks_[n];
    if (c.unread != 0) return false;
    if (!bytes_->write(chunk_offset(n) + offsetof(trace::chunk_header, state), &consumed, sizeof(consumed)))
      return false;
    c.released = true;
    ++consumed_;
    active_.push_back(n); // it will be used anew
    return true;
  });
}

// Returns the slot behind the record, or `at` if the record is not whole.
std::uint16_t trace_file::index_record(chunk_info& c, std::uint32_t number, const std::byte* r, std::uint16_t at,
                                       std::uint16_t end) {
  const auto kind = static_cast<record_kind>(r[0]);
  const auto slots = std::to_integer<std::uint16_t>(r[1]);
  if (slots == 0 || kind == record_kind::none) { // never written by the shim: step over it
    process_.damaged();
    return static_cast<std::uint16_t>(at + 1);
  }
  if (at + slots > end) {
    end < c.used ? void(cut_ = true) : process_.damaged();
    return at;
  }
  const auto next = static_cast<std::uint16_t>(at + slots);
  if (!is_known(kind) && is_of_this_version(*bytes_))
    process_.damaged(); // only another version may have what is to be stepped over
  if (kind == record_kind::thread) {
    const auto t = load<trace::thread_record>(r);
    c.thread = t.index;
    started_ = t.started;
    if (c.started == 0) c.started = t.started;
    traced_thread& known = process_.threads[t.index];
    known = {t.index, t.tid, text_of(reinterpret_cast<const std::byte*>(t.name), sizeof(t.name)), t.stack_low,
             t.stack_high};
    thread_cursor& cur = cursor(t.index);
    // Keep the thread's segments in the order in which it took its chunks; those being read stay in front.
    const thread_cursor::segment s{t.started, number, next, next, c.sequence};
    const bool reading = cur.segment_ != 0 || cur.slot_ != 0;
    const auto from = cur.segments_.begin() +
                      static_cast<std::ptrdiff_t>(std::min(cur.segment_ + (reading ? 1 : 0), cur.segments_.size()));
    const auto place = std::upper_bound(from, cur.segments_.end(), s,
                                        [](const auto& a, const auto& b) { return a.started < b.started; });
    cur.growing_ = static_cast<std::size_t>(cur.segments_.insert(place, s) - cur.segments_.begin());
    ++c.unread;
    return next;
  }
  absorb(kind, r, std::size_t{slots} * slot);
  if (!c.definitions) add_slots(c.thread, number, at, next);
  return next;
}

void trace_file::add_slots(std::uint32_t thread, std::uint32_t chunk, std::uint16_t first, std::uint16_t end) {
  thread_cursor& cur = cursor(thread);
  const auto continues = [&](const thread_cursor::segment& s) { return s.chunk == chunk && s.end == first; };
  if (cur.growing_ < cur.segments_.size() && continues(cur.segments_[cur.growing_])) {
    cur.segments_[cur.growing_].end = end;
    return;
  }
  for (auto it = cur.segments_.rbegin(); it != cur.segments_.rend(); ++it) {
    if (!continues(*it)) continue;
    it->end = end;
    cur.growing_ = cur.segments_.size() - 1 - static_cast<std::size_t>(it - cur.segments_.rbegin());
    return;
  }
  cur.growing_ = cur.segments_.size();
  ++chunks_[chunk].unread;
  cur.segments_.push_back(
      {started_, chunk, first, end, chunks_[chunk].sequence}); // a chunk without a thread record: damaged, but readable
}

// Takes in at once what events of other threads may need before this thread's next event has its turn.
void trace_file::absorb(record_kind kind, const std::byte* at, std::size_t bytes) {
  constexpr std::size_t head = sizeof(trace::payload_record);
  if (kind == record_kind::lost) {
    const auto l = load<trace::lost_record>(at);
    known_lost_ += l.count;
    process_.lost = std::max(process_.lost, known_lost_);
    process_.gaps.dropped.add(l.first, l.last);
    return;
  }
  if (kind == record_kind::thread_end) {
    const auto t = load<trace::thread_end_record>(at);
    const auto known = process_.threads.find(t.index);
    if (known != process_.threads.end()) known->second.ended = t.ended;
    return;
  }
  if (kind != record_kind::call_name && kind != record_kind::stack && kind != record_kind::module &&
      kind != record_kind::text) {
    return;
  }
  const auto p = load<trace::payload_record>(at);
  if (p.bytes > bytes - head) process_.damaged();
  const std::size_t n = std::min<std::size_t>(p.bytes, bytes - head);
  const char* payload = reinterpret_cast<const char*>(at + head);
  switch (kind) {
  case record_kind::call_name:
    process_.name_call(p.aux, {payload, n});
    break;
  case record_kind::stack: {
    std::vector<std::uint64_t> addresses(n / sizeof(std::uint64_t));
    if (!addresses.empty()) std::memcpy(addresses.data(), payload, addresses.size() * sizeof(std::uint64_t));
    process_.add_stack(p.id, addresses);
    break;
  }
  case record_kind::module: {
    const std::size_t id = std::min<std::size_t>(p.aux, n);
    process_.add_module({p.key, p.value, p.value2, std::string(payload, id), std::string(payload + id, n - id)});
    break;
  }
  case record_kind::text:
    if (is_process_text(p.aux)) {
      process_.texts.push_back({static_cast<trace::text_role>(p.aux), p.key, std::string(payload, n)});
    }
    break;
  default:
    break;
  }
}

std::uint16_t trace_file::read_slots(std::uint32_t chunk, std::uint16_t first, std::uint16_t end,
                                     std::vector<std::byte>& to) {
  const std::size_t want = std::size_t{static_cast<std::uint16_t>(end - first)} * slot;
  if (to.size() < want) to.resize(want);
  const std::size_t got = bytes_->read(chunk_offset(chunk) + std::size_t{first} * slot, to.data(), want);
  return static_cast<std::uint16_t>(first + got / slot);
}

bool trace_file::still_holds(std::uint32_t chunk, std::uint64_t sequence, std::uint16_t end) {
  using trace::chunk_header;
  if (process_.state != trace::process_state::running) return true;
  std::byte h[sizeof(chunk_header)];
  // `used` falls to 0 before anything else is overwritten.
  if (bytes_->read(chunk_offset(chunk), h, sizeof(h)) == sizeof(h) &&
      load<std::uint64_t>(h + offsetof(chunk_header, sequence)) == sequence &&
      load<std::uint32_t>(h + offsetof(chunk_header, used)) >= end) {
    return true;
  }
  ++process_.recycled;
  return false;
}

thread_cursor& trace_file::cursor(std::uint32_t thread) {
  auto& c = cursors_[thread];
  if (!c) c = std::make_unique<thread_cursor>(*this, thread);
  return *c;
}

std::vector<thread_cursor*> trace_file::cursors() {
  std::vector<thread_cursor*> out;
  out.reserve(cursors_.size());
  for (auto& [index, c] : cursors_) out.push_back(c.get());
  return out;
}

} // namespace capturesan
