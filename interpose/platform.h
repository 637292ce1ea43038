// What the shim needs of the machine, without libstdc++ and without a glibc symbol above 2.28: clock, raw system calls,
// a lock that survives fork, old symbol versions. Everything here is async-signal-safe.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <pthread.h>

// glibc 2.34 moved these into libc.so.6 under new versions. The old versions still exist there, and in libdl/libpthread
// before, so a shim built on a new system loads on an old one. Weak: without libpthread an old system lacks the pthread
// ones.
extern "C" {
__asm__(".symver dlvsym, dlvsym@GLIBC_2.2.5");
__asm__(".symver pthread_key_create, pthread_key_create@GLIBC_2.2.5");
__asm__(".symver pthread_setspecific, pthread_setspecific@GLIBC_2.2.5");
__asm__(".symver pthread_getattr_np, pthread_getattr_np@GLIBC_2.2.5");
__asm__(".symver pthread_attr_getstack, pthread_attr_getstack@GLIBC_2.2.5");
void* dlvsym(void*, const char*, const char*) noexcept __attribute__((weak));
#pragma weak pthread_key_create
#pragma weak pthread_setspecific
#pragma weak pthread_getattr_np
#pragma weak pthread_attr_getstack
#pragma weak pthread_attr_destroy
}

namespace capturesan::shim {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

inline u64 now_ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  u64 t;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
  return t;
#else
#error "no tick counter known for this machine"
#endif
}

inline u64 clock_now_ns(clockid_t clock) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<u64>(t.tv_sec) * 1000000000ull + static_cast<u64>(t.tv_nsec);
}

// System calls by number: a neighbour may have interposed the libc functions of the same name.
inline long raw(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
#if defined(__SANITIZE_THREAD__) // it must see that an address stands for new memory
  if (number == SYS_mmap) {
    return reinterpret_cast<long>(::mmap(reinterpret_cast<void*>(a), static_cast<std::size_t>(b), static_cast<int>(c),
                                         static_cast<int>(d), static_cast<int>(e), f));
  }
  if (number == SYS_munmap) {
    return ::munmap(reinterpret_cast<void*>(a), static_cast<std::size_t>(b));
  }
#endif
  return ::syscall(number, a, b, c, d, e, f);
}
template <class T>
long word(T* p) {
  return reinterpret_cast<long>(p);
}

// errno belongs to the program: whatever the shim does between two points, it is the same after.
class errno_keeper {
 public:
  errno_keeper() : saved_(errno) {}
  ~errno_keeper() { errno = saved_; }
  errno_keeper(const errno_keeper&) = delete;
  errno_keeper& operator=(const errno_keeper&) = delete;

 private:
  int saved_;
};

// Locks that this thread holds.
extern __thread u32 held_locks __attribute__((tls_model("initial-exec")));

// A lock for sections of nanoseconds to microseconds. All-zero is unlocked, so it may live in memory that fork wipes.
class spin_lock {
 public:
  void lock() {
    ++held_locks;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    for (int spins = 0; held_.exchange(1, std::memory_order_acquire) != 0; ++spins) {
      if (spins > 64) {
        raw(SYS_sched_yield);
      }
    }
  }
  bool try_lock() {
    ++held_locks;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const bool taken = held_.exchange(1, std::memory_order_acquire) == 0;
    held_locks -= taken ? 0 : 1;
    return taken;
  }
  void unlock() {
    held_.store(0, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    --held_locks;
  }

 private:
  std::atomic<u32> held_;
};

class locked {
 public:
  explicit locked(spin_lock& l) : lock_(l) { lock_.lock(); }
  ~locked() { lock_.unlock(); }
  locked(const locked&) = delete;
  locked& operator=(const locked&) = delete;

 private:
  spin_lock& lock_;
};

inline u64 mix(u64 x) { // finaliser of splitmix64
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ull;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// A set of non-zero words that only grows. Lock-free; `insert` is true for the first caller. When it is full every word
// counts as new: the caller then writes a record twice, which a reader must accept anyway.
template <std::size_t Capacity>
class word_set {
 public:
  bool contains(u64 w) const {
    for (std::size_t i = 0, at = mix(w) % Capacity; i < probes; ++i, at = (at + 1) % Capacity) {
      const u64 v = slots_[at].load(std::memory_order_relaxed);
      if (v == w) {
        return true;
      }
      if (v == 0) {
        return false;
      }
    }
    return false;
  }
  bool insert(u64 w) {
    for (std::size_t i = 0, at = mix(w) % Capacity; i < probes; ++i, at = (at + 1) % Capacity) {
      u64 v = slots_[at].load(std::memory_order_relaxed);
      if (v == w) {
        return false;
      }
      if (v == 0) {
        if (slots_[at].compare_exchange_strong(v, w, std::memory_order_relaxed)) {
          return true;
        }
        if (v == w) {
          return false;
        }
      }
    }
    return true;
  }

 private:
  static constexpr std::size_t probes = 32;
  std::atomic<u64> slots_[Capacity];
};

} // namespace capturesan::shim
