// Machine code of a kernel as NVIDIA's cuobjdump prints it, one instruction a line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace capturesan::sass {

enum class operand_kind : std::uint8_t {
  reg,               // R0 ...; index = number, zero_register for RZ
  uniform,           // UR0 ...
  predicate,         // P0 ...; index 7 = PT
  uniform_predicate, // UP0 ...
  immediate,         // value
  number,            // a floating-point number: text
  constant,          // c[bank][R2+offset]: index = bank, value = offset, `address` has the register if there is one
  memory,            // [R2.64+UR4+0x10]
  special,           // SR_TID.X ...: text
  other,
};
inline constexpr int zero_register = -1;
inline constexpr std::uint32_t instruction_bytes = 16; // since compute capability 7.0

// Registers of an address; `none` where there is none.
struct address_parts {
  static constexpr int none = -2;
  int reg = none, uniform = none; // zero_register is possible
  bool reg_is_pair = false;       // .64
  bool reg_is_32 = false;         // .U32: widened by zeros
  bool described = false;         // desc[...][...]: memory of the device for certain
  std::int64_t offset = 0;
  bool understood = true;
};

struct operand {
  operand_kind kind = operand_kind::other;
  int index = 0;
  std::int64_t value = 0;
  bool negated = false;  // -R, !P
  bool inverted = false; // ~R
  bool modified = false; // anything else: |R|, .H0_H0, ...
  address_parts address;
  std::string text;
};

struct instruction {
  std::uint32_t at = 0;
  std::string name; // with its suffixes: LDG.E.64
  operand guard;    // @P0; PT where there is none
  std::vector<operand> operands;

  std::string_view base() const { return std::string_view(name).substr(0, name.find('.')); }
  bool has(std::string_view suffix) const; // one of the suffixes is this
  bool has_only(std::span<const std::string_view> suffixes) const;
};

struct listing {
  int sm = 0; // 90 of "sm_90a"
  std::vector<instruction> code;
};

// Every listing of that function in the output of `cuobjdump -sass`; one with a line that is not understood is left
// out.
std::vector<listing> parse(std::string_view output, std::string_view function);

} // namespace capturesan::sass
