#include "analyzer/sass_thread.h"

#include <cstring>

#include "analyzer/sass_step.h"

namespace capturesan::sass {

std::uint32_t parameter_base(int sm) {
  if (sm >= 70 && sm < 90) return 0x160;
  if (sm == 90) return 0x210;
  if (sm == 100 || sm == 103 || sm == 110 || sm == 120 || sm == 121) return 0x380;
  return 0;
}

thread::thread(const launch& how, const place& where, std::uint32_t word_offset)
    : how_(&how), where_(&where), offset_(word_offset) {
  p_.fill(truth::unknown);
  up_.fill(truth::unknown);
}

void thread::apply(const instruction& i) { step(*this, i).run(); }

void thread::become_either(const thread& other) {
  const auto join = [](auto& mine, const auto& theirs, const auto& lost) {
    for (std::size_t i = 0; i < mine.size(); ++i)
      if (mine[i] != theirs[i]) mine[i] = lost;
  };
  join(r_, other.r_, word());
  join(u_, other.u_, word());
  join(p_, other.p_, truth::unknown);
  join(up_, other.up_, truth::unknown);
}

truth thread::guard(const operand& o) const {
  const bool uniform = o.kind == operand_kind::uniform_predicate;
  if ((o.kind != operand_kind::predicate && !uniform) || o.index > 7) return truth::unknown;
  const truth t = o.index == 7 ? truth::yes : (uniform ? up_ : p_)[static_cast<std::size_t>(o.index)];
  return o.negated ? !t : t;
}

std::optional<thread::pair> thread::address(const operand& memory, bool extended) const {
  const address_parts& a = memory.address;
  if (!a.understood) return std::nullopt;
  const auto at = [](const auto& file, int index) {
    return index == zero_register ? known_word(0) : file[static_cast<std::size_t>(index) % file.size()];
  };
  const bool whole = a.reg_is_pair || (extended && !a.reg_is_32);
  if (a.reg == address_parts::none && a.uniform == address_parts::none) return std::nullopt;
  if (a.reg != address_parts::none && !whole && a.uniform == address_parts::none) return std::nullopt;
  const word zero = known_word(0);
  word lower[2] = {zero, zero}, upper[2] = {zero, zero};
  if (a.reg != address_parts::none) {
    lower[0] = at(r_, a.reg);
    if (!a.reg_is_32 && a.reg != zero_register) upper[0] = at(r_, a.reg + 1);
  }
  if (a.uniform != address_parts::none) {
    lower[1] = at(u_, a.uniform);
    if (a.uniform != zero_register) upper[1] = at(u_, a.uniform + 1);
  }
  const auto offset = static_cast<std::uint64_t>(a.offset);
  const sum low = add({lower[0], lower[1], known_word(static_cast<std::uint32_t>(offset))}, 0);
  // Two carries are possible.
  const sum high = add({upper[0], upper[1], known_word(static_cast<std::uint32_t>(offset >> 32))}, low.carries);
  return pair{low.value, high.value};
}

} // namespace capturesan::sass
