// Which of the ranges that are in use holds an address. Ranges do not overlap and begin at multiples of 512 bytes, as
// blocks of PyTorch's allocator and allocations of the driver do. Lock-free, of fixed size, all zero at first; pages
// are touched only where ranges are. What does not fit is counted, never forced.
//
// Each granule of the address space has its own place, in order of address: neighbours share cache lines and pages, and
// a place is found without a search. A table of hashes cost a miss of cache and TLB for each of 5,000 blocks a step.
#pragma once

#include "interpose/platform.h"

namespace capturesan::shim {

template <u64 Granules> // of the window; addresses farther apart than that share their places
class range_index {
 public:
  class slot {
   public:
    u64 base() const { return word_.load(std::memory_order_relaxed) & base_bits; }
    u64 bytes() const { return bytes_.load(std::memory_order_acquire); } // 0 = the range is gone
    // The owner's, below 512; none when a range is put in.
    u64 flags() const { return word_.load(std::memory_order_relaxed) & (unit - 1); }
    u64 add_flags(u64 f) { return word_.fetch_or(f, std::memory_order_acq_rel) & (unit - 1); }
    u64 note() const { return word_.load(std::memory_order_relaxed) >> address_bits; } // the owner's, of 16 bits

   private:
    friend class range_index;
    std::atomic<u64> word_; // note, base and flags
    std::atomic<u64> bytes_;
  };

  // Null if there is no room.
  slot* put(u64 base, u64 bytes, u64 flags = 0, u64 note = 0) {
    const u64 g = granule(base);
    slot& s = slots_[g % Granules];
    if ((base & ~base_bits) != 0 || (s.base() != base && s.bytes() != 0)) {
      lost_.fetch_add(1, std::memory_order_relaxed);
      return nullptr;
    }
    s.word_.store(note << address_bits | base | flags, std::memory_order_relaxed);
    s.bytes_.store(bytes, std::memory_order_release);
    starts_[g / 64 % words].fetch_or(u64{1} << (g % 64), std::memory_order_release);
    const u64 group = g / per_group;
    std::atomic<u64>& any = any_[group / 64 % group_words];
    if ((any.load(std::memory_order_relaxed) >> (group % 64) & 1) == 0) {
      any.fetch_or(u64{1} << (group % 64), std::memory_order_release);
    }
    widen(base, base + bytes);
    return &s;
  }

  // The range that begins there, also one that is gone; null if there never was one.
  slot* at(u64 base) {
    slot& s = slots_[granule(base) % Granules];
    return base != 0 && s.base() == base ? &s : nullptr;
  }

  void remove(slot& s) {
    const u64 g = granule(s.base());
    s.bytes_.store(0, std::memory_order_release);
    starts_[g / 64 % words].fetch_and(~(u64{1} << (g % 64)), std::memory_order_release);
  }

  // The range that holds the address, null if none does.
  slot* find(u64 address) {
    if (address < low_.load(std::memory_order_relaxed) || address >= high_.load(std::memory_order_relaxed)) {
      return nullptr;
    }
    u64 g = granule(address);
    for (u64 looks = 0; looks < most_looks; ++looks) {
      u64 start = 0;
      if (!start_before(g, start)) {
        return nullptr;
      }
      slot* s = at(start * unit);
      const u64 bytes = s == nullptr ? 0 : s->bytes();
      if (bytes != 0) {
        return address - start * unit < bytes ? s : nullptr;
      }
      if (start == 0) {
        return nullptr;
      }
      g = start - 1; // the mark belongs to an address far away, or the range went a moment ago
    }
    return nullptr;
  }

  u64 lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  static constexpr u64 unit = 512;
  static constexpr int address_bits = 48; // of a process
  static constexpr u64 base_bits = ((u64{1} << address_bits) - 1) & ~(unit - 1);
  static constexpr u64 words = u64{1} << 23; // marks for 256 GiB of addresses; farther ones share them
  static constexpr u64 per_group = 4096;     // granules: 2 MiB
  static constexpr u64 group_words = words / per_group;
  static constexpr u64 most_looks = 64;

  static u64 granule(u64 address) { return address / unit; }

