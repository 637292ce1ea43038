#include "analyzer/message.h"

#include <fmt/format.h>

#include "analyzer/cuda_results.h"

namespace capturesan {

namespace {

std::string show_size(std::int64_t n) {
  constexpr std::string_view units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t u = 0;
  while (u + 1 < std::size(units) && n != 0 && n % 1024 == 0) {
    n /= 1024;
    ++u;
  }
  if (n < 10240 || u + 1 == std::size(units)) return fmt::format("{} {}", n, units[u]);
  double d = static_cast<double>(n);
  while (d >= 1024 && u + 1 < std::size(units)) {
    d /= 1024;
    ++u;
  }
  return fmt::format("{:.1f} {}", d, units[u]);
}

std::string show_duration(std::int64_t ns) {
  if (ns < 10'000) return fmt::format("{} ns", ns);
  if (ns < 10'000'000) return fmt::format("{:.1f} us", static_cast<double>(ns) / 1e3);
  if (ns < 10'000'000'000) return fmt::format("{:.1f} ms", static_cast<double>(ns) / 1e6);
  return fmt::format("{:.1f} s", static_cast<double>(ns) / 1e9);
}

} // namespace

std::string show(field_id id, const field_value& v) {
  if (!v.present) return "?";
  switch (info(id).type) {
  case field_type::boolean:
    return v.number != 0 ? "yes" : "no";
  case field_type::text:
    return std::string(v.text);
  case field_type::address:
    return fmt::format("{:#x}", static_cast<std::uint64_t>(v.number));
  case field_type::size:
    return show_size(v.number);
  case field_type::duration:
    return show_duration(v.number);
  case field_type::result:
    return fmt::format("{} ({})", result_name(static_cast<int>(v.number)), v.number);
  case field_type::word: {
    const auto words = words_of(id);
    const auto i = static_cast<std::size_t>(v.number);
    return i < words.size() ? std::string(words[i]) : "?";
  }
  case field_type::number:
    break;
  }
  return std::to_string(v.number);
}

bool message_template::applies(format as, field_type type) {
  switch (as) {
  case format::plain:
    return true;
  case format::hex:
    return type == field_type::number || type == field_type::size || type == field_type::address ||
           type == field_type::result;
  case format::size:
    return type == field_type::number || type == field_type::size;
  case format::duration:
    return type == field_type::number || type == field_type::duration;
  }
  return false;
}

message_template message_template::parse(std::string_view text, std::vector<condition_problem>& problems,
                                         const std::set<field_group>& never) {
  message_template t;
  std::string plain;
  const auto flush = [&] {
    if (!plain.empty()) t.parts_.push_back({plain, field_id::count, format::plain});
    plain.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c == '{' || c == '}') && i + 1 < text.size() && text[i + 1] == c) {
      plain += c;
      ++i;
      continue;
    }
    if (c == '}') {
      problems.push_back({i, 1, "CGE030", "this '}' closes nothing", "a brace in the text is written '}}'"});
      continue;
    }
    if (c != '{') {
      plain += c;
      continue;
    }
    const std::size_t end = text.find('}', i);
    if (end == std::string_view::npos) {
      problems.push_back({i, 1, "CGE030", "this '{' is never closed", "a brace in the text is written '{{'"});
      break;
    }
    flush();
    const std::string_view inside = text.substr(i + 1, end - i - 1);
    const std::size_t bar = inside.find('|');
    const std::string_view name = inside.substr(0, bar);
    part p;
    if (name.empty()) {
      problems.push_back({i, 2, "CGE030", "no field stands in these braces",
                          "write {event.api}; a brace in the text is written '{{'"});
    } else if (const auto f = field_by_name(name)) {
      p.field = *f;
      if (never.contains(info(*f).group))
        problems.push_back({i + 1, name.size(), "CGE035", never_there(*f), how_to_have(*f)});
    } else {
      const std::string near = did_you_mean(name, field_names());
      problems.push_back({i + 1, name.size(), "CGE012", "unknown field '" + std::string(name) + "'",
                          near.empty() ? "see `capturesan rules fields`" : "did you mean '" + near + "'?"});
    }
    if (bar != std::string_view::npos) {
      const std::string_view as = inside.substr(bar + 1);
      if (as == "hex") {
        p.as = format::hex;
      } else if (as == "size") {
        p.as = format::size;
      } else if (as == "dur") {
        p.as = format::duration;
      } else {
        p.as = format::plain;
        problems.push_back({i + bar + 2, as.size(), "CGE030", "unknown format '" + std::string(as) + "'",
                            "formats are hex, size and dur"});
      }
      if (p.field != field_id::count && !applies(p.as, info(p.field).type))
        problems.push_back({i + bar + 2, as.size(), "CGE030",
                            "'" + std::string(name) + "' is " + with_article(info(p.field).type) + "; format '" +
                                std::string(as) + "' does not apply to it",
                            "leave the format out"});
    }
    t.parts_.push_back(std::move(p));
    i = end;
  }
  flush();
  return t;
}

std::string message_template::fill(const field_source& s) const {
  std::string out;
  for (const part& p : parts_) {
    if (p.field == field_id::count) {
      out += p.text;
      continue;
    }
    const field_value v = s.get(p.field);
    if (!v.present || info(p.field).type == field_type::text) {
      out += show(p.field, v);
      continue;
    }
    switch (p.as) {
    case format::plain:
      out += show(p.field, v);
      break;
    case format::hex:
      out += fmt::format("{:#x}", static_cast<std::uint64_t>(v.number));
      break;
    case format::size:
      out += show_size(v.number);
      break;
    case format::duration:
      out += show_duration(v.number);
      break;
    }
  }
  return out;
}

} // namespace capturesan
