#include "analyzer/sass_step.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>
#include <unordered_map>

namespace capturesan::sass {

namespace {

using origin = word::origin;

bool is_predicate(const operand& o) {
  return o.kind == operand_kind::predicate || o.kind == operand_kind::uniform_predicate;
}
bool is_register(const operand& o) { return o.kind == operand_kind::reg || o.kind == operand_kind::uniform; }
word low_of(std::uint64_t v) { return known_word(static_cast<std::uint32_t>(v)); }
word high_of(std::uint64_t v) { return known_word(static_cast<std::uint32_t>(v >> 32)); }

} // namespace

sum add(std::initializer_list<word> terms, int carries) {
  std::uint64_t total = carries < 0 ? 0 : static_cast<std::uint64_t>(carries);
  bool known = carries >= 0, no_address = true;
  int lower = 0, upper = 0, others = 0; // others: may be the upper half of another address
  for (const word& w : terms) {
    total += w.value;
    known = known && w.known;
    if (w.from == origin::lower) ++lower;
    if (w.from == origin::upper) ++upper;
    if (w.from == origin::none && !w.adds_no_address()) ++others;
    no_address = no_address && w.from == origin::none && w.adds_no_address();
  }
  sum out;
  if (known) {
    out.value = known_word(static_cast<std::uint32_t>(total));
    out.carries = static_cast<int>(total >> 32);
    if (lower + upper > 0 && (lower == 0 || upper == 0)) out.value.from = lower > 0 ? origin::lower : origin::upper;
    return out;
  }
  out.value = lost_word(no_address);
  if (lower == 1 && upper == 0) out.value.from = origin::lower; // what it is added to shows in the upper half
  if (upper == 1 && lower == 0 && others == 0) out.value.from = origin::upper;
  return out;
}

void step::run() {
  if (!known_instruction()) lose();
}

// By their whole names: a suffix that is not known may change the width or the meaning.
const std::unordered_map<std::string_view, bool (step::*)()>& step::followed() {
  static const std::unordered_map<std::string_view, bool (step::*)()> all = {
      {"MOV", &step::move},
      {"UMOV", &step::move},
      {"MOV.64", &step::move_64},
      {"UMOV.64", &step::move_64},
      {"IMAD", &step::multiply},
      {"IMAD.MOV", &step::multiply},
      {"IMAD.MOV.U32", &step::multiply},
      {"IMAD.IADD", &step::multiply},
      {"IMAD.SHL", &step::multiply},
      {"IMAD.SHL.U32", &step::multiply},
      {"IMAD.U32", &step::multiply},
      {"IMAD.X", &step::multiply},
      {"IMAD.HI", &step::multiply},
      {"IMAD.HI.U32", &step::multiply},
      {"UIMAD", &step::multiply},
      {"IMAD.WIDE", &step::multiply_wide},
      {"IMAD.WIDE.U32", &step::multiply_wide},
      {"UIMAD.WIDE", &step::multiply_wide},
      {"UIMAD.WIDE.U32", &step::multiply_wide},
      {"IADD3", &step::add_up},
      {"IADD3.X", &step::add_up},
      {"UIADD3", &step::add_up},
      {"UIADD3.X", &step::add_up},
      {"VIADD", &step::add_up},
      {"IADD", &step::add_up},
      {"IADD.64", &step::add_up_64},
      {"IADD3.64", &step::add_up_64},
      {"UIADD3.64", &step::add_up_64},
      {"LEA", &step::scale_and_add},
      {"LEA.HI", &step::scale_and_add},
      {"LEA.HI.X", &step::scale_and_add},
      {"LEA.HI.X.SX32", &step::scale_and_add},
      {"ULEA", &step::scale_and_add},
      {"ULEA.HI", &step::scale_and_add},
      {"ULEA.HI.X", &step::scale_and_add},
      {"ULEA.HI.X.SX32", &step::scale_and_add},
      {"SHF.L.U32", &step::shift},
      {"SHF.L.U64.HI", &step::shift},
      {"SHF.R.U64", &step::shift},
      {"SHF.R.U32.HI", &step::shift},
      {"SHF.R.S32.HI", &step::shift},
      {"USHF.L.U32", &step::shift},
      {"USHF.L.U64.HI", &step::shift},
      {"USHF.R.U64", &step::shift},
      {"USHF.R.U32.HI", &step::shift},
      {"USHF.R.S32.HI", &step::shift},
      {"LOP3.LUT", &step::logic},
      {"ULOP3.LUT", &step::logic},
      {"PLOP3.LUT", &step::predicate_logic},
      {"UPLOP3.LUT", &step::predicate_logic},
      {"SEL", &step::select},
      {"USEL", &step::select},
      {"IMNMX", &step::smaller_or_larger},
      {"IMNMX.U32", &step::smaller_or_larger},
      {"VIMNMX", &step::smaller_or_larger},
      {"VIMNMX.U32", &step::smaller_or_larger},
      {"S2R", &step::read_special},
      {"S2UR", &step::read_special},
      {"CS2R", &step::read_special},
      {"CS2R.32", &step::read_special},
      {"R2UR", &step::to_uniform},
      {"PRMT", &step::permute},
      {"UPRMT", &step::permute},
      {"HFMA2", &step::half_constant},
      {"HFMA2.MMA", &step::half_constant},
      {"SHFL.IDX", &step::shuffle},
      {"IABS", &step::absolute},
      {"I2F.RP", &step::reciprocal},
      {"I2F.U32.RP", &step::reciprocal},
      {"MUFU.RCP", &step::reciprocal},
      {"F2I.FTZ.U32.TRUNC.NTZ", &step::reciprocal},
  };
  return all;
}

bool step::known_instruction() {
  const std::string_view base = i_.base();
  if (count() == 0) return false;
  if (const auto found = followed().find(i_.name); found != followed().end()) return (this->*found->second)();
  if (base == "ISETP" || base == "UISETP") return compare();
  if (base == "LDC" || base == "ULDC" || base == "LDCU") return load_constant();
  return false;
}

// ---- operands ----

const operand& step::op(std::size_t n) const {
  static const operand none;
  return n < i_.operands.size() ? i_.operands[n] : none;
}

// With -1 for RZ.
word step::in_register(operand_kind file, int index) const {
  if (index == zero_register) return known_word(0);
  return (file == operand_kind::reg ? t_.r_ : t_.u_)[static_cast<std::size_t>(index)];
}

word step::source(const operand& o) const {
  const word w = any_source(o);
  return w.estimate ? lost_word() : w;
}

word step::any_source(const operand& o) const {
  if (o.modified) return lost_word();
  switch (o.kind) {
  case operand_kind::reg:
  case operand_kind::uniform:
    return in_register(o.kind, o.index);
  case operand_kind::immediate:
    return known_word(static_cast<std::uint32_t>(o.value));
  case operand_kind::constant:
    return constant(o, 0);
  default:
    return lost_word();
  }
}

step::pair step::source_pair(const operand& o) const {
  if (o.modified) return {};
  if (o.kind == operand_kind::immediate) {
    return {low_of(static_cast<std::uint64_t>(o.value)), high_of(static_cast<std::uint64_t>(o.value))};
  }
  if (o.kind == operand_kind::constant) return {constant(o, 0), constant(o, 4)};
  operand next = o;
  if (is_register(o) && o.index != zero_register) ++next.index;
  if (next.index > 255) return {};
  return {source(o), source(next)};
}

word step::constant(const operand& o, std::int64_t further) const {
  std::int64_t at = o.value + further;
  for (const auto& [file, index] :
       {std::pair(operand_kind::reg, o.address.reg), std::pair(operand_kind::uniform, o.address.uniform)}) {
    if (index == address_parts::none) continue;
    const word w = in_register(file, index);
    if (!w.known || w.estimate) return lost_word();
    at += static_cast<std::int32_t>(w.value);
  }
  if (o.index != 0 || at < 0 || at % 4 != 0) return lost_word();
  const launch& how = *t_.how_;
  const std::int64_t base = parameter_base(how.sm), offset = at - base;
  if (base != 0 && offset >= 0) {
    if (offset + 4 > static_cast<std::int64_t>(how.parameters.size())) return lost_word();
    word w = known_word(0);
    std::memcpy(&w.value, how.parameters.data() + offset, 4);
    if (offset == t_.offset_) w.from = origin::lower;
    if (offset == std::int64_t{t_.offset_} + 4) w.from = origin::upper;
    return w;
  }
  const std::int64_t block = how.sm >= 100 ? 0x360 : 0x0, grid = how.sm >= 100 ? 0x370 : 0xc;
  if (at >= block && at < block + 12) return known_word(how.block[(at - block) / 4]);
  if (at >= grid && at < grid + 12) return known_word(how.grid[(at - grid) / 4]);
  return lost_word();
}

word step::special(const std::string& name) const {
  const place& p = *t_.where_;
  for (std::size_t i = 0; i < 3; ++i) {
    const char axis[2] = {static_cast<char>('X' + i), 0};
    if (name == std::string("SR_TID.") + axis) return known_word(p.thread[i]);
    if (name == std::string("SR_CTAID.") + axis) return known_word(p.block[i]);
  }
  const auto& b = t_.how_->block;
  if (name == "SR_LANEID") return known_word((p.thread[0] + b[0] * (p.thread[1] + b[1] * p.thread[2])) % 32);
  if (name == "SRZ") return known_word(0);
  return lost_word();
}

void step::set(const operand& to, word value, int further) {
  if (!is_register(to) || to.index == zero_register) return;
  auto& file = to.kind == operand_kind::reg ? t_.r_ : t_.u_;
  const auto at = static_cast<std::size_t>(to.index + further);
  if (at < file.size()) file[at] = value;
}

void step::set(const operand& to, const pair& value) {
  set(to, value.lower);
  set(to, value.upper, 1);
}

void step::set_truth(const operand& to, truth value) {
  if (!is_predicate(to) || to.index >= 7) return;
  (to.kind == operand_kind::predicate ? t_.p_ : t_.up_)[static_cast<std::size_t>(to.index)] = value;
}

step::terms step::find_terms() const {
  terms t;
  while (t.first + t.outs < count() && is_predicate(op(t.first + t.outs))) ++t.outs;
  t.first += t.outs;
  while (t.first + t.count < count() && !is_predicate(op(t.first + t.count))) ++t.count;
  for (std::size_t n = t.first + t.count; n < count(); ++n) {
    const truth in = t_.guard(op(n));
    if (in == truth::unknown) t.carry = -1;
    if (in == truth::yes && t.carry >= 0) ++t.carry;
  }
  return t;
}

// Of n sources with their signs; -x is ~x + 1, as the hardware counts its carries.
sum step::total(const operand* sources, std::size_t n, int carry) const {
  word all[3] = {known_word(0), known_word(0), known_word(0)};
  if (n > 3) return {};
  for (std::size_t k = 0; k < n; ++k) {
    all[k] = source(sources[k]);
    if (sources[k].kind == operand_kind::immediate || !(sources[k].negated || sources[k].inverted)) continue;
    all[k].value = ~all[k].value;
    all[k].from = origin::none;
    if (!sources[k].negated) continue;
    all[k].narrow = false;
    if (carry >= 0) ++carry;
  }
  return add({all[0], all[1], all[2]}, carry);
}

void step::set_carries(const terms& of, int carries) {
  for (std::size_t k = 0; k < of.outs; ++k) {
    set_truth(op(1 + k), carries < 0 ? truth::unknown : truth_of(carries > static_cast<int>(k)));
  }
}

// ---- what is not followed ----

void step::lose_destination(int registers) {
  for (const operand& o : i_.operands) {
    if (is_predicate(o)) continue;
    if (!is_register(o)) return;
    for (int k = 0; k < registers; ++k) set(o, lost_word(), k);
    return;
  }
}

void step::lose_everything() {
  t_.r_.fill(lost_word());
  t_.u_.fill(lost_word());
  t_.p_.fill(truth::unknown);
  t_.up_.fill(truth::unknown);
}

namespace {

constexpr std::string_view changes_nothing[] = {
    "NOP",          "BAR",     "MEMBAR",  "ERRBAR",     "CCTL",      "CCTLL",    "CCTLT",  "DEPBAR",
    "LDGDEPBAR",    "FENCE",   "YIELD",   "ST",         "STG",       "STS",      "STL",    "RED",
    "REDG",         "LDGSTS",  "UBLKCP",  "UBLKPF",     "UTMALDG",   "UTMASTG",  "UTMAPF", "UTMACCTL",
    "UTMACMDFLUSH", "ARRIVES", "PREEXIT", "ACQBULK",    "NANOSLEEP", "WARPSYNC", "BSSY",   "BSYNC",
    "BREAK",        "EXIT",    "BRA",     "USETMAXREG", "PMTRIG"};
constexpr std::string_view writes_predicates[] = {"FSETP", "DSETP",  "HSETP2", "FCHK",
                                                  "ISETP", "UISETP", "PLOP3",  "UPLOP3"};
constexpr std::string_view writes_one[] = {
    "FADD",  "FMUL",   "FFMA",  "FMNMX", "FSEL",  "FSET",   "MUFU",      "FRND",  "I2FP", "F2FP",  "HADD2", "HMUL2",
    "HFMA2", "HMNMX2", "HSET2", "IABS",  "IMNMX", "VIMNMX", "VIADDMNMX", "POPC",  "FLO",  "BREV",  "BMSK",  "SGXT",
    "P2R",   "S2R",    "B2R",   "SHFL",  "VOTE",  "VOTEU",  "MATCH",     "QSPC",  "UFLO", "UPOPC", "UBREV", "USGXT",
    "UBMSK", "UP2UR",  "S2UR",  "REDUX", "SEL",   "USEL",   "PRMT",      "UPRMT", "LOP3", "ULOP3", "SHF",   "USHF",
    "LEA",   "ULEA",   "R2UR",  "MOV",   "UMOV",  "ELECT",  "I2I",       "I2IP",  "IDP"};
constexpr std::string_view writes_by_width[] = {
    "I2F",   "F2I", "F2F",  "DADD", "DMUL", "DFMA",  "DMNMX", "LD",     "LDG",   "LDS",  "LDL",   "ATOM",   "ATOMG",
    "ATOMS", "LDC", "ULDC", "LDCU", "IMAD", "UIMAD", "IADD3", "UIADD3", "VIADD", "IADD", "UIADD", "UVIADD", "CS2R"};

bool among(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

} // namespace

void step::lose() {
  const std::string_view base = i_.base();
  if (among(changes_nothing, base)) return;
  if (i_.has("ENL2") || i_.has("256")) return lose_everything(); // two destinations
  // Predicates that are written, and whatever else stands there.
  for (const operand& o : i_.operands)
    if (!o.negated) set_truth(o, truth::unknown);
  if (among(writes_predicates, base)) return;
  const bool one = among(writes_one, base), by_width = among(writes_by_width, base);
  if (!one && !by_width) return lose_everything();
  bool two = by_width && (base[0] == 'D' || base == "CS2R" || i_.has("WIDE"));
  for (const std::string_view wide : {"64", "U64", "S64", "F64"}) two = two || i_.has(wide);
  lose_destination(i_.has("128") ? 4 : two ? 2 : 1);
}

} // namespace capturesan::sass
