// One thread of a kernel, followed through its machine code with the parameters it was given: the registers it has,
// what each instruction makes of them. What is not known for certain is unknown; nothing is guessed.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "analyzer/sass.h"

namespace capturesan::sass {

// What a 32-bit register holds, and whether it comes from the word that is asked about: from its lower or upper half,
// with offsets added.
struct word {
  enum class origin : std::uint8_t { none, lower, upper };
  std::uint32_t value = 0;
  bool known = false;
  bool narrow = false;   // the upper half of a 32-bit number that was widened, or of an index that was scaled
  bool estimate = false; // of a reciprocal, in an integer division: good for that and for nothing else
  origin from = origin::none;

  bool operator==(const word&) const = default;
  bool adds_no_address() const { return narrow || (known && (value == 0 || value == 0xffffffff)); }
};
inline word known_word(std::uint32_t value) {
  word w;
  w.value = value;
  w.known = true;
  return w;
}
inline word lost_word(bool narrow = false) {
  word w;
  w.narrow = narrow;
  return w;
}

enum class truth : std::uint8_t { no, yes, unknown };
inline truth truth_of(bool b) { return b ? truth::yes : truth::no; }
inline truth operator!(truth t) { return t == truth::unknown ? t : truth_of(t == truth::no); }

struct launch {
  int sm = 0;
  std::span<const std::byte> parameters; // as the device sees them
  std::uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
};
struct place {
  std::uint32_t thread[3] = {}, block[3] = {};
};

// Where the parameters begin in constant bank 0; 0 = not known for this architecture.
std::uint32_t parameter_base(int sm);

class thread {
 public:
  thread(const launch& how, const place& where, std::uint32_t word_offset);

  // What the instruction does to registers and predicates; control flow and memory are the caller's.
  void apply(const instruction& i);
  void become_either(const thread& other); // what both agree on

  truth guard(const operand& predicate) const;
  // The 64-bit address of a memory operand.
  struct pair {
    word lower, upper;
  };
  std::optional<pair> address(const operand& memory, bool extended) const;

 private:
  friend class step;
  const launch* how_;
  const place* where_;
  std::uint32_t offset_; // of the word that is asked about
  std::array<word, 256> r_{}, u_{};
  std::array<truth, 7> p_, up_;
};

} // namespace capturesan::sass
