#include "analyzer/python_frames.h"

#include <algorithm>
#include <charconv>

namespace capturesan {

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
    f.file = line.substr(head.size(), file_end - head.size());
    f.symbol = after.substr(4);
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