  // The last marked granule at or before g. Looks at most once around all marks.
  bool start_before(u64 g, u64& start) const {
    for (u64 steps = 0; steps < group_words + per_group / 64; ++steps) {
      const u64 group = g / per_group;
      const u64 some = any_[group / 64 % group_words].load(std::memory_order_acquire) & (~u64{0} >> (63 - group % 64));
      if (some == 0) { // nothing begins in these 64 groups up to here
        if (group < 64) {
          return false;
        }
        g = group / 64 * 64 * per_group - 1;
        continue;
      }
      const u64 last = group / 64 * 64 + (63 - static_cast<u64>(__builtin_clzll(some)));
      if (last != group) {
        g = (last + 1) * per_group - 1;
      }
      for (u64 w = g / 64;; --w) {
        const u64 all = starts_[w % words].load(std::memory_order_acquire);
        const u64 word = w == g / 64 ? all & (~u64{0} >> (63 - g % 64)) : all;
        if (word != 0) {
          start = w * 64 + (63 - static_cast<u64>(__builtin_clzll(word)));
          return true;
        }
        if (w % (per_group / 64) == 0) {
          break;
        }
      }
      if (g < per_group) {
        return false;
      }
      g = g / per_group * per_group - 1;
    }
    return false;
  }

  void widen(u64 from, u64 to) {
    u64 low = low_.load(std::memory_order_relaxed);
    while ((low == 0 || from < low) && !low_.compare_exchange_weak(low, from, std::memory_order_relaxed)) {
    }
    u64 high = high_.load(std::memory_order_relaxed);
    while (to > high && !high_.compare_exchange_weak(high, to, std::memory_order_relaxed)) {
    }
  }

  std::atomic<u64> low_, high_; // of all ranges ever
  std::atomic<u64> lost_;
  std::atomic<u64> any_[group_words]; // groups in which something begins, or began
  std::atomic<u64> starts_[words];
  slot slots_[Granules];
};

// Which granules of the address space somebody cares about: two levels, false hits possible where addresses share a
// mark.
class range_filter {
 public:
  void add(u64 base, u64 bytes) {
    each_bit(base, bytes, coarse_unit, coarse_bits, [&](u64 word, u64 mask) {
      coarse_[word].fetch_or(mask, std::memory_order_relaxed);
      return false;
    });
    each_bit(base, bytes, fine_unit, fine_bits, [&](u64 word, u64 mask) {
      fine_[word].fetch_or(mask, std::memory_order_release);
      return false;
    });
  }
  // Forgets everything. An `add` meanwhile may be forgotten too.
  void clear() {
    constexpr u64 page = 4096;
    const u64 begin = (reinterpret_cast<u64>(fine_) + page - 1) / page * page;
    const u64 end = reinterpret_cast<u64>(fine_ + fine_bits / 64) / page * page;
    std::memset(static_cast<void*>(coarse_), 0, sizeof(coarse_));
    std::memset(static_cast<void*>(fine_), 0, begin - reinterpret_cast<u64>(fine_));
    std::memset(reinterpret_cast<void*>(end), 0, reinterpret_cast<u64>(fine_ + fine_bits / 64) - end);
    raw(SYS_madvise, static_cast<long>(begin), static_cast<long>(end - begin), MADV_DONTNEED); // zero from here on
  }
  bool meets(u64 base, u64 bytes) const {
    const auto hit = [&](const std::atomic<u64>* in) {
      return [in](u64 word, u64 mask) { return (in[word].load(std::memory_order_relaxed) & mask) != 0; };
    };
    return each_bit(base, bytes, coarse_unit, coarse_bits, hit(coarse_)) &&
           each_bit(base, bytes, fine_unit, fine_bits, hit(fine_));
  }

 private:
  static constexpr u64 coarse_unit = 64 * 1024, coarse_bits = u64{1} << 20; // marks for 64 GiB
  static constexpr u64 fine_unit = 512, fine_bits = u64{1} << 27;           // the same

  template <class F>
  static bool each_bit(u64 base, u64 bytes, u64 unit, u64 bits, F&& f) {
    if (bytes == 0) {
      return false;
    }
    u64 first = base / unit;
    const u64 last = (base + bytes - 1) / unit;
    if (last - first >= bits) {
      first = last - bits + 1;
    }
    while (first <= last) {
      const u64 bit = first % 64;
      const u64 n = last - first + 1 < 64 - bit ? last - first + 1 : 64 - bit;
      const u64 mask = (n == 64 ? ~u64{0} : (u64{1} << n) - 1) << bit;
      if (f(first / 64 % (bits / 64), mask)) {
        return true;
      }
      first += n;
    }
    return false;
  }

  std::atomic<u64> coarse_[coarse_bits / 64];
  std::atomic<u64> fine_[fine_bits / 64];
};

} // namespace capturesan::shim
