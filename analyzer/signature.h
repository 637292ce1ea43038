// What the name of a C++ kernel says about its parameters. A mangled name carries the types of all parameters, so it
// tells an address from a number of the same size, and a struct that is nothing but addresses from other structs.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace capturesan {

enum class parameter_shape : std::uint8_t {
  unknown,  // a struct, or a name without types (extern "C", Triton)
  pointer,  // T*
  number,   // a fundamental type that is no address
  pointers, // an array of addresses: std::array<T*, n>, at::detail::Array<T*, n>
};

// One per parameter of `layout` (offset, size); empty if the name says nothing or does not fit the layout.
std::vector<parameter_shape> shapes_of(std::string_view mangled_name,
                                       const std::vector<std::pair<std::uint16_t, std::uint16_t>>& layout);

} // namespace capturesan
