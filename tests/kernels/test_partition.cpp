// The device-side partition, by brute force over random batches: every tile exactly once, slots unique and consecutive.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_MAIN
#endif
#include "catch_compat.h"

#include "config.h"
#include "layout.h"
#include "partition.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

using namespace verify_mla;

namespace {

struct batch_line {
  std::vector<int> begin, end; // of the tiles of each request, by place on the line
  int places = 0;
  int batch() const { return static_cast<int>(begin.size()); }
};

batch_line random_line(std::mt19937& random) {
  batch_line line;
  const int border = static_cast<int>(random() % 5);
  int tiles_so_far = 0, gaps = 0; // written out, not by places_of and line_end
  const int batch = 1 + static_cast<int>(random() % 64);
  for (int b = 0; b < batch; ++b) {
    const int prefix = random() % 5 == 0 ? 0 : static_cast<int>(random() % (random() % 3 ? 200 : 20000));
    const int draft = random() % 8 == 0 ? 0 : 1 + static_cast<int>(random() % 64);
    const int tiles = tiles_of(prefix, draft, random() % 2 ? 16 : 32);
    line.begin.push_back(line.places);
    line.end.push_back(line.places + tiles);
    line.places += places_of(tiles, border);
    if (tiles > 0 && tiles_so_far > 0) gaps += border;
    tiles_so_far += tiles;
  }
  line.places = line_end(line.places, border);
  REQUIRE(line.places == tiles_so_far + gaps);
  return line;
}

} // namespace

TEST_CASE("tiles of a request") {
  CHECK(tiles_of(0, 1, 32) == 1);
  CHECK(tiles_of(31, 1, 32) == 1);
  CHECK(tiles_of(32, 1, 32) == 2);
  CHECK(tiles_of(100, 0, 32) == 0); // no draft token: no query row, no work
}

TEST_CASE("partitions really used") {
  CHECK(effective_partitions(0, 132, 2, 0) == 0);
  CHECK(effective_partitions(1, 132, 2, 0) == 1);
  CHECK(effective_partitions(5, 132, 2, 0) == 3);
  CHECK(effective_partitions(1000000, 132, 2, 0) == 132);
  CHECK(effective_partitions(10, 132, 1 << 28, 0) == 1);
  // A few partitions may have less than two tiles.
  CHECK(effective_partitions(0, 132, 2, 36) == 0);
  CHECK(effective_partitions(33, 132, 2, 36) == 33);
  CHECK(effective_partitions(50, 132, 2, 36) == 36);
  CHECK(effective_partitions(100, 132, 2, 36) == 50);
  CHECK(effective_partitions(33, 20, 2, 36) == 20); // never more than there are
}

TEST_CASE("every tile belongs to exactly one partition, and to the one partition_of says") {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const int tiles = 1 + static_cast<int>(random() % 3000);
    const int effective = effective_partitions(tiles, 1 + static_cast<int>(random() % 264),
                                               1 + static_cast<int>(random() % 4), static_cast<int>(random() % 300));
    for (int p = 0; p <= effective; ++p)
      REQUIRE(partition_begin(p, tiles, effective) == int64_t{p} * tiles / effective);
    REQUIRE(partition_begin(0, tiles, effective) == 0);
    REQUIRE(partition_begin(effective, tiles, effective) == tiles);
    for (int p = 0; p < effective; ++p) {
      const int begin = partition_begin(p, tiles, effective), end = partition_begin(p + 1, tiles, effective);
      REQUIRE(begin < end);                                        // never an empty partition
      REQUIRE(end - begin <= (tiles + effective - 1) / effective); // balanced to one tile
      for (int t = begin; t < end; ++t) REQUIRE(partition_of(t, tiles, effective) == p);
    }
  }
}

