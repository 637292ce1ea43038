// The events of one thread: reads on from record to record, gives repeated calls as whole events.
#include <algorithm>
#include <cstddef>

#include "analyzer/reader.h"
#include "analyzer/reader_bytes.h"

namespace capturesan {

namespace {

using file_bytes::chunk_offset;
using file_bytes::load;
using file_bytes::slot;
using trace::record_kind;

// Side records of one event; more is damage, not data (a graph of a million nodes stays below).
constexpr std::size_t most_side_bytes = std::size_t{512} << 20;

bool belongs_to_event(record_kind kind) {
  switch (kind) {
  case record_kind::node:
  case record_kind::params:
  case record_kind::capture_status:
  case record_kind::function:
  case record_kind::python_stack:
  case record_kind::text:
  case record_kind::edges:
  case record_kind::descriptor:
  case record_kind::block:
  case record_kind::pointers:
    return true;
  default:
    return false;
  }
}

bool under_way(std::uint64_t word) { return word >> (8 + trace::again_tick_bits) == trace::again_under_way; }

} // namespace

// ---- calls that were under way ----

void trace_file::add_unfinished() {
  for (std::uint32_t n = 0; n < chunks_.size(); ++n) {
    std::byte h[sizeof(trace::chunk_header)];
    if (bytes_->read(chunk_offset(n), h, sizeof(h)) < sizeof(h) || load<std::uint32_t>(h) != trace::chunk_magic)
      continue;
    using trace::chunk_header;
    add_unfinished_again(n, chunks_[n].used);
    const auto begin = load<std::uint64_t>(h + offsetof(chunk_header, pending_begin));
    if (begin == 0) continue;
    trace::event e{};
    e.kind = record_kind::event;
    e.slots = 1;
    e.call = static_cast<std::uint16_t>(load<std::uint32_t>(h + offsetof(chunk_header, pending_call)));
    e.begin = e.end = begin;
    e.stream = load<std::uint64_t>(h + offsetof(chunk_header, pending_stream));
    e.arg[0] = load<std::uint64_t>(h + offsetof(chunk_header, pending_arg));
    e.flags = trace::event_unfinished;
    cursor(chunks_[n].thread).unfinished_.push_back(e);
  }
}

// A call that a chunk's last record says is under way.
void trace_file::add_unfinished_again(std::uint32_t number, std::uint16_t used) {
  if (used < 2 || read_slots(number, 1, used, scratch_) < used) return;
  const auto at = [&](std::uint64_t slot_number) { return scratch_.data() + (slot_number - 1) * slot; };
  const auto last = load<trace::again_record>(at(used - 1u));
  if (last.kind != record_kind::again) return;
  std::uint64_t begin = last.begin;
  for (const std::uint64_t word : last.entry) {
    begin += word >> 8 & trace::again_tick_mask;
    const std::uint64_t like = word & 0xff;
    if (!under_way(word) || like == 0 || like >= used - 1u) continue;
    auto e = load<trace::event>(at(like));
    if (e.kind != record_kind::event) return;
    e.begin = e.end = begin;
    e.result = 0;
    e.flags = trace::event_unfinished;
    cursor(chunks_[number].thread).unfinished_.push_back(e);
    return;
  }
}

// ---- cursor ----

// An event equal to one that the thread wrote into this chunk before, but for its times. False if the word is damaged.
bool thread_cursor::take_again(std::uint64_t word) {
  const auto like = static_cast<std::uint16_t>(word & 0xff);
  const segment& s = segments_[segment_];
  if (like < s.first || like >= slot_) return false;
  if (like < buffer_first_) { // read in an earlier round
    buffer_end_ = file_.read_slots(s.chunk, s.first, buffer_end_, buffer_);
    buffer_first_ = s.first;
    if (buffer_end_ <= slot_ || !file_.still_holds(s.chunk, s.sequence, s.end)) return false;
  }
  std::memcpy(&event_, slot_in_buffer(like), sizeof(event_));
  if (event_.kind != record_kind::event) return false;
  again_begin_ += word >> 8 & trace::again_tick_mask;
  event_.begin = again_begin_;
  const std::uint64_t took = word >> (8 + trace::again_tick_bits);
  if (took == trace::again_untimed && file_.major_ >= 3) {
    event_.end = event_.begin;
    event_.flags |= trace::event_untimed;
  } else {
    event_.end = event_.begin + took;
  }
  return true;
}

// The next event of the `again` record at slot_. False if it has no more: the slot is then done, or may still grow.
bool thread_cursor::next_again() {
  constexpr std::uint16_t most = sizeof(trace::again_record::entry) / sizeof(std::uint64_t);
  const bool followed = segment_ + 1 < segments_.size() || slot_ + 1 < segments_[segment_].end;
  for (bool fresh = false;; fresh = true) {
    const auto record = file_bytes::load<trace::again_record>(slot_in_buffer(slot_));
    if (again_done_ == 0) again_begin_ = record.begin;
    if (again_done_ < most && record.entry[again_done_] != 0 && !under_way(record.entry[again_done_])) {
      if (take_again(record.entry[again_done_++])) return true;
      file_.process().truncated = true;
      again_done_ = most; // whatever else it has
    }
    // What the buffer has may be older than what was written behind it.
    const segment& s = segments_[segment_];
    if (again_done_ == most || fresh || slot_ + 1 < buffer_end_) break;
    if (file_.read_slots(s.chunk, slot_, static_cast<std::uint16_t>(slot_ + 1), buffer_) <= slot_) break;
    buffer_first_ = slot_;
    buffer_end_ = static_cast<std::uint16_t>(slot_ + 1);
    if (!file_.still_holds(s.chunk, s.sequence, s.end)) break;
  }
  growing_record_ = again_done_ < most && !followed;
  if (!growing_record_) {
    ++slot_;
    again_done_ = 0;
  }
  return false;
}

// Makes the next unread slots of the current or a later segment available.
bool thread_cursor::load() {
  while (segment_ < segments_.size()) {
    const segment& s = segments_[segment_];
    if (slot_ < s.first) slot_ = s.first;
    if (slot_ < s.end) {
      const std::uint16_t end = file_.read_slots(s.chunk, slot_, s.end, buffer_);
      buffer_first_ = slot_;
      buffer_end_ = end;
      const bool there = file_.still_holds(s.chunk, s.sequence, s.end);
      if (there && end > slot_) return true;
      if (there) file_.process().damaged(); // the file shrank
    }
    if (segment_ + 1 == segments_.size()) return false; // may still grow
    file_.segment_done(s.chunk);
    ++segment_;
    slot_ = 0;
    buffer_first_ = buffer_end_ = 0;
    if (segment_ >= 1024) { // forget what has been read
      segments_.erase(segments_.begin(), segments_.begin() + static_cast<std::ptrdiff_t>(segment_));
      growing_ = growing_ >= segment_ ? growing_ - segment_ : segments_.size();
      segment_ = 0;
      slot_ = segments_.front().first;
    }
  }
  return false;
}

bool thread_cursor::advance() {
  if (side_done_ || side_.empty()) {
    if (side_.capacity() > (std::size_t{1} << 20)) side_ = {};
    side_.clear();
    side_done_ = false;
  }
  for (;;) {
    if (slot_ < buffer_first_ || slot_ >= buffer_end_) {
      if (!load()) break;
    }
    const std::byte* r = slot_in_buffer(slot_);
    const auto kind = static_cast<record_kind>(r[0]);
    if (kind == record_kind::again) {
      if (next_again()) {
        last_end_ = event_.end;
        side_done_ = true;
        return true;
      }
      if (growing_record_) break;
      continue;
    }
    const auto slots =
        kind == record_kind::none ? std::uint16_t{1} : std::max<std::uint16_t>(1, std::to_integer<std::uint16_t>(r[1]));
    slot_ = static_cast<std::uint16_t>(slot_ + slots);
    if (kind == record_kind::event) {
      std::memcpy(&event_, r, sizeof(event_));
      last_end_ = event_.end;
      side_done_ = true;
      return true;
    }
    if (!belongs_to_event(kind) || std::to_integer<int>(r[1]) == 0 || slot_ > buffer_end_) continue;
    if (side_.size() < most_side_bytes) {
      side_.insert(side_.end(), r, r + std::size_t{slots} * slot);
    } else {
      file_.process().damaged();
    }
  }
  if (!unfinished_.empty()) {
    event_ = unfinished_.back();
    unfinished_.pop_back();
    if (event_.begin < last_end_) return advance(); // left over from a call that is recorded
    side_done_ = true;
    return true;
  }
  if (side_.empty()) { // nothing to keep for an event to come
    buffer_ = {};
    buffer_first_ = buffer_end_ = 0;
  }
  return false;
}

} // namespace capturesan
