#include "analyzer/python_frames.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace capturesan {

namespace {

void add_utf8(std::string& out, std::uint32_t c) {
  const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (c >= 0xdc80 && c <= 0xdcff) return put(c - 0xdc00); // a byte that was no UTF-8 (PEP 383)
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xc0 | c >> 6);
  } else {
    if (c < 0x10000) {
      put(0xe0 | c >> 12);
    } else {
      put(0xf0 | c >> 18);
      put(0x80 | (c >> 12 & 0x3f));
    }
    put(0x80 | (c >> 6 & 0x3f));
  }
  put(0x80 | (c & 0x3f));
}

// CPython writes what is no printable ASCII as \xe9, \u20ac or \U0001f600, and a backslash as it is. An escape that it
// would not have written is text of the name.
std::string unescaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const char kind = text.size() > 1 && text[0] == '\\' ? text[1] : '\0';
    const std::size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    std::uint32_t c = 0;
    const bool whole = digits != 0 && text.size() >= 2 + digits;
    const char* const last = whole ? text.data() + 2 + digits : text.data();
    const bool number = whole && std::from_chars(text.data() + 2, last, c, 16).ptr == last;
    const bool written = number &&
                         (kind == 'x'   ? c < 0x20 || c >= 0x7f
                          : kind == 'u' ? c > 0xff
                                        : c > 0xffff) &&
                         c < 0x110000;
    if (written) {
      add_utf8(out, c);
      text.remove_prefix(2 + digits);
    } else {
      out += text[0];
      text.remove_prefix(1);
    }
  }
  return out;
}

} // namespace

// Lines `  File "<file>", line <n> in <function>`.
std::vector<stack_frame> python_frames(std::string_view text) {
  std::vector<stack_frame> out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    constexpr std::string_view head = "  File \"", middle = "\", line ";
    const std::size_t file_end = line.rfind(middle);
    if (!line.starts_with(head) || file_end == std::string_view::npos || file_end < head.size()) continue;
    const std::string_view rest = line.substr(file_end + middle.size());
    stack_frame f;
    const auto [number_end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), f.line);
    const std::string_view after = rest.substr(static_cast<std::size_t>(number_end - rest.data()));
    if (error != std::errc{} || !after.starts_with(" in ")) continue;
    f.file = unescaped(line.substr(head.size(), file_end - head.size()));
    f.symbol = unescaped(after.substr(4));
    out.push_back(std::move(f));
  }
  return out;
}

std::string python_place(std::string_view text) {
  const auto frames = python_frames(text);
  const auto of_framework = [](const stack_frame& f) {
    return f.file.find("/torch/") != std::string::npos || f.file.find("/cupy/") != std::string::npos ||
           f.file.ends_with("/contextlib.py");
  };
  auto at = std::find_if_not(frames.begin(), frames.end(), of_framework);
  if (at == frames.end()) at = frames.begin();
  if (at == frames.end()) return {};
  const auto slash = at->file.rfind('/');
  return at->file.substr(slash == std::string::npos ? 0 : slash + 1) + ':' + std::to_string(at->line);
}

} // namespace capturesan
