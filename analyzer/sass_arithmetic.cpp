// The instructions whose results are followed.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <span>
#include <string_view>

#include "analyzer/sass_step.h"

namespace capturesan::sass {

namespace {

bool has_sign(const operand& o) { return o.kind != operand_kind::immediate && (o.negated || o.inverted); }
bool is_zero(const word& w) { return w.known && w.value == 0; }
bool is_one(const word& w) { return w.known && w.value == 1; }

std::uint64_t product_64(std::uint32_t a, std::uint32_t b, bool is_unsigned) {
  if (is_unsigned) return std::uint64_t{a} * b;
  return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(a)} * static_cast<std::int32_t>(b));
}

constexpr std::string_view constant_suffixes[] = {"32", "64", "128", "U8", "S8", "U16", "S16"};

// A number as a half-precision float, if it is one exactly; -1 if not.
std::int32_t half_of(const std::string& text) {
  char* end = nullptr;
  const double v = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != 0 || !std::isfinite(v)) return -1;
  const std::int32_t sign = std::signbit(v) ? 0x8000 : 0;
  const double size = std::fabs(v);
  if (size == 0) return sign;
  int exponent = 0;
  std::frexp(size, &exponent); // size = f * 2^exponent, f in [0.5, 1)
  const int scale = std::max(exponent - 1, -14);
  const double mantissa = std::ldexp(size, 10 - scale); // whole if it fits
  if (scale > 15 || mantissa != std::floor(mantissa) || mantissa >= 2048) return -1;
  const auto m = static_cast<std::int32_t>(mantissa);
  return sign | (m < 1024 ? m : ((scale + 15) << 10 | (m - 1024)));
}

} // namespace

bool step::move() {
  if (count() < 2 || has_sign(op(1))) return false;
  // Zero comes from RZ. An immediate zero may be a place where the loader puts an address.
  const bool filled_in = op(1).kind == operand_kind::immediate && op(1).value == 0;
  set(op(0), filled_in ? lost_word() : source(op(1)));
  return true;
}

bool step::move_64() {
  if (count() != 2 || has_sign(op(1)) || op(1).kind == operand_kind::immediate) return false;
  set(op(0), source_pair(op(1)));
  return true;
}

bool step::multiply() {
  const terms at = find_terms();
  if (at.count != 3) return false;
  const operand &a = op(at.first), &b = op(at.first + 1), &c = op(at.first + 2);
  if (has_sign(a) || has_sign(b)) return false;
  const word x = source(a), y = source(b);
  word product = lost_word();
  if (is_zero(x) || is_zero(y)) {
    product = known_word(0);
  } else if (is_one(y)) {
    product = x;
  } else if (is_one(x)) {
    product = y;
  } else if (x.known && y.known) {
    product = known_word(x.value * y.value);
  }
  if (i_.has("HI")) { // of the product and a 64-bit addend
    const pair more = source_pair(c);
    if (at.outs != 0 || at.carry != 0 || has_sign(c) || !x.known || !y.known || !more.lower.known || !more.upper.known)
      return false;
    const std::uint64_t total =
        product_64(x.value, y.value, i_.has("U32")) + (std::uint64_t{more.upper.value} << 32 | more.lower.value);
    set(op(0), known_word(static_cast<std::uint32_t>(total >> 32)));
    return true;
  }
  if (at.carry != 0 && !i_.has("X")) return false;
  word addend = source(c);
  if (has_sign(c)) {
    if (at.outs != 0 || (c.negated && i_.has("X"))) return false;
    addend = addend.known ? known_word(c.negated ? 0 - addend.value : ~addend.value) : lost_word();
  }
  const sum s = add({product, addend}, at.carry);
  set(op(0), s.value);
  set_carries(at, s.carries);
  return true;
}

// 32 times 32 bits and a 64-bit addend: the product is an index, the addend may be an address.
bool step::multiply_wide() {
  const terms at = find_terms();
  if (at.count != 3 || at.carry != 0) return false;
  const operand &a = op(at.first), &b = op(at.first + 1), &c = op(at.first + 2);
  if (has_sign(a) || has_sign(b) || has_sign(c)) return false;
  const word x = source(a), y = source(b);
  pair product{lost_word(), lost_word(true)};
  if (is_zero(x) || is_zero(y)) {
    product = {known_word(0), known_word(0)};
  } else if (x.known && y.known) {
    const std::uint64_t wide = product_64(x.value, y.value, i_.has("U32"));
    product = {known_word(static_cast<std::uint32_t>(wide)), known_word(static_cast<std::uint32_t>(wide >> 32))};
  }
  const pair addend = source_pair(c);
  const sum low = add({product.lower, addend.lower}, 0);
  const sum high = add({product.upper, addend.upper}, low.carries);
  set(op(0), {low.value, high.value});
  set_carries(at, high.carries);
  return true;
}

