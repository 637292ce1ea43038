#include "analyzer/sass.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace capturesan::sass {

namespace {

std::string_view trim(std::string_view text) {
  const auto from = text.find_first_not_of(" \t\r");
  if (from == text.npos) return {};
  return text.substr(from, text.find_last_not_of(" \t\r") - from + 1);
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// 0x10, -0x10, 16; nothing else.
std::optional<std::int64_t> whole_number(std::string_view text) {
  const bool minus = take(text, "-");
  const bool hex = take(text, "0x");
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  const auto number = static_cast<std::int64_t>(value);
  return minus ? -number : number;
}

// R2, UR4, RZ, URZ, P0, UPT, with the prefix given: the number, or that of `none`.
std::optional<int> numbered(std::string_view text, std::string_view prefix, std::string_view none, int none_index) {
  if (text == none) return none_index;
  if (!take(text, prefix)) return std::nullopt;
  const auto n = whole_number(text);
  if (!n || *n < 0 || *n > 255 || text.starts_with("0x")) return std::nullopt;
  return static_cast<int>(*n);
}

// What stands in the brackets: registers and one number, with + between.
address_parts parse_address(std::string_view text) {
  address_parts a;
  while (!text.empty()) {
    const auto plus = text.find('+', 1);
    std::string_view part = trim(text.substr(0, plus));
    text = plus == text.npos ? std::string_view() : text.substr(plus + 1);
    const std::string_view name = part.substr(0, part.find('.'));
    const std::string_view suffix = part.substr(name.size());
    if (const auto r = numbered(name, "R", "RZ", zero_register); r && a.reg == address_parts::none) {
      a.reg = *r;
      a.reg_is_pair = suffix == ".64";
      a.reg_is_32 = suffix == ".U32";
      a.understood = a.understood && (suffix.empty() || a.reg_is_pair || a.reg_is_32);
    } else if (const auto u = numbered(name, "UR", "URZ", zero_register); u && a.uniform == address_parts::none) {
      a.uniform = *u;
      a.understood = a.understood && (suffix.empty() || suffix == ".64");
    } else if (const auto n = whole_number(part)) {
      a.offset += *n;
    } else {
      a.understood = false;
    }
  }
  return a;
}

// The text inside the brackets at the begin of `text`, which is moved behind them; nullopt if there are none.
std::optional<std::string_view> bracketed(std::string_view& text) {
  if (!text.starts_with('[')) return std::nullopt;
  const auto end = text.find(']');
  if (end == text.npos) return std::nullopt;
  const auto inside = text.substr(1, end - 1);
  text.remove_prefix(end + 1);
  return inside;
}

void parse_constant(std::string_view rest, operand& o) {
  const auto bank = bracketed(rest);
  const auto offset = bank ? bracketed(rest) : std::nullopt;
  if (!offset || !rest.empty()) return;
  const auto b = whole_number(*bank);
  o.address = parse_address(*offset);
  if (!b || !o.address.understood) return;
  o.kind = operand_kind::constant;
  o.index = static_cast<int>(*b);
  o.value = o.address.offset;
}

void parse_memory(std::string_view rest, operand& o) {
  if (take(rest, "desc")) {
    o.address.described = bracketed(rest).has_value();
    if (!o.address.described) return;
  }
  const bool described = o.address.described;
  const auto inside = bracketed(rest);
  if (!inside || !rest.empty()) return;
  o.kind = operand_kind::memory;
  o.address = parse_address(*inside);
  o.address.described = described;
}

operand parse_operand(std::string_view text) {
  operand o;
  o.text = text;
  if (const auto n = whole_number(text)) {
    o.kind = operand_kind::immediate;
    o.value = *n;
    return o;
  }
  std::string_view rest = text;
  if (take(rest, "-") || take(rest, "!")) {
    o.negated = true;
  } else if (take(rest, "~")) {
    o.inverted = true;
  }
  if (rest.ends_with(".reuse")) rest.remove_suffix(6);
  if (take(rest, "c[")) {
    parse_constant(text.substr(text.find('[')), o);
    return o;
  }
  if (rest.starts_with('[') || rest.starts_with("desc[")) {
    parse_memory(rest, o);
    return o;
  }
  if (rest.starts_with("SR_") || rest == "SRZ") {
    o.kind = operand_kind::special;
    return o;
  }
  if (rest.starts_with('|')) {
    o.modified = true;
    rest = rest.substr(1, rest.find('|', 1) - 1);
  }
  const std::string_view name = rest.substr(0, rest.find('.'));
  const auto register_of = [&](operand_kind kind, std::optional<int> index) {
    if (!index) return false;
    o.kind = kind;
    o.index = *index;
    o.modified = o.modified || name.size() != rest.size();
    return true;
  };
  if (register_of(operand_kind::reg, numbered(name, "R", "RZ", zero_register)) ||
      register_of(operand_kind::uniform, numbered(name, "UR", "URZ", zero_register)) ||
      register_of(operand_kind::predicate, numbered(name, "P", "PT", 7)) ||
      register_of(operand_kind::uniform_predicate, numbered(name, "UP", "UPT", 7)))
    return o;
  if (!rest.empty() && (rest[0] >= '0' && rest[0] <= '9')) o.kind = operand_kind::number;
  return o;
}

// Commas that are not inside of brackets separate operands.
void parse_operands(std::string_view text, instruction& out) {
  while (!(text = trim(text)).empty()) {
    std::size_t end = 0;
    for (int depth = 0; end < text.size() && (depth > 0 || text[end] != ','); ++end) {
      if (text[end] == '[' || text[end] == '(') ++depth;
      if (text[end] == ']' || text[end] == ')') --depth;
    }
    out.operands.push_back(parse_operand(trim(text.substr(0, end))));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// `/*0110*/   @P0 LDG.E R7, desc[UR4][R2.64] ;   /* 0x... */`. False: no instruction.
bool parse_line(std::string_view line, instruction& out) {
  line = trim(line);
  const auto close = line.find("*/");
  if (!line.starts_with("/*") || close == line.npos) return false;
  const auto at = line.substr(2, close - 2);
  std::uint32_t address = 0;
  const auto [end, error] = std::from_chars(at.data(), at.data() + at.size(), address, 16);
  if (error != std::errc() || end != at.data() + at.size()) return false;
  line.remove_prefix(close + 2);
  const auto semicolon = line.find(';');
  if (semicolon == line.npos) return false;
  line = trim(line.substr(0, semicolon));
  out.at = address;
  out.guard.kind = operand_kind::predicate;
  out.guard.index = 7;
  if (take(line, "@")) {
    const auto space = line.find(' ');
    out.guard = parse_operand(line.substr(0, space));
    line = space == line.npos ? std::string_view() : trim(line.substr(space));
  }
  const auto space = line.find(' ');
  out.name = line.substr(0, space);
  if (space != line.npos) parse_operands(line.substr(space), out);
  return !out.name.empty();
}

} // namespace

bool instruction::has(std::string_view suffix) const {
  const std::string_view text(name);
  for (auto dot = text.find('.'); dot != text.npos;) {
    const auto next = text.find('.', dot + 1);
    if (text.substr(dot + 1, next == text.npos ? next : next - dot - 1) == suffix) return true;
    dot = next;
  }
  return false;
}

bool instruction::has_only(std::span<const std::string_view> suffixes) const {
  for (std::string_view rest = std::string_view(name).substr(base().size()); !rest.empty();) {
    const auto next = rest.find('.', 1);
    const auto one = rest.substr(1, next == rest.npos ? next : next - 1);
    if (std::find(suffixes.begin(), suffixes.end(), one) == suffixes.end()) return false;
    rest = next == rest.npos ? std::string_view() : rest.substr(next);
  }
  return true;
}

std::vector<listing> parse(std::string_view output, std::string_view function) {
  std::vector<listing> all;
  int sm = 0;
  bool inside = false;
  while (!output.empty()) {
    const auto end = output.find('\n');
    std::string_view line = trim(output.substr(0, end));
    output.remove_prefix(end == output.npos ? output.size() : end + 1);
    if (take(line, "code for sm_")) {
      sm = 0;
      std::from_chars(line.data(), line.data() + line.size(), sm);
      inside = false;
    } else if (take(line, "Function : ")) {
      inside = line == function && sm != 0;
      if (inside) all.push_back({sm, {}});
    } else if (inside && line.starts_with("/*")) {
      instruction one;
      // The second half of an encoding stands on a line of its own.
      if (parse_line(line, one)) all.back().code.push_back(std::move(one));
    } else if (line.starts_with("....")) {
      inside = false;
    }
  }
  // A line that was not understood leaves a hole.
  std::erase_if(all, [](const listing& l) {
    for (std::size_t i = 0; i < l.code.size(); ++i)
      if (l.code[i].at != i * instruction_bytes) return true;
    return l.code.empty();
  });
  return all;
}

} // namespace capturesan::sass
