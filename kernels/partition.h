// The split of a batch over a fixed grid, as pure integer arithmetic shared by both kernels, the host and the tests.
//
// Request b has prefix + draft tokens, cut into tiles of `tile_tokens`. All tiles of the batch form one line, with a
// gap of `border` places between two requests, because a block that goes on with another request loads queries and
// drains its pipeline anew, which costs it as much as so many tiles. Of the U places of the line partition p of P takes
// [p*U/P, (p+1)*U/P) and may cross request borders. Nothing here depends on a value that only the host knows, so a
// captured launch stays right when lengths change.
//
// A partition writes one partial result per request it touches, at slot p + b. Both only grow along the line and at
// least one of them grows from one partial to the next, so slots are unique and those of one request are consecutive.
#pragma once

#if defined(__CUDACC__)
#define VERIFY_MLA_HD __host__ __device__ __forceinline__
#else
#define VERIFY_MLA_HD inline
#endif

namespace verify_mla {

// Tiles of one request. A request without draft tokens has no query row and therefore no work.
VERIFY_MLA_HD int tiles_of(int prefix, int draft, int tile_tokens) {
  return draft > 0 ? (prefix + draft + tile_tokens - 1) / tile_tokens : 0;
}

// Places of one request on the line. Behind the last request the gap is left out.
VERIFY_MLA_HD int places_of(int tiles, int border) { return tiles > 0 ? tiles + border : 0; }
VERIFY_MLA_HD int line_end(int places, int border) { return places > 0 ? places - border : 0; }

// Partitions really used: at least `min_tiles` tiles each (a partial costs as much traffic as many tokens), except that
// `few` partitions may have less: so few partials are merged in no time, and every tile is latency. At most
// `partitions`, and never more than there are tiles.
VERIFY_MLA_HD int effective_partitions(int tiles, int partitions, int min_tiles, int few) {
  if (tiles <= 0) return 0;
  const int least = tiles < few ? tiles : few;
  int wanted = tiles / min_tiles + (tiles % min_tiles != 0 ? 1 : 0);
  if (wanted < least) wanted = least;
  return wanted < partitions ? wanted : partitions;
}

// First tile of partition p (and end of partition p - 1): floor(p * tiles / effective), by parts, because a 64-bit
// division costs a block a tenth of a short context's time.
VERIFY_MLA_HD int partition_begin(int p, int tiles, int effective) {
  const int whole = tiles / effective;
  const int rest = tiles - whole * effective;
  return p * whole + p * rest / effective;
}

// The partition that holds tile t, 0 <= t < tiles: the largest p with partition_begin(p) <= t. Guessed, then exact.
VERIFY_MLA_HD int partition_of(int t, int tiles, int effective) {
  int p = static_cast<int>(static_cast<float>(t) * static_cast<float>(effective) / static_cast<float>(tiles));
  p = p < effective ? p : effective - 1;
  while (p + 1 < effective && partition_begin(p + 1, tiles, effective) <= t) ++p;
  while (partition_begin(p, tiles, effective) > t) --p;
  return p;
}

// Where the partial of (partition, request) lies.
VERIFY_MLA_HD int partial_slot(int p, int b) { return p + b; }

// The rows of a request, in granules of eight, are dealt evenly to the halves of its row groups (config.h), so
// that no group has more to do than another: 72 rows over two groups are 3 + 2 and 2 + 2 granules. Worked out on the
// host: a division costs a block of a short context too much.
struct granule_deal {
  int least = 0;  // granules of every half
  int larger = 0; // the first so many halves have one more

  VERIFY_MLA_HD int first(int half) const { return half * least + (half < larger ? half : larger); }
  VERIFY_MLA_HD int count(int half) const { return least + (half < larger ? 1 : 0); }
  // The half that has granule g, which exists.
  VERIFY_MLA_HD int half_of(int g) const {
    const int in_larger = larger * (least + 1);
    return g < in_larger ? g / (least + 1) : larger + (g - in_larger) / least;
  }
};

VERIFY_MLA_HD granule_deal deal_granules(int granules, int halves) { return {granules / halves, granules % halves}; }

struct slot_range {
  int first = 0;
  int count = 0;
};

// The partials of request b, whose tiles are [begin, end) on the line.
VERIFY_MLA_HD slot_range balanced_slots(int b, int begin, int end, int tiles, int effective) {
  if (begin >= end) return {0, 0};
  const int p0 = partition_of(begin, tiles, effective);
  const int p1 = partition_of(end - 1, tiles, effective);
  return {partial_slot(p0, b), p1 - p0 + 1};
}

// The seed design: every request is cut into `splits` equal runs of tiles, whatever its length.
VERIFY_MLA_HD int fixed_split_begin(int split, int tiles_of_request, int splits) {
  const int chunk = (tiles_of_request + splits - 1) / splits;
  const int begin = chunk * split;
  return begin < tiles_of_request ? begin : tiles_of_request;
}

} // namespace verify_mla