bool step::add_up() {
  const terms at = find_terms();
  if (at.count == 0 || at.count > 3 || (at.carry != 0 && !i_.has("X"))) return false;
  if (any_source(op(at.first)).estimate) return smaller_estimate(at);
  const sum s = total(&op(at.first), at.count, at.carry);
  set(op(0), s.value);
  set_carries(at, s.carries);
  return true;
}

bool step::add_up_64() {
  const terms at = find_terms();
  if (at.count == 0 || at.count > 3 || at.carry != 0) return false;
  pair all[3];
  for (pair& p : all) p = {known_word(0), known_word(0)};
  int carry = 0;
  for (std::size_t k = 0; k < at.count; ++k) {
    const operand& o = op(at.first + k);
    all[k] = source_pair(o);
    if (!has_sign(o)) continue;
    if (o.inverted) return false;
    for (word* w : {&all[k].lower, &all[k].upper}) { // -x is ~x + 1
      w->value = ~w->value;
      w->from = word::origin::none;
    }
    ++carry;
  }
  const sum low = add({all[0].lower, all[1].lower, all[2].lower}, carry);
  const sum high = add({all[0].upper, all[1].upper, all[2].upper}, low.carries);
  set(op(0), {low.value, high.value});
  set_carries(at, high.carries);
  return true;
}

// LEA d, [carry,] a, b, n: (a << n) + b. HI: the upper half of c:a << n.
bool step::scale_and_add() {
  const terms at = find_terms();
  const bool high = i_.has("HI"), extend = i_.has("SX32");
  const std::size_t wanted = high && !extend ? 4 : 3;
  if (at.count != wanted || (extend && !i_.has("X")) || (at.carry != 0 && !i_.has("X"))) return false;
  for (std::size_t k = 0; k < wanted; ++k)
    if (has_sign(op(at.first + k))) return false;
  const word n = source(op(at.first + wanted - 1));
  if (!n.known || n.value > 31) return false;
  const unsigned shift = n.value;
  const word a = source(op(at.first)), b = source(op(at.first + 1));
  word term = lost_word();
  if (!high) {
    term = shift == 0 ? a : a.known ? known_word(a.value << shift) : lost_word();
  } else {
    word c = extend ? lost_word(true) : source(op(at.first + 2));
    if (extend && a.known) c = known_word(a.value >> 31 != 0 ? 0xffffffff : 0);
    if (shift == 0) {
      term = c;
    } else {
      term = a.known && c.known ? known_word(c.value << shift | a.value >> (32 - shift)) : lost_word(true);
    }
  }
  const sum s = add({term, b}, at.carry);
  set(op(0), s.value);
  set_carries(at, s.carries);
  return true;
}

bool step::shift() {
  const std::string_view how = std::string_view(i_.name).substr(i_.base().size());
  if (count() != 4 || has_sign(op(1)) || has_sign(op(3))) return false;
  const word low = source(op(1)), by = source(op(2)), high = source(op(3));
  if (!by.known || by.value > 31) return false;
  const unsigned n = by.value;
  const auto up = [&](const word& w) { return n == 0 ? 0 : w.value >> (32 - n); };
  word out = lost_word();
  if (how == ".L.U32") {
    if (low.known) out = known_word(low.value << n);
  } else if (how == ".L.U64.HI") {
    out = low.known && high.known ? known_word(high.value << n | up(low)) : lost_word(n > 0);
  } else if (how == ".R.U64") {
    if (low.known && high.known) out = known_word(low.value >> n | (n == 0 ? 0 : high.value << (32 - n)));
  } else if (how == ".R.U32.HI") {
    if (high.known) out = known_word(high.value >> n);
  } else if (how == ".R.S32.HI") {
    out = high.known ? known_word(static_cast<std::uint32_t>(static_cast<std::int32_t>(high.value) >> n))
                     : lost_word(n == 31);
  } else {
    return false;
  }
  set(op(0), out);
  return true;
}

bool step::read_special() {
  if (count() != 2) return false;
  if (i_.base() == "CS2R") {
    if (op(1).text != "SRZ") return false;
    set(op(0), known_word(0));
    if (!i_.has("32")) set(op(0), known_word(0), 1);
    return true;
  }
  set(op(0), special(op(1).text));
  return true;
}

bool step::to_uniform() {
  if (count() != 2 || has_sign(op(1))) return false;
  set(op(0), source(op(1)));
  return true;
}

bool step::permute() {
  if (count() != 4 || has_sign(op(1)) || has_sign(op(3))) return false;
  const word a = source(op(1)), s = source(op(2)), c = source(op(3));
  if (!a.known || !s.known || !c.known) return false;
  const std::uint64_t bytes = std::uint64_t{c.value} << 32 | a.value;
  std::uint32_t out = 0;
  for (unsigned k = 0; k < 4; ++k) {
    const unsigned pick = s.value >> (4 * k) & 0xf;
    std::uint32_t b = bytes >> (8 * (pick & 7)) & 0xff;
    if ((pick & 8) != 0) b = (b & 0x80) != 0 ? 0xff : 0;
    out |= b << (8 * k);
  }
  set(op(0), known_word(out));
  return true;
}

