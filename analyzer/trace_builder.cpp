#include "analyzer/trace_builder.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>

namespace capturesan {

namespace {

using trace::record_kind;

std::span<const std::byte> bytes_of(std::string_view s) { return std::as_bytes(std::span(s.data(), s.size())); }

} // namespace

trace_builder::trace_builder(std::uint32_t pid, trace::trace_level level, trace::driver_kind driver) {
  std::memcpy(header_.magic, trace::file_magic, sizeof(header_.magic));
  header_.major = trace::format_major;
  header_.minor = trace::format_minor;
  header_.header_bytes_ = trace::header_bytes;
  header_.chunk_bytes_ = trace::chunk_bytes;
  header_.slot_bytes_ = trace::slot_bytes;
  header_.pid = pid;
  header_.clock_ticks = 1;
  header_.clock_ns = 1;
  header_.clock2_ticks = 1'000'001;
  header_.clock2_ns = 1'000'001;
  header_.driver = driver;
  header_.driver_version = 13000;
  header_.level = level;
  header_.state = trace::process_state::ended;
}

void trace_builder::name_thread(std::uint32_t thread, std::string_view name) { names_[thread] = name; }

std::byte* trace_builder::reserve(std::uint32_t thread, std::size_t slots) {
  const auto it = chunk_of_.find(thread);
  if (it == chunk_of_.end() || chunks_[it->second].used + slots > trace::slots_per_chunk) {
    chunk_of_[thread] = chunks_.size();
    chunk c;
    c.data.resize(trace::chunk_bytes);
    trace::thread_record r{};
    r.kind = record_kind::thread;
    r.slots = 1;
    r.index = thread;
    r.tid = header_.pid + thread - 1;
    r.started = now_;
    const std::string name = names_.contains(thread) ? names_[thread] : "thread " + std::to_string(thread);
    std::memcpy(r.name, name.data(), std::min(name.size(), sizeof(r.name) - 1));
    std::memcpy(c.data.data() + trace::slot_bytes, &r, sizeof(r));
    c.used = 2;
    chunks_.push_back(std::move(c));
  }
  chunk& c = chunks_[chunk_of_[thread]];
  std::byte* at = c.data.data() + std::size_t{c.used} * trace::slot_bytes;
  c.used += static_cast<std::uint32_t>(slots);
  return at;
}

void trace_builder::payload(std::uint32_t thread, trace::payload_record head, std::span<const std::byte> first,
                            std::span<const std::byte> second) {
  const std::size_t bytes = first.size() + second.size();
  const std::size_t slots = trace::slots_for(sizeof(head), bytes);
  head.slots = static_cast<std::uint8_t>(slots);
  head.bytes = static_cast<std::uint32_t>(bytes);
  std::byte* at = reserve(thread, slots);
  std::memcpy(at, &head, sizeof(head));
  if (!first.empty()) std::memcpy(at + sizeof(head), first.data(), first.size());
  if (!second.empty()) std::memcpy(at + sizeof(head) + first.size(), second.data(), second.size());
}

std::uint16_t trace_builder::call_number(std::uint32_t thread, std::string_view symbol) {
  const auto it = calls_.find(symbol);
  if (it != calls_.end()) return it->second;
  const auto id = static_cast<std::uint16_t>(calls_.size());
  calls_.emplace(symbol, id);
  trace::payload_record head{};
  head.kind = record_kind::call_name;
  head.aux = id;
  payload(thread, head, bytes_of(symbol));
  return id;
}

std::uint64_t trace_builder::call(std::uint32_t thread, const built_call& c) {
  trace::event e{};
  e.kind = record_kind::event;
  e.slots = 1;
  e.call = call_number(thread, c.symbol);
  e.result = c.result;
  e.begin = c.begin != 0 ? c.begin : now_ + 1000;
  e.end = c.end != 0 ? c.end : e.begin + 1000;
  e.stream = c.stream;
  std::copy(c.arg.begin(), c.arg.end(), e.arg);
  e.stack = c.stack;
  e.flags = c.flags;
  std::memcpy(reserve(thread, 1), &e, sizeof(e));
  chunk& in = chunks_[chunk_of_[thread]];
  in.event = in.used - 1;
  now_ = std::max(now_, e.end);
  return e.begin;
}

std::uint64_t trace_builder::again(std::uint32_t thread) {
  constexpr std::uint64_t took = 700;
  const std::uint64_t begin = put_again(thread, took);
  now_ = begin + took;
  return begin;
}

std::uint64_t trace_builder::again_under_way(std::uint32_t thread) { return put_again(thread, trace::again_under_way); }

std::uint64_t trace_builder::again_untimed(std::uint32_t thread) {
  now_ = put_again(thread, trace::again_untimed);
  return now_;
}

std::uint64_t trace_builder::put_again(std::uint32_t thread, std::uint64_t took) {
  chunk& c = chunks_[chunk_of_[thread]];
  std::byte* last = c.data.data() + std::size_t{c.used - 1} * trace::slot_bytes;
  trace::again_record r{};
  if (static_cast<record_kind>(last[0]) == record_kind::again && c.entries < std::size(r.entry)) {
    std::memcpy(&r, last, sizeof(r));
  } else {
    last = c.data.data() + std::size_t{c.used++} * trace::slot_bytes;
    r.kind = record_kind::again;
    r.slots = 1;
    r.begin = c.again_begin = now_ + 500;
    c.entries = 0;
  }
  const std::uint64_t begin = now_ + 500;
  r.entry[c.entries++] = c.event | (begin - c.again_begin) << 8 | took << (8 + trace::again_tick_bits);
  c.again_begin = begin;
  std::memcpy(last, &r, sizeof(r));
  return begin;
}

void trace_builder::status(std::uint32_t thread, std::uint64_t stream, std::uint64_t begin, trace::capture_status s) {
  trace::capture_status_record r{};
  r.kind = record_kind::capture_status;
  r.slots = 1;
  r.status = s;
  r.stream = stream;
  r.begin = begin;
  std::memcpy(reserve(thread, 1), &r, sizeof(r));
}

void trace_builder::function(std::uint32_t thread, std::uint64_t handle, std::string_view name,
                             std::span<const std::pair<std::uint16_t, std::uint16_t>> layout) {
  trace::payload_record head{};
  head.kind = record_kind::function;
  head.aux = static_cast<std::uint16_t>(layout.size());
  head.key = handle;
  std::vector<std::uint16_t> pairs;
  for (const auto& [offset, size] : layout) {
    pairs.push_back(offset);
    pairs.push_back(size);
    head.id = std::max<std::uint32_t>(head.id, std::uint32_t{offset} + size);
  }
  payload(thread, head, std::as_bytes(std::span(pairs)), bytes_of(name));
}

void trace_builder::descriptor(std::uint32_t thread, trace::payload_record head) {
  head.kind = record_kind::descriptor;
  payload(thread, head, {});
}

void trace_builder::node(std::uint32_t thread, trace::node_record n, std::span<const std::byte> params) {
  n.kind = record_kind::node;
  const std::size_t slots = trace::slots_for(sizeof(n), params.size());
  n.slots = static_cast<std::uint8_t>(slots);
  n.bytes = static_cast<std::uint32_t>(params.size());
  std::byte* at = reserve(thread, slots);
  std::memcpy(at, &n, sizeof(n));
  if (!params.empty()) std::memcpy(at + sizeof(n), params.data(), params.size());
}

void trace_builder::text(std::uint32_t thread, trace::text_role role, std::uint64_t key, std::string_view text) {
  trace::payload_record head{};
  head.kind = record_kind::text;
  head.aux = static_cast<std::uint16_t>(role);
  head.key = key;
  payload(thread, head, bytes_of(text));
}

void trace_builder::pointers(std::uint32_t thread, std::uint64_t target, std::span<const std::uint64_t> pairs) {
  trace::payload_record head{};
  head.kind = record_kind::pointers;
  head.key = target;
  payload(thread, head, std::as_bytes(pairs));
}

void trace_builder::python(std::uint32_t thread, std::string_view frames) {
  trace::payload_record head{};
  head.kind = record_kind::python_stack;
  payload(thread, head, bytes_of(frames));
}

void trace_builder::lost(std::uint32_t thread, std::uint64_t count) {
  trace::lost_record r{};
  r.kind = record_kind::lost;
  r.slots = 1;
  r.count = count;
  r.first = r.last = now_;
  std::memcpy(reserve(thread, 1), &r, sizeof(r));
}

void trace_builder::edges(std::uint32_t thread, std::span<const std::uint64_t> pairs, std::uint64_t graph) {
  trace::payload_record head{};
  head.key = graph;
  head.kind = record_kind::edges;
  payload(thread, head, std::as_bytes(pairs));
}

void trace_builder::thread_end(std::uint32_t thread) {
  trace::thread_end_record r{};
  r.kind = record_kind::thread_end;
  r.slots = 1;
  r.index = thread;
  r.ended = now_;
  std::memcpy(reserve(thread, 1), &r, sizeof(r));
}

void trace_builder::stack(std::uint32_t thread, std::uint32_t id, std::span<const std::uint64_t> addresses) {
  trace::payload_record head{};
  head.kind = record_kind::stack;
  head.id = id;
  payload(thread, head, std::as_bytes(addresses));
}

void trace_builder::module(std::uint32_t thread, std::uint64_t bias, std::uint64_t begin, std::uint64_t end,
                           std::string_view path) {
  trace::payload_record head{};
  head.kind = record_kind::module;
  head.key = bias;
  head.value = begin;
  head.value2 = end;
  payload(thread, head, bytes_of(path));
}

void trace_builder::pending(std::uint32_t thread, std::string_view symbol, std::uint64_t stream, std::uint64_t arg) {
  const std::uint16_t id = call_number(thread, symbol);
  auto* h = reinterpret_cast<trace::chunk_header*>(chunks_[chunk_of_[thread]].data.data());
  h->pending_stream = stream;
  h->pending_call = id;
  h->pending_arg = arg;
  h->pending_begin = now_ + 1000;
}

std::vector<std::byte> trace_builder::bytes() const {
  std::vector<std::byte> out(trace::header_bytes + chunks_.size() * trace::chunk_bytes);
  std::memcpy(out.data(), reinterpret_cast<const std::byte*>(&header_), sizeof(header_));
  const std::uint64_t count = chunks_.size();
  std::memcpy(out.data() + offsetof(trace::file_header, chunks), &count, sizeof(count));
  for (std::size_t i = 0; i < chunks_.size(); ++i) {
    std::byte* at = out.data() + trace::header_bytes + i * trace::chunk_bytes;
    std::memcpy(at, chunks_[i].data.data(), trace::chunk_bytes);
    auto* h = reinterpret_cast<trace::chunk_header*>(at);
    h->magic = trace::chunk_magic;
    h->used = chunks_[i].used;
    h->sequence = i + 1;
  }
  return out;
}

} // namespace capturesan
