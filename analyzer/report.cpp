#include "analyzer/report.h"

#include <algorithm>
#include <fmt/format.h>
#include <tuple>

namespace capturesan {

namespace {

bool confident(const finding& found, const report_data& data) { return found.conf >= data.least_confidence; }

// 9,031 replays, but 1.2 M events: from a million on nobody needs the digits.
std::string amount(std::uint64_t value) {
  if (value >= 1'000'000'000) return fmt::format("{:.1f} G", static_cast<double>(value) / 1e9);
  if (value >= 1'000'000) return fmt::format("{:.1f} M", static_cast<double>(value) / 1e6);
  std::string digits = std::to_string(value);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string counted(std::uint64_t value, std::string_view what) {
  return fmt::format("{} {}{}", amount(value), what, value == 1 ? "" : "s");
}

std::string driver_text(const report_data& data) {
  const driver_summary& driver = data.summary.driver;
  if (driver_kind(data) == "simulated") return "driver: simulated";
  if (driver.version.empty()) return "driver unknown";
  std::string_view device = driver.device;
  if (device.starts_with("NVIDIA ")) device.remove_prefix(7);
  std::string text = "driver " + printable(driver.version);
  if (!device.empty()) text += fmt::format(" ({})", printable(device));
  return text;
}

// Length of the well-formed UTF-8 sequence at the start of `text`; 0 if there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  std::size_t length = 0;
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) length = 2;
  if (first >= 0xe0 && first <= 0xef) length = 3;
  if (first >= 0xf0 && first <= 0xf4) length = 4;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool outside = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return overlong || outside ? 0 : length;
}

// The code point if it is one of those that change the direction of writing, or no character at all; else 0.
unsigned turns_direction(std::string_view three_bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(three_bytes[i])); };
  const unsigned code = ((byte(0) & 0x0f) << 12) | ((byte(1) & 0x3f) << 6) | (byte(2) & 0x3f);
  const bool turns =
      (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code == 0x200e || code == 0x200f;
  const bool line_end = code == 0x2028 || code == 0x2029;
  return turns || line_end || code >= 0xfffe ? code : 0;
}

} // namespace

// A program that made no call has left no trace to say which driver it had.
std::string_view driver_kind(const report_data& data) {
  const std::string& kind = data.summary.driver.kind;
  return kind == "unknown" && data.simulated ? std::string_view("simulated") : kind;
}

std::vector<const finding*> shown_findings(const report_data& data) {
  std::vector<const finding*> shown;
  for (const finding& found : data.findings) {
    if (confident(found, data) && !found.suppressed) shown.push_back(&found);
  }
  const auto key = [](const finding& f) {
    return std::tuple(-static_cast<int>(f.sev), std::string_view(f.rule), f.capture ? f.capture->id : 0);
  };
  std::stable_sort(shown.begin(), shown.end(), [&](const finding* a, const finding* b) { return key(*a) < key(*b); });
  return shown;
}

report_counts count_findings(const report_data& data) {
  report_counts counts;
  for (const finding& found : data.findings) {
    if (!confident(found, data)) continue;
    const auto n = 1 + found.not_listed;
    if (found.suppressed) {
      counts.suppressed += n;
    } else if (found.conf == confidence::suspected) {
      counts.suspected += n;
    } else if (found.sev == severity::error) {
      counts.errors += n;
    } else if (found.sev == severity::warning) {
      counts.warnings += n;
    } else {
      counts.notes += n;
    }
  }
  return counts;
}

verdict verdict_of(const report_data& data) {
  const bool gaps = !data.uncovered.empty() || !data.unreadable.empty() || data.running;
  if (!data.summary.complete || gaps) return verdict::incomplete;
  const report_counts counts = count_findings(data);
  if (counts.errors + counts.warnings > 0) return verdict::findings;
  return data.summary.nothing_captured() ? verdict::nothing_captured : verdict::clean;
}

std::string last_line(const report_data& data) {
  const report_counts counts = count_findings(data);
  const audit_summary& summary = data.summary;
  std::string line = fmt::format("capturesan: {}, {}", counted(counts.errors, "error"), //
                                 counted(counts.warnings, "warning"));
  if (counts.notes) line += ", " + counted(counts.notes, "note");
  if (counts.suspected) line += fmt::format(", {} suspected", amount(counts.suspected));
  line += fmt::format(", {} suppressed", amount(counts.suppressed));
  switch (verdict_of(data)) {
  case verdict::clean:
    line += ", clean";
    break;
  case verdict::incomplete:
    line += ", incomplete";
    break;
  case verdict::nothing_captured:
    line += ", nothing captured";
    break;
  case verdict::findings:
    break;
  }
  const auto skipped = static_cast<std::uint64_t>(
      std::count_if(summary.rules.begin(), summary.rules.end(), [](const rule_status& r) { return !r.evaluated; }));
  line += "; " + counted(summary.rules.size(), "rule");
  if (skipped) line += fmt::format(" ({} not evaluated)", amount(skipped));
  line += fmt::format("; {}, {}, {}, {} dropped",
                      counted(std::max<std::uint64_t>(summary.captures_begun, summary.captures.size()), "capture"),
                      counted(summary.replays, "replay"), counted(summary.events, "event"), amount(summary.dropped));
  if (const auto missed = data.uncovered.size()) {
    line += fmt::format(", {} process{} not covered", amount(missed), missed == 1 ? "" : "es");
  }
  return line + "; " + driver_text(data);
}

const report_format* find_format(std::string_view name) {
  for (const report_format& format : report_formats) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

std::string_view name_of(severity value) {
  switch (value) {
  case severity::note:
    return "note";
  case severity::warning:
    return "warning";
  case severity::error:
    break;
  }
  return "error";
}

std::string_view name_of(confidence value) {
  switch (value) {
  case confidence::suspected:
    return "suspected";
  case confidence::likely:
    return "likely";
  case confidence::proved:
    break;
  }
  return "proved";
}

std::string printable(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    const std::size_t length = utf8_length(text);
    // C1 control characters (U+0080 to U+009F) move cursors too.
    const bool c1 = length == 2 && first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
    const unsigned turn = length == 3 ? turns_direction(text) : 0;
    if (length == 0) {
      clean += "\xef\xbf\xbd";
    } else if (first < 0x20 || first == 0x7f) {
      clean += fmt::format("\\x{:02x}", first);
    } else if (c1) {
      clean += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[1]));
    } else if (turn) {
      clean += fmt::format("\\u{{{:04x}}}", turn);
    } else {
      clean += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return clean;
}

std::string printable(std::string_view text, std::size_t most) {
  if (text.size() <= most) return printable(text);
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end; // not inside a character
  if (end == 0) end = most;
  return printable(text.substr(0, end)) + fmt::format("... ({} bytes more)", text.size() - end);
}

} // namespace capturesan