// HFMA2 d, -RZ, RZ, x, y: how compilers write a small constant when the integer units are busy.
bool step::half_constant() {
  const auto is_rz = [](const operand& o) { return o.kind == operand_kind::reg && o.index == zero_register; };
  if (count() != 5 || !is_rz(op(1)) || !is_rz(op(2)) || !op(1).negated || op(2).negated) return false;
  const std::int32_t upper = half_of(op(3).text), lower = half_of(op(4).text);
  if (upper < 0 || lower < 0 || upper == 0x8000 || lower == 0x8000) return false;
  set(op(0), known_word(static_cast<std::uint32_t>(upper) << 16 | static_cast<std::uint32_t>(lower)));
  return true;
}

bool step::load_constant() {
  if (count() != 2 || op(1).kind != operand_kind::constant || !i_.has_only(constant_suffixes)) return false;
  for (const std::string_view narrow : {"U8", "S8", "U16", "S16"})
    if (i_.has(narrow)) return narrow_constant();
  const int words = i_.has("128") ? 4 : i_.has("64") ? 2 : 1;
  for (int k = 0; k < words; ++k) set(op(0), constant(op(1), 4 * k), k);
  return true;
}

// One or two bytes, widened.
bool step::narrow_constant() {
  if (op(1).address.reg != address_parts::none || op(1).address.uniform != address_parts::none) return false;
  const std::int64_t at = op(1).value;
  const unsigned bits = i_.has("U8") || i_.has("S8") ? 8 : 16, shift = 8 * static_cast<unsigned>(at % 4);
  const word around = constant(op(1), -(at % 4));
  if (!around.known || shift + bits > 32) return false;
  std::uint32_t v = around.value << (32 - shift - bits);
  v = i_.has("S8") || i_.has("S16") ? static_cast<std::uint32_t>(static_cast<std::int32_t>(v) >> (32 - bits))
                                    : v >> (32 - bits);
  set(op(0), known_word(v));
  return true;
}

// How compilers divide integers: a reciprocal is estimated in floating point, made a little smaller, and what comes of
// it is put right afterwards. So a reciprocal that is off in its last bit gives the same quotient.
bool step::reciprocal() {
  const word x = any_source(op(1));
  if (!x.known || has_sign(op(1)) || count() < 2) return false;
  word out = known_word(0);
  out.estimate = true;
  if (i_.name == "I2F.U32.RP" || i_.name == "I2F.RP") {
    if (x.estimate || x.value == 0 || (i_.name == "I2F.RP" && x.value >> 31 != 0)) return false;
    float f = static_cast<float>(x.value);
    if (static_cast<double>(f) < x.value) f = std::nextafter(f, INFINITY);
    out.value = std::bit_cast<std::uint32_t>(f);
  } else if (i_.name == "MUFU.RCP") {
    if (!x.estimate) return false;
    out.value = std::bit_cast<std::uint32_t>(1.0f / std::bit_cast<float>(x.value));
  } else if (i_.name == "F2I.FTZ.U32.TRUNC.NTZ") {
    const float f = std::bit_cast<float>(x.value);
    if (!x.estimate || !(f >= 0) || !(f < 4294967296.0f)) return false;
    out = known_word(static_cast<std::uint32_t>(f));
  } else {
    return false;
  }
  set(op(0), out);
  return true;
}

// ... made a little smaller, and greater by 32 in its exponent.
bool step::smaller_estimate(const terms& at) {
  constexpr std::uint32_t added = 0xffffffe;
  if (at.count < 2 || at.carry != 0 || has_sign(op(at.first))) return false;
  const word by = source(op(at.first + 1)), more = at.count == 3 ? source(op(at.first + 2)) : known_word(0);
  if (!by.known || by.value != added || !is_zero(more)) return false;
  word out = any_source(op(at.first));
  out.value += added;
  set(op(0), out);
  return true;
}

bool step::absolute() {
  if (count() != 2 || has_sign(op(1))) return false;
  const word x = source(op(1));
  if (!x.known) return false;
  set(op(0), known_word(x.value >> 31 != 0 ? 0 - x.value : x.value));
  return true;
}

// From lane 0, by a thread that is lane 0: its own value.
bool step::shuffle() {
  if (count() != 5 || op(4).kind != operand_kind::immediate || op(4).value != 0x1f) return false;
  const word lane = source(op(3)), mine = special("SR_LANEID");
  if (!is_zero(lane) || !is_zero(mine)) return false;
  const word value = source(op(2));
  set_truth(op(0), truth::yes);
  set(op(1), value);
  return true;
}

} // namespace capturesan::sass