TEST_CASE("slots of the partials are unique, consecutive per request and inside the workspace") {
  std::mt19937 random(2);
  for (int round = 0; round < 20000; ++round) {
    const batch_line line = random_line(random);
    const int partitions = 1 + static_cast<int>(random() % 264);
    const int effective = effective_partitions(line.places, partitions, 1 + static_cast<int>(random() % 4),
                                               static_cast<int>(random() % 300));
    std::set<int> written;
    std::vector<std::vector<int>> of_request(static_cast<size_t>(line.batch()));
    for (int p = 0; p < effective; ++p) // the walk of kernel A
      for (int b = 0; b < line.batch(); ++b) {
        const int from = std::max(partition_begin(p, line.places, effective), line.begin[static_cast<size_t>(b)]);
        const int to = std::min(partition_begin(p + 1, line.places, effective), line.end[static_cast<size_t>(b)]);
        if (from >= to) continue;
        const int slot = partial_slot(p, b);
        REQUIRE(slot < partitions + line.batch());
        REQUIRE(written.insert(slot).second);
        of_request[static_cast<size_t>(b)].push_back(slot);
      }
    for (int b = 0; b < line.batch(); ++b) { // what kernel B reads
      const auto i = static_cast<size_t>(b);
      const slot_range range =
          effective ? balanced_slots(b, line.begin[i], line.end[i], line.places, effective) : slot_range{};
      REQUIRE(range.count == static_cast<int>(of_request[i].size()));
      for (int s = 0; s < range.count; ++s) REQUIRE(of_request[i][static_cast<size_t>(s)] == range.first + s);
    }
  }
}

TEST_CASE("places between requests") {
  CHECK(places_of(33, 2) == 35);
  CHECK(places_of(0, 2) == 0);  // nothing is loaded for it
  CHECK(line_end(35, 2) == 33); // one request alone has no border
  CHECK(line_end(0, 2) == 0);
}

TEST_CASE("the partition of very many tiles") {
  const int tiles = (1 << 26) + 5; // times 188 partitions passes 2^31
  for (int p = 0; p < 188; ++p) {
    const int begin = partition_begin(p, tiles, 188);
    REQUIRE(begin == int64_t{p} * tiles / 188);
    REQUIRE(partition_of(begin, tiles, 188) == p);
    if (p > 0) REQUIRE(partition_of(begin - 1, tiles, 188) == p - 1);
  }
}

TEST_CASE("granules are dealt evenly, in order, and no half gets more than it can hold") {
  for (int granules = 1; granules <= 1024; ++granules)
    for (int nt : ROW_GRANULES) {
      const int halves = (granules + nt - 1) / nt * halves_of_group(nt);
      const granule_deal deal = deal_granules(granules, halves);
      int next = 0;
      for (int half = 0; half < halves; ++half) {
        REQUIRE(deal.first(half) == next);
        const int count = deal.count(half);
        REQUIRE(count <= nt / halves_of_group(nt));
        REQUIRE(count >= granules / halves);
        for (int g = next; g < next + count; ++g) REQUIRE(deal.half_of(g) == half);
        next += count;
      }
      REQUIRE(next == granules);
    }
  // 72 rows over two groups of one team each, and of two halves
  CHECK(deal_granules(9, 2).count(0) == 5);
  CHECK(deal_granules(9, 2).count(1) == 4);
  CHECK(deal_granules(9, 4).count(0) == 3);
  CHECK(deal_granules(9, 4).count(1) == 2);
  CHECK(deal_granules(9, 4).count(3) == 2);
}

TEST_CASE("fixed splits cover a request in order") {
  for (int splits : {1, 16, 64})
    for (int tiles = 0; tiles < 300; ++tiles) {
      REQUIRE(fixed_split_begin(0, tiles, splits) == 0);
      REQUIRE(fixed_split_begin(splits, tiles, splits) == tiles);
      for (int s = 0; s < splits; ++s)
        REQUIRE(fixed_split_begin(s, tiles, splits) <= fixed_split_begin(s + 1, tiles, splits));
    }
}

TEST_CASE("the layout of a partial is a permutation") {
  for (int granules : {2, 4, 8, 9}) {
    std::vector<bool> seen(static_cast<size_t>(granules) * 8 * 512, false);
    for (int row = 0; row < granules * 8; ++row)
      for (int column = 0; column < 512; ++column) {
        const size_t at = partial_index(row, column, granules);
        REQUIRE(at < seen.size());
        REQUIRE_FALSE(seen[at]);
        seen[at] = true;
      }
  }
}
