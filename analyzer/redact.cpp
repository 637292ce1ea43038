#include "analyzer/redact.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "analyzer/reader_bytes.h"

namespace capturesan {

namespace {

using file_bytes::load;
using file_bytes::slot;
using trace::record_kind;
using trace::text_role;

constexpr std::size_t head = sizeof(trace::payload_record);

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Words that look like paths, each to its last part.
std::string without_folders(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    out += file_name(text.substr(at, end - at));
    if (end < text.size()) out += text[end];
    at = end + 1;
  }
  return out;
}

// Lines `  File "<file>", line <n> in <function>`; the others say nothing about the call.
std::string python_frames(std::string_view text) {
  constexpr std::string_view begin = "  File \"";
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.starts_with(begin)) {
      const std::string_view rest = line.substr(begin.size());
      const std::size_t quote = std::min(rest.find('"'), rest.size());
      out += begin;
      out += file_name(rest.substr(0, quote));
      out += rest.substr(quote);
      out += '\n';
    }
    at = end + 1;
  }
  return out.substr(0, text.size()); // the last line may have had no end
}

std::string redacted_text(text_role role, std::string_view text) {
  switch (role) {
  case text_role::argv:
    return {};
  case text_role::executable:
  case text_role::deepbind:
  case text_role::cupti_holder:
    return std::string(file_name(text));
  case text_role::note:
  case text_role::untracked_host:
  case text_role::untracked_blocks:
    return without_folders(text);
  case text_role::device_name:
  case text_role::rank: // the variable's name; its number is the key
  case text_role::function_name:
  case text_role::global_name:
  case text_role::uncovered:
  case text_role::cupti_count:
  case text_role::hook_count:
  case text_role::unsupported:
  case text_role::runtime_call:
  case text_role::loaded:
  case text_role::graph_nodes:
    return std::string(text);
  }
  return {}; // of a version to come
}

// Puts `text` in the place of the payload from `from` on; it is never longer.
void put_text(std::span<std::byte> record, std::size_t from, std::string_view text) {
  std::memset(record.data() + head + from, 0, record.size() - head - from);
  std::memcpy(record.data() + head + from, text.data(), text.size());
  const auto bytes = static_cast<std::uint32_t>(from + text.size());
  std::memcpy(record.data() + offsetof(trace::payload_record, bytes), &bytes, sizeof(bytes));
}

void redact_payload(std::span<std::byte> record) {
  const auto r = load<trace::payload_record>(record.data());
  const std::size_t length = std::min<std::size_t>(r.bytes, record.size() - head);
  const std::string_view all(reinterpret_cast<const char*>(record.data()) + head, length);
  switch (r.kind) {
  case record_kind::module: {
    const std::size_t id = std::min<std::size_t>(r.aux, length);
    put_text(record, id, std::string(file_name(all.substr(id))));
    break;
  }
  case record_kind::text:
    put_text(record, 0, redacted_text(static_cast<text_role>(r.aux), all));
    break;
  case record_kind::python_stack:
    put_text(record, 0, python_frames(all));
    break;
  default:
    std::memset(record.data() + head + length, 0, record.size() - head - length);
    break;
  }
}

void redact_record(std::span<std::byte> record) {
  switch (static_cast<record_kind>(record[0])) {
  case record_kind::call_name:
  case record_kind::stack:
  case record_kind::module:
  case record_kind::text:
  case record_kind::function:
  case record_kind::params:
  case record_kind::python_stack:
  case record_kind::edges:
  case record_kind::descriptor:
  case record_kind::block:
  case record_kind::pointers:
    redact_payload(record);
    return;
  case record_kind::event:
  case record_kind::thread:
  case record_kind::node:
  case record_kind::capture_status:
  case record_kind::lost:
  case record_kind::thread_end:
  case record_kind::again:
    return;
  case record_kind::none:
    break;
  }
  std::memset(record.data() + 2, 0, record.size() - 2); // nobody knows what it is; that it is there is damage enough
}

} // namespace

void redact_header(std::span<std::byte> header) {
  if (header.size() > sizeof(trace::file_header))
    std::memset(header.data() + sizeof(trace::file_header), 0, header.size() - sizeof(trace::file_header));
}

void redact_chunk(std::span<std::byte> chunk) {
  std::size_t at = 0;
  if (chunk.size() >= sizeof(trace::chunk_header) && load<std::uint32_t>(chunk.data()) == trace::chunk_magic) {
    const auto used = load<std::uint32_t>(chunk.data() + offsetof(trace::chunk_header, used));
    const std::size_t end = std::min<std::size_t>(used, chunk.size() / slot) * slot;
    at = slot; // behind its head
    while (at < end) {
      const std::size_t size = std::to_integer<std::size_t>(chunk[at + 1]) * slot;
      if (size == 0 || size > end - at) break;
      redact_record(chunk.subspan(at, size));
      at += size;
    }
  }
  std::memset(chunk.data() + at, 0, chunk.size() - at);
}

} // namespace capturesan
