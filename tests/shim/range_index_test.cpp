// The tables behind the blocks of a framework's allocator, against a plain map.
#include <map>
#include <memory>
#include <random>

#include <sys/mman.h>

#include "interpose/range_index.h"
#include "tests/support/catch.hpp"

using namespace capturesan::shim;

namespace {

// As the shim maps it: all zero.
template <class T>
struct mapped {
  T* at = static_cast<T*>(
      ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  ~mapped() { ::munmap(static_cast<void*>(at), sizeof(T)); }
  T* operator->() { return at; }
};

constexpr u64 base = 0x7f5000000000;

} // namespace

TEST_CASE("range index: an address is found in the range that holds it") {
  mapped<range_index<1 << 16>> index;
  CHECK(index->find(base) == nullptr);
  REQUIRE(index->put(base + 512, 1024) != nullptr);
  REQUIRE(index->put(base + 4096, 512) != nullptr);
  const u64 large = base + (u64{1} << 30);
  REQUIRE(index->put(large, u64{40} << 30) != nullptr); // marks far apart
  CHECK(index->find(base + 511) == nullptr);
  CHECK(index->find(base + 512) == index->at(base + 512));
  CHECK(index->find(base + 1535) == index->at(base + 512));
  CHECK(index->find(base + 1536) == nullptr);
  CHECK(index->find(base + 4100) == index->at(base + 4096));
  CHECK(index->find(large + (u64{39} << 30) + 17) == index->at(large));
  CHECK(index->find(large + (u64{40} << 30)) == nullptr);
  CHECK(index->find(7) == nullptr);
  CHECK(index->find(~u64{0}) == nullptr);
  index->remove(*index->at(base + 512));
  CHECK(index->find(base + 600) == nullptr);
  CHECK(index->put(base + 100, 512) == nullptr); // not where ranges begin
  CHECK(index->lost() == 1);
}

TEST_CASE("range index: as a map, over a million changes") {
  mapped<range_index<1 << 16>> index;
  std::map<u64, u64> plain;
  std::mt19937_64 random(1);
  const auto holder = [&](u64 address) -> u64 {
    auto it = plain.upper_bound(address);
    if (it == plain.begin()) return 0;
    --it;
    return address - it->first < it->second ? it->first : 0;
  };
  for (int i = 0; i < 1'000'000; ++i) {
    const u64 begin = base + random() % 4096 * 512;
    const auto there = plain.find(begin);
    if (there != plain.end()) {
      index->remove(*index->at(begin));
      plain.erase(there);
    } else if (holder(begin) == 0) {
      const auto next = plain.lower_bound(begin);
      const u64 room = next == plain.end() ? 8192 : next->first - begin;
      const u64 size = std::min<u64>(room, 512 * (1 + random() % 16));
      REQUIRE(index->put(begin, size) != nullptr);
      plain[begin] = size;
    }
    const u64 address = base + random() % (4096 * 512);
    const auto* found = index->find(address);
    REQUIRE((found == nullptr ? 0 : found->base()) == holder(address));
  }
}

TEST_CASE("range index: what does not fit is counted") {
  mapped<range_index<64>> index;
  u64 refused = 0;
  for (u64 i = 0; i < 100; ++i) refused += index->put(base + i * 512, 512) == nullptr ? 1 : 0;
  CHECK(refused == 36);
  CHECK(index->lost() == 36);
}

TEST_CASE("range filter: meets what was added, forgets when told to") {
  mapped<range_filter> filter;
  CHECK_FALSE(filter->meets(base, 4096));
  filter->add(base + 1024, 512);
  CHECK(filter->meets(base, 4096));
  CHECK(filter->meets(base + 1535, 1));
  CHECK_FALSE(filter->meets(base, 1024));
  CHECK_FALSE(filter->meets(base + 1536, 100000));
  filter->add(base + (u64{1} << 32), u64{3} << 30);
  CHECK(filter->meets(base + (u64{1} << 32) + (u64{2} << 30) + 5, 1));
  CHECK_FALSE(filter->meets(base + (u64{1} << 31), 512));
  filter->clear();
  CHECK_FALSE(filter->meets(base, u64{1} << 33));
}
