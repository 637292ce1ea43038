// Reads one trace file: validates it, follows its growth, and gives the events of each thread in commit order.
// Trusts no number in the file: whatever is in it, reading ends, stays inside the file and keeps bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "analyzer/byte_source.h"
#include "analyzer/process.h"
#include "analyzer/result.h"
#include "trace/event.h"
#include "trace/format.h"

namespace capturesan {

// A record that belongs to the event after it (node, params, capture_status, function, text, python_stack). Valid until
// the cursor moves.
struct side_record {
  trace::record_kind kind;
  const std::byte* data; // the record from its first slot on
  std::size_t bytes;     // a whole number of slots

  template <class T>
  T as() const { // the fixed part
    T out;
    std::memcpy(&out, data, sizeof(T));
    return out;
  }
  // The payload behind a fixed part of `head` bytes, cut to what the record holds.
  std::span<const std::byte> payload(std::size_t head, std::size_t length) const {
    if (head >= bytes) return {};
    return {data + head, std::min(length, bytes - head)};
  }
};

class trace_file;

// The events of one thread, one after the other.
class thread_cursor {
 public:
  thread_cursor(trace_file& file, std::uint32_t index) : file_(file), index_(index) {}

  // Moves to the next event that has been indexed; false if there is none yet.
  bool advance();

  const trace::event& current() const { return event_; }
  std::uint32_t thread_index() const { return index_; }
  trace_file& file() const { return file_; }
  // The records that belong to the current event, in the order they were written.
  template <class F>
  void each_side_record(F&& f) const {
    for (std::size_t at = 0; at + trace::slot_bytes <= side_.size();) {
      const std::size_t bytes = std::to_integer<std::size_t>(side_[at + 1]) * trace::slot_bytes;
      f(side_record{static_cast<trace::record_kind>(side_[at]), side_.data() + at, bytes});
      at += bytes;
    }
  }
  bool has_side_records() const { return !side_.empty(); }

  bool waiting = false; // in the merger's heap; only the merger uses this

 private:
  friend class trace_file;
  struct segment {         // a run of slots of one chunk that this thread wrote
    std::uint64_t started; // ticks at which the thread took the chunk: the order of its segments
    std::uint32_t chunk;
    std::uint16_t first, end;
    std::uint64_t sequence; // of the chunk when it was indexed
  };
  bool load();
  bool next_again();
  bool take_again(std::uint64_t word);
  const std::byte* slot_in_buffer(std::uint16_t slot) const {
    return buffer_.data() + std::size_t{static_cast<std::uint16_t>(slot - buffer_first_)} * trace::slot_bytes;
  }

  trace_file& file_;
  std::uint32_t index_;
  std::vector<segment> segments_;
  std::size_t segment_ = 0;       // being read
  std::size_t growing_ = 0;       // being indexed
  std::uint16_t slot_ = 0;        // next, within the chunk
  std::vector<std::byte> buffer_; // slots [buffer_first_, buffer_end_) of that chunk
  std::uint16_t buffer_first_ = 0, buffer_end_ = 0;
  std::vector<std::byte> side_;
  std::uint16_t again_done_ = 0;  // entries of the `again` record at slot_ that have been given out
  std::uint64_t again_begin_ = 0; // of the last one
  bool growing_record_ = false;   // that record is the last that its thread has written
  bool side_done_ = false;        // side_ belongs to an event already handed out
  trace::event event_{};
  std::uint64_t last_end_ = 0;
  std::vector<trace::event> unfinished_;
};

class trace_file {
 public:
  static result<std::unique_ptr<trace_file>> open(std::unique_ptr<byte_source> bytes, const std::string& name);

  // Indexes what has been committed since the last call. Returns the number of new records.
  std::size_t refresh();
  // Tells the process, which is still writing, which chunks have been read to their end: it may use them anew.
  void release_consumed();
  // Adds an event flagged `event_unfinished` for each call that was under way when the file ended. Once, after the last
  // refresh.
  void add_unfinished();

  traced_process& process() { return process_; }
  // The header's second pair of clock readings lies this far behind the first; short spans make a poor rate.
  std::uint64_t clock_span_ns() const { return clock_span_ns_; }
  // Takes a better rate from elsewhere; the header's own is not used any more.
  void set_rate(double ns_per_tick) {
    process_.ns_per_tick = ns_per_tick;
    own_rate_ = false;
  }
  // In order of thread index; grows with refresh().
  std::vector<thread_cursor*> cursors();

  // Whether the chunk still holds what was indexed. A reader beside the one that the process works for must ask after
  // each read: the process may have used the chunk anew meanwhile.
  bool still_holds(std::uint32_t chunk, std::uint64_t sequence, std::uint16_t end);
  // Reads slots [first, end) of a chunk; returns how many slots there were.
  std::uint16_t read_slots(std::uint32_t chunk, std::uint16_t first, std::uint16_t end, std::vector<std::byte>& to);

 private:
  struct chunk_info {
    std::uint64_t sequence = 0;  // under which it was indexed; a higher one means that it holds something new
    std::uint32_t thread = 0;    // that writes into it now
    std::uint16_t indexed = 1;   // slots looked at
    std::uint16_t seen_used = 0; // at the start of this refresh
    std::uint16_t used = 0;      // when it was last looked at
    std::uint16_t unread = 0;    // segments in it that no cursor has finished
    std::uint64_t started = 0;   // ticks, of its first thread record
    bool sealed = false;
    bool definitions = false;
    bool released = false; // marked as consumed
  };

  explicit trace_file(std::unique_ptr<byte_source> bytes) : bytes_(std::move(bytes)) {}
  problem header_problem(const std::byte* h, std::size_t bytes, const std::string& name) const;
  void read_header(const std::byte* h);
  void note_used();
  void note_gaps();
  std::size_t index_chunk(std::uint32_t number);
  std::uint16_t index_record(chunk_info& c, std::uint32_t number, const std::byte* at, std::uint16_t slot,
                             std::uint16_t end);
  void absorb(trace::record_kind kind, const std::byte* at, std::size_t bytes);
  void add_unfinished_again(std::uint32_t number, std::uint16_t used);
  std::uint16_t used_slots(std::uint32_t number);
  bool active(const chunk_info& c) const { return !c.sealed || c.released; }
  void segment_done(std::uint32_t chunk) { --chunks_[chunk].unread; }
  friend class thread_cursor;
  thread_cursor& cursor(std::uint32_t thread);
  void add_slots(std::uint32_t thread, std::uint32_t chunk, std::uint16_t first, std::uint16_t end);

  std::unique_ptr<byte_source> bytes_;
  std::uint16_t major_ = trace::format_major; // of the format
  traced_process process_;
  std::vector<chunk_info> chunks_;
  std::vector<std::uint32_t> active_; // numbers of chunks that may still change
  std::vector<std::uint32_t> sealed_; // numbers of sealed chunks that have not been released
  std::uint64_t chunks_promised_ = 0; // by the header
  bool cut_ = false;                  // it ends before what it promises
  std::uint64_t consumed_ = 0;        // chunks released, as often as they were
  std::map<std::uint32_t, std::unique_ptr<thread_cursor>> cursors_;
  std::vector<std::byte> scratch_;
  std::uint64_t started_ = 0; // of the thread record last seen
  std::uint64_t clock_span_ns_ = 0;
  bool own_rate_ = true;
  std::uint64_t known_lost_ = 0;     // by records in the stream
  std::uint64_t recycled_ = 0;       // chunks used anew, as the header says
  std::uint64_t recycled_until_ = 0; // ticks
};

} // namespace capturesan
