// What the statically linked unwinder (libgcc_eh) would take from a glibc newer than 2.28. These hidden definitions
// bind first.
//   _dl_find_object (2.35)  asks the real one where there is one and walks the list of objects where there is none
//   pthread_once, __pthread_key_create (2.34)  the unwinder initialises one mutex with the first and only tests for the
//   second
#include <dlfcn.h>
#include <link.h>

#include "interpose/platform.h"
#include "interpose/real.h"

namespace {

// Layout of struct dl_find_object, glibc 2.35 <dlfcn.h>, x86-64 and arm64 (DLFO_STRUCT_HAS_EH_DBASE == 0).
struct found_object {
  unsigned long long flags;
  void* map_start;
  void* map_end;
  link_map* map;
  void* eh_frame;
  unsigned long long reserved[7];
};

struct search {
  const char* pc;
  found_object* out;
  bool found;
};

int visit(dl_phdr_info* info, std::size_t, void* to) {
  auto* s = static_cast<search*>(to);
  const char* base = reinterpret_cast<const char*>(info->dlpi_addr);
  const char* low = nullptr;
  const char* high = nullptr;
  const char* eh_frame = nullptr;
  bool inside = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& ph = info->dlpi_phdr[i];
    const char* from = base + ph.p_vaddr;
    if (ph.p_type == PT_GNU_EH_FRAME) {
      eh_frame = from;
    } else if (ph.p_type == PT_LOAD) {
      const char* to_end = from + ph.p_memsz;
      low = low == nullptr || from < low ? from : low;
      high = high == nullptr || to_end > high ? to_end : high;
      inside = inside || (s->pc >= from && s->pc < to_end);
    }
  }
  if (!inside || eh_frame == nullptr) {
    return 0;
  }
  s->out->flags = 0;
  s->out->map_start = const_cast<char*>(low);
  s->out->map_end = const_cast<char*>(high);
  s->out->map = nullptr;
  s->out->eh_frame = const_cast<char*>(eh_frame);
  s->found = true;
  return 1;
}

} // namespace

extern "C" __attribute__((visibility("hidden"))) int _dl_find_object(void* pc, struct dl_find_object* out) noexcept {
  using real_fn = int (*)(void*, void*);
  static std::atomic<real_fn> real{nullptr};
  static std::atomic<int> asked{0};
  if (asked.load(std::memory_order_acquire) == 0) {
    if (dlvsym != nullptr) {
      real.store(reinterpret_cast<real_fn>(dlvsym(RTLD_DEFAULT, "_dl_find_object", "GLIBC_2.35")));
    }
    asked.store(1, std::memory_order_release);
  }
  if (real_fn f = real.load(std::memory_order_relaxed)) {
    return f(pc, out);
  }
  search s{static_cast<const char*>(pc), reinterpret_cast<found_object*>(out), false};
  ::dl_iterate_phdr(visit, &s);
  return s.found ? 0 : -1;
}

// Under another name in C++, because <pthread.h> has declared these with default visibility.
extern "C" __attribute__((visibility("hidden"))) int own_once(pthread_once_t* control,
                                                              void (*routine)()) __asm__("pthread_once");
extern "C" __attribute__((visibility("hidden"))) int
own_key_create(pthread_key_t* key, void (*destructor)(void*)) __asm__("__pthread_key_create");

extern "C" int own_once(pthread_once_t* control, void (*routine)()) {
  auto* state = reinterpret_cast<std::atomic<int>*>(control); // PTHREAD_ONCE_INIT is 0
  int none = 0;
  if (state->load(std::memory_order_acquire) == 2) {
    return 0;
  }
  if (state->compare_exchange_strong(none, 1, std::memory_order_acquire)) {
    routine();
    state->store(2, std::memory_order_release);
    return 0;
  }
  while (state->load(std::memory_order_acquire) != 2) {
    capturesan::shim::raw(SYS_sched_yield);
  }
  return 0;
}

extern "C" int own_key_create(pthread_key_t* key, void (*destructor)(void*)) {
  return pthread_key_create == nullptr ? ENOSYS : pthread_key_create(key, destructor);
}
