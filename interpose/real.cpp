#include "interpose/real.h"

#include <dlfcn.h>
#include <link.h>

#include "interpose/state.h"

extern "C" {
extern char __ehdr_start __attribute__((visibility("hidden")));
extern char _end __attribute__((visibility("hidden")));
}

namespace capturesan::shim {

void* real_table[trace::call_count];

namespace {

// Open addressing, at most half full; written once under the lock, then only read.
constexpr std::size_t map_size = 2048;
static_assert(trace::call_count * 2 <= map_size);
struct address_entry {
  const void* address;
  u16 id;
};
address_entry address_map[map_size];
void* driver_handle;
std::atomic<u32> resolved; // 0 no, 2 done, else the pid that is doing it (a fork may lose it half-way)

using dlsym_fn = void* (*)(void*, const char*);

void add_address(const void* address, std::size_t id) {
  std::size_t at = mix(reinterpret_cast<u64>(address)) % map_size;
  while (address_map[at].address != nullptr) {
    if (address_map[at].address == address) {
      return; // two names of one entry point: the first name stands for both
    }
    at = (at + 1) % map_size;
  }
  address_map[at] = {address, static_cast<u16>(id)};
}

const address_entry* find_address(const void* address) {
  std::size_t at = mix(reinterpret_cast<u64>(address)) % map_size;
  while (address_map[at].address != nullptr) {
    if (address_map[at].address == address) {
      return &address_map[at];
    }
    at = (at + 1) % map_size;
  }
  return nullptr;
}

} // namespace

bool own_address(const void* address) {
  return address >= static_cast<const void*>(&__ehdr_start) && address < static_cast<const void*>(&_end);
}

u64 objects_loaded() {
  u64 adds = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t size, void* to) {
        if (size >= offsetof(dl_phdr_info, dlpi_adds) + sizeof(info->dlpi_adds)) {
          *static_cast<u64*>(to) = info->dlpi_adds;
        }
        return 1;
      },
      &adds);
  return adds;
}

void* libc_dlsym(void* handle, const char* name) {
  static std::atomic<dlsym_fn> found;
  dlsym_fn f = found.load(std::memory_order_acquire);
  if (f == nullptr) {
    // glibc exports dlsym under two versions; 2.34 moved it into libc.so.6 under a new one.
    if (dlvsym != nullptr) {
      f = reinterpret_cast<dlsym_fn>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34"));
      if (f == nullptr) {
        f = reinterpret_cast<dlsym_fn>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"));
      }
      if (f == nullptr) {
        f = reinterpret_cast<dlsym_fn>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17")); // arm64
      }
    }
    if (f == nullptr) {
      return nullptr;
    }
    found.store(f, std::memory_order_release);
  }
  return f(handle, name);
}

bool resolve_driver() {
  if (resolved.load(std::memory_order_acquire) == 2) {
    return true;
  }
  using dlopen_fn = void* (*)(const char*, int);
  static std::atomic<dlopen_fn> libc_dlopen;
  dlopen_fn open = libc_dlopen.load(std::memory_order_relaxed);
  if (open == nullptr) {
    open = reinterpret_cast<dlopen_fn>(libc_dlsym(RTLD_NEXT, "dlopen"));
    if (open == nullptr) {
      return false;
    }
    libc_dlopen.store(open, std::memory_order_relaxed);
  }
  // Only a driver that the program loaded itself. The handle is kept: the entry points must stay valid as long as the
  // hooks do.
  void* driver = open("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) {
    return false;
  }
  const u32 self = static_cast<u32>(raw(SYS_getpid)) << 2 | 1;
  u32 seen = 0;
  while (!resolved.compare_exchange_strong(seen, self, std::memory_order_acquire)) {
    if (seen == 2) {
      return true;
    }
    if (seen == self) {
      raw(SYS_sched_yield); // another thread is at it
      seen = 0;
    }
  }
  driver_handle = driver;
  for (std::size_t i = 0; i < trace::call_count; ++i) {
    void* at = libc_dlsym(driver, trace::call_table[i].symbol.data());
    if (at != nullptr && !own_address(at)) {
      real_table[i] = at;
      add_address(at, i);
    }
  }
  attention.fetch_and(~static_cast<u32>(attention_unresolved), std::memory_order_release);
  resolved.store(2, std::memory_order_release);
  return true;
}

void* driver_symbol(const char* name) { return driver_handle == nullptr ? nullptr : libc_dlsym(driver_handle, name); }

void* export_for(const void* driver_address, const char* name) {
  if (resolved.load(std::memory_order_acquire) != 2) {
    return nullptr;
  }
  const address_entry* e = find_address(driver_address);
  if (e == nullptr) {
    return nullptr;
  }
  for (std::size_t i = e->id; name != nullptr && i < trace::call_count; ++i) {
    if (real_table[i] == driver_address && trace::call_table[i].symbol == name) {
      return export_table[i];
    }
  }
  return export_table[e->id];
}

void* driver_for(const void* shim_address) {
  if (!own_address(shim_address)) {
    return nullptr;
  }
  for (std::size_t i = 0; i < trace::call_count; ++i) {
    if (shim_address == wrapper_table[i] || shim_address == export_table[i]) {
      return real_table[i];
    }
  }
  return nullptr;
}

} // namespace capturesan::shim
