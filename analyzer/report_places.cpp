#include "analyzer/report_places.h"

#include <array>
#include <fmt/format.h>

namespace capturesan {

namespace {

bool has_source(const stack_frame& frame) { return !frame.file.empty() && frame.line > 0; }

// The C library is compiled from relative paths such as ../sysdeps/nptl/libc_start_call_main.h: what calls main().
bool of_the_c_library(const std::string& file) { return file.starts_with("../"); }

bool of_the_system(const std::string& file) {
  constexpr std::array<std::string_view, 2> folders = {"/usr/", "/opt/"};
  for (const std::string_view folder : folders) {
    if (file.starts_with(folder)) return true;
  }
  return file.find("/site-packages/") != std::string::npos || file.find("/dist-packages/") != std::string::npos ||
         file.find("/lib/python3") != std::string::npos || file.starts_with("<");
}

bool below(const std::string& file, const std::string& root) {
  if (root.empty() || file.size() <= root.size() || !file.starts_with(root)) return false;
  return root.back() == '/' || file[root.size()] == '/';
}

// The user's own code is below the root, or at least not below the system's folders.
int rank(const stack_frame& frame, const std::string& root) {
  if (!has_source(frame)) return frame.symbol.empty() ? 0 : 2;
  if (frame.file.find("/site-packages/") == std::string::npos && below(frame.file, root)) return 5;
  if (of_the_c_library(frame.file)) return 1;
  return of_the_system(frame.file) ? 3 : 4;
}

// The first of the highest rank.
const stack_frame* best_of(std::initializer_list<const std::vector<stack_frame>*> stacks, const std::string& root) {
  const stack_frame* best = nullptr;
  for (const auto* stack : stacks) {
    for (const stack_frame& frame : *stack) {
      if (!best || rank(frame, root) > rank(*best, root)) best = &frame;
    }
  }
  return best;
}

} // namespace

const stack_frame* best_frame(const std::vector<stack_frame>& stack) { return best_of({&stack}, {}); }

const stack_frame* best_frame(const finding& found, const std::string& root) {
  return best_of({&found.python, &found.stack}, root);
}

source_place place_of(const stack_frame* frame, const report_data& data) {
  source_place place;
  if (frame && !frame->file.empty()) {
    place.path = frame->file;
    place.line = frame->line;
  } else if (!data.command.empty()) {
    place.path = data.command[0];
  }
  if (place.path.starts_with("./")) place.path.erase(0, 2);
  place.below_root = below(place.path, data.root);
  if (place.below_root) place.path.erase(0, data.root.size() + (data.root.back() == '/' ? 0 : 1));
  if (place.path.empty()) place.path = "unknown";
  if (place.path.size() > most_name_bytes) place.path.resize(most_name_bytes);
  return place;
}

std::string frame_name(const stack_frame& frame) {
  const std::string module = frame.module.empty() && !frame.file.empty()
                                 ? frame.file.substr(frame.file.rfind('/') + 1) // npos + 1 = 0
                                 : frame.module;
  const std::string symbol = frame.symbol.empty() ? fmt::format("{:#x}", frame.offset) : frame.symbol;
  return printable(module, most_name_bytes) + "!" + printable(symbol, most_name_bytes);
}

std::string uri_of(const source_place& place) {
  constexpr std::string_view plain = "-._~/";
  std::string uri = place.path.starts_with('/') ? "file://" : "";
  for (const char c : place.path) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter || plain.find(c) != std::string_view::npos) {
      uri += c;
    } else {
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return uri;
}

std::string fix_of(const finding& found) {
  std::string text = printable(found.remediation, most_message_bytes);
  if (!found.doc.empty())
    text += fmt::format("{}See {}", text.empty() ? "" : " ", printable(found.doc, most_name_bytes));
  return text;
}

std::string message_of(const finding& found) { return printable(found.message, most_message_bytes); }

} // namespace capturesan
