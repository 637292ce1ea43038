// Bits, comparisons and choices.
#include <string_view>

#include "analyzer/sass_step.h"

namespace capturesan::sass {

namespace {

bool has_sign(const operand& o) { return o.kind != operand_kind::immediate && (o.negated || o.inverted); }

// Of a lookup table, the bit for these inputs.
bool table_bit(std::int64_t table, unsigned a, unsigned b, unsigned c) {
  return ((table >> (a << 2 | b << 1 | c)) & 1) != 0;
}

constexpr std::string_view comparison_suffixes[] = {"LT",  "LE",  "GT",  "GE", "EQ",  "NE", "U32",
                                                    "U64", "S64", "AND", "OR", "XOR", "EX"};
} // namespace

bool step::logic() {
  const bool tells = op(0).kind == operand_kind::predicate || op(0).kind == operand_kind::uniform_predicate;
  const std::size_t to = tells ? 1 : 0;
  if (count() != to + 6 || op(to + 4).kind != operand_kind::immediate) return false;
  word in[3];
  bool known = true;
  auto from = word::origin::none;
  for (std::size_t k = 0; k < 3; ++k) {
    const operand& o = op(to + 1 + k);
    if (o.negated && o.kind != operand_kind::immediate) return false;
    in[k] = source(o);
    if (o.inverted) in[k].value = ~in[k].value;
    known = known && in[k].known;
    if (in[k].from != word::origin::none) from = in[k].from;
  }
  word out = lost_word();
  if (known) {
    out = known_word(0);
    out.from = from;
    for (unsigned bit = 0; bit < 32; ++bit) {
      const auto at = [&](const word& w) { return (w.value >> bit) & 1; };
      if (table_bit(op(to + 4).value, at(in[0]), at(in[1]), at(in[2]))) out.value |= 1u << bit;
    }
  }
  if (tells) {
    const bool plain = t_.guard(op(to + 5)) == truth::no;
    set_truth(op(0), known && plain ? truth_of(out.value != 0) : truth::unknown);
  }
  set(op(to), out);
  return true;
}

// PLOP3 p, q, a, b, c, table of p, table of q.
bool step::predicate_logic() {
  if (count() != 7) return false;
  const truth in[3] = {t_.guard(op(2)), t_.guard(op(3)), t_.guard(op(4))};
  truth out[2];
  for (std::size_t k = 0; k < 2; ++k) {
    bool may[2] = {false, false};
    for (unsigned bits = 0; bits < 8; ++bits) {
      bool possible = true;
      for (unsigned n = 0; n < 3; ++n)
        possible = possible && (in[n] == truth::unknown || in[n] == truth_of(((bits >> (2 - n)) & 1) != 0));
      if (possible) may[table_bit(op(5 + k).value, bits >> 2 & 1, bits >> 1 & 1, bits & 1) ? 1 : 0] = true;
    }
    out[k] = may[0] && may[1] ? truth::unknown : truth_of(may[1]);
  }
  set_truth(op(0), out[0]);
  set_truth(op(1), out[1]);
  return true;
}

namespace {

std::optional<bool> compared(const instruction& i, std::int64_t a, std::int64_t b) {
  if (i.has("LT")) return a < b;
  if (i.has("LE")) return a <= b;
  if (i.has("GT")) return a > b;
  if (i.has("GE")) return a >= b;
  if (i.has("EQ")) return a == b;
  if (i.has("NE")) return a != b;
  return std::nullopt;
}

truth both(truth a, truth b) {
  if (a == truth::no || b == truth::no) return truth::no;
  return a == truth::yes && b == truth::yes ? truth::yes : truth::unknown;
}

// AND, OR or XOR by the name of the instruction.
truth joined(const instruction& i, truth a, truth b) {
  if (i.has("AND")) return both(a, b);
  if (i.has("OR")) return !both(!a, !b);
  if (i.has("XOR") && a != truth::unknown && b != truth::unknown) return truth_of(a != b);
  return truth::unknown;
}

} // namespace

// ISETP.GE.U32.AND.EX p, q, a, b, c, below: q is the same for the opposite. EX: `below` compared the lower halves.
bool step::compare() {
  const bool extended = i_.has("EX");
  if (count() != (extended ? 6u : 5u) || has_sign(op(2)) || has_sign(op(3))) return false;
  const bool is_signed = !i_.has("U32") && !i_.has("U64"), wide = i_.has("U64") || i_.has("S64");
  if (!i_.has_only(comparison_suffixes) || (wide && extended)) return false;
  truth t = truth::unknown;
  const pair a = wide ? source_pair(op(2)) : pair{source(op(2)), known_word(0)};
  const pair b = wide ? source_pair(op(3)) : pair{source(op(3)), known_word(0)};
  const truth below = extended ? t_.guard(op(5)) : truth::no;
  if (a.lower.known && b.lower.known && a.upper.known && b.upper.known) {
    const auto number = [&](const pair& p) -> std::int64_t {
      if (!wide) return is_signed ? static_cast<std::int32_t>(p.lower.value) : std::int64_t{p.lower.value};
      const std::uint64_t v = std::uint64_t{p.upper.value} << 32 | p.lower.value;
      return static_cast<std::int64_t>(is_signed ? v : v ^ (std::uint64_t{1} << 63)); // keeps the order
    };
    if (extended && number(a) == number(b)) {
      t = below;
    } else if (const auto result = compared(i_, number(a), number(b))) {
      t = truth_of(*result);
    }
  }
  const truth c = t_.guard(op(4));
  set_truth(op(0), joined(i_, t, c));
  set_truth(op(1), joined(i_, !t, c));
  return true;
}

bool step::select() {
  if (count() != 4 || has_sign(op(1)) || has_sign(op(2))) return false;
  const truth first = t_.guard(op(3));
  const word a = source(op(1)), b = source(op(2));
  set(op(0), first == truth::yes ? a : first == truth::no ? b : a == b ? a : lost_word());
  return true;
}

bool step::smaller_or_larger() {
  if (count() != 4 || has_sign(op(1)) || has_sign(op(2))) return false;
  const word a = source(op(1)), b = source(op(2));
  const truth smaller = t_.guard(op(3));
  if (!a.known || !b.known || smaller == truth::unknown) return false;
  const bool less =
      i_.has("U32") ? a.value < b.value : static_cast<std::int32_t>(a.value) < static_cast<std::int32_t>(b.value);
  set(op(0), known_word(less == (smaller == truth::yes) ? a.value : b.value));
  return true;
}

} // namespace capturesan::sass
