// Parameters of the kernels in layouts.cu, for the compiler of the device and for that of the host.
#pragma once

namespace layouts {

struct odd {
  char letter;
  double number;
  short three[3];
};

struct empty {};

template <int bytes>
struct block {
  unsigned char content[bytes];
};

inline constexpr int large = 4000, huge = 20000;

} // namespace layouts
