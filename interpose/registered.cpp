#include "interpose/registered.h"

namespace capturesan::shim {

namespace {

struct extent {
  u64 begin, end; // begin 0 = free
};
// Of what does not fit it is known that it was unregistered, not that it was freed.
constexpr u32 most = 1024;
extent extents[most];
u32 used; // one past the last slot ever used
spin_lock extents_lock;

} // namespace

void note_registered(u64 base, u64 bytes) {
  if (base == 0 || bytes == 0) {
    return;
  }
  locked guard(extents_lock);
  for (u32 i = 0; i < most; ++i) {
    if (extents[i].begin == 0) {
      extents[i] = {base, base + bytes};
      used = i + 1 > used ? i + 1 : used;
      return;
    }
  }
}

void note_unregistered(u64 base) {
  locked guard(extents_lock);
  for (u32 i = 0; i < used; ++i) {
    if (extents[i].begin == base) {
      extents[i].begin = 0;
    }
  }
}

bool is_registered(u64 address) {
  locked guard(extents_lock);
  for (u32 i = 0; i < used; ++i) {
    if (extents[i].begin != 0 && address >= extents[i].begin && address < extents[i].end) {
      return true;
    }
  }
  return false;
}

} // namespace capturesan::shim
