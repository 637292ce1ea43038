#include "host_kernels.h"

#include "bf16.h"
#include "config.h"
#include "layout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace verify_mla {
namespace {

constexpr float NO_MAXIMUM = -1e30f;

// The line of tiles: where the tiles of each request begin and end on it, and its own end.
struct tile_line {
  std::vector<int> begin, end;
  int places = 0;

  tile_line(const kernel_args& a, int tile_tokens) {
    for (int b = 0; b < a.batch; ++b) {
      const int tiles = tiles_of(a.kv_indptr[b + 1] - a.kv_indptr[b],
                                 static_cast<int>(a.qo_indptr[b + 1] - a.qo_indptr[b]), tile_tokens);
      begin.push_back(places);
      end.push_back(places + tiles);
      places += places_of(tiles, a.border);
    }
    places = line_end(places, a.border);
  }
};

// A request as one group of rows sees it.
struct request_view {
  const kernel_args& a;
  int b, prefix, draft;
  int64_t first_token;

  request_view(const kernel_args& args, int request)
      : a(args), b(request), prefix(args.kv_indptr[request + 1] - args.kv_indptr[request]),
        draft(static_cast<int>(args.qo_indptr[request + 1] - args.qo_indptr[request])),
        first_token(args.qo_indptr[request]) {}

  const bf16_bits* key(int j) const {
    const int64_t slot = j < prefix ? a.kv_indices[a.kv_indptr[b] + j] : a.out_cache_loc[first_token + (j - prefix)];
    return a.kv + slot * HEAD_DIM;
  }
  bool visible(int t, int j) const {
    if (j < prefix) return true;
    if (j >= prefix + draft) return false;
    if (a.mask != nullptr) return (a.mask[a.mask_indptr[b] + int64_t{t} * (prefix + draft) + j] & 1) != 0;
    return !a.causal || j - prefix <= t;
  }
  float score(int row, int j) const {
    const bf16_bits* q = a.q + (first_token * a.heads + row) * HEAD_DIM;
    const bf16_bits* k = key(j);
    float dot = 0;
    for (int i = 0; i < HEAD_DIM; ++i) dot += bf16_to_float(q[i]) * bf16_to_float(k[i]);
    float s = dot * a.scale;
    if (a.cap > 0) s = a.cap * std::tanh(s / a.cap);
    return s * 1.4426950408889634f;
  }
};

void store_partial(const kernel_args& a, int64_t unit, int row, int granules, const float* o) {
  const size_t base = static_cast<size_t>(unit) * static_cast<size_t>(granules) * 8 * VALUE_DIM;
  for (int column = 0; column < VALUE_DIM; ++column) {
    const size_t at = base + partial_index(row, column, granules);
    if (a.partial_bf16)
      static_cast<bf16_bits*>(a.partial)[at] = float_to_bf16(o[column]);
    else
      static_cast<float*>(a.partial)[at] = o[column];
  }
}

// The row of a request that row `row` of a group is, or -1.
int row_of_request(const kernel_args& a, int group, int row, int granules) {
  const int halves = halves_of_group(granules);
  const int half = group * halves + row / (granules * 8 / halves);
  const int granule = row / 8 % (granules / halves);
  if (granule >= a.dealt.count(half)) return -1;
  return (a.dealt.first(half) + granule) * 8 + row % 8;
}

// Tokens [from, to) of a request for one row of a group; unit is slot * groups + group.
void partial_row(const request_view& r, int group, int row, int granules, int from, int to, int64_t unit) {
  const kernel_args& a = r.a;
  const int global_row = row_of_request(a, group, row, granules);
  float o[VALUE_DIM] = {};
  float top = NO_MAXIMUM, sum = 0;
  if (global_row >= 0 && global_row < r.draft * a.heads) {
    std::vector<float> s(static_cast<size_t>(to - from));
    for (int j = from; j < to; ++j) {
      float& score = s[static_cast<size_t>(j - from)];
      score = r.visible(global_row / a.heads, j) ? r.score(global_row, j) : -std::numeric_limits<float>::infinity();
      top = std::max(top, score);
    }
    for (int j = from; j < to; ++j) {
      const float p = std::exp2(s[static_cast<size_t>(j - from)] - top);
      if (p == 0) continue;
      sum += p;
      const float rounded = bf16_to_float(float_to_bf16(p));
      const bf16_bits* v = r.key(j);
      for (int i = 0; i < VALUE_DIM; ++i) o[i] += rounded * bf16_to_float(v[i]);
    }
  }
  store_partial(a, unit, row, granules, o);
  float* ml = a.partial_ml + (unit * granules * 8 + row) * 2;
  ml[0] = top;
  ml[1] = sum;
}

void partial_request(const kernel_args& a, int b, int group, int granules, int from, int to, int slot) {
  const request_view r(a, b);
  const int64_t unit = int64_t{slot} * a.groups + group;
  const int end = std::min(to, r.prefix + r.draft);
  for (int row = 0; row < granules * 8; ++row) partial_row(r, group, row, granules, std::min(from, end), end, unit);
}

} // namespace

void verify_mla_host_partial(unsigned grid_x, unsigned, const kernel_args& a, int granules, int tile_tokens) {
  const tile_line line(a, tile_tokens);
  for (unsigned block = 0; block < grid_x; ++block) {
    const int group = static_cast<int>(block) % a.groups;
    const int unit = static_cast<int>(block) / a.groups;
    if (a.splits > 0) {
      const auto b = static_cast<size_t>(unit / a.splits);
      const int tiles = line.end[b] - line.begin[b];
      const int split = unit % a.splits;
      partial_request(a, static_cast<int>(b), group, granules, fixed_split_begin(split, tiles, a.splits) * tile_tokens,
                      fixed_split_begin(split + 1, tiles, a.splits) * tile_tokens, unit);
      continue;
    }
    const int tiles = line.places;
    const int effective = effective_partitions(tiles, a.partitions, a.min_tiles, a.few_partitions);
    if (unit >= effective) continue;
    const int begin = partition_begin(unit, tiles, effective);
    const int end = partition_begin(unit + 1, tiles, effective);
    for (int b = 0; b < a.batch; ++b) {
      const int first = line.begin[static_cast<size_t>(b)];
      const int from = std::max(begin, first), to = std::min(end, line.end[static_cast<size_t>(b)]);
      if (from < to)
        partial_request(a, b, group, granules, (from - first) * tile_tokens, (to - first) * tile_tokens,
                        partial_slot(unit, b));
    }
  }
}

namespace {

// One output row of one block of kernel B, row `row` of a group: columns [first, first + count).
void reduce_row(const request_view& r, const slot_range& slots, int group, int row, int granules, int first, int count,
                int global_row) {
  const kernel_args& a = r.a;
  const auto unit_of = [&](int s) { return int64_t{slots.first + s} * a.groups + group; };
  const auto ml_of = [&](int s) { return a.partial_ml + (unit_of(s) * granules * 8 + row) * 2; };
  float top = NO_MAXIMUM;
  for (int s = 0; s < slots.count; ++s)
    if (ml_of(s)[1] > 0) top = std::max(top, ml_of(s)[0]);
  float sum = 0;
  std::vector<float> o(static_cast<size_t>(count), 0.0f);
  for (int s = 0; s < slots.count; ++s) {
    const float* ml = ml_of(s);
    if (!(ml[1] > 0)) continue;
    const float w = std::exp2(ml[0] - top);
    sum += w * ml[1];
    const size_t base = static_cast<size_t>(unit_of(s)) * static_cast<size_t>(granules) * 8 * VALUE_DIM;
    for (int c = 0; c < count; ++c) {
      const size_t at = base + partial_index(row, first + c, granules);
      o[static_cast<size_t>(c)] += w * (a.partial_bf16 ? bf16_to_float(static_cast<const bf16_bits*>(a.partial)[at])
                                                       : static_cast<const float*>(a.partial)[at]);
    }
  }
  const int64_t out_row = r.first_token * a.heads + global_row;
  for (int c = 0; c < count; ++c)
    a.out[out_row * VALUE_DIM + first + c] = float_to_bf16(sum > 0 ? o[static_cast<size_t>(c)] / sum : 0.0f);
  if (first == 0 && a.lse != nullptr)
    a.lse[out_row] = sum > 0 ? (top + std::log2(sum)) * 0.6931471805599453f : -std::numeric_limits<float>::infinity();
}

} // namespace

void verify_mla_host_reduce(unsigned grid_x, unsigned, const kernel_args& a, int tile_tokens, int granules,
                            int value_tiles) {
  const tile_line line(a, tile_tokens);
  value_tiles *= a.reduce_chunks;
  const int column_blocks = VALUE_TILES / value_tiles;
  for (unsigned block = 0; block < grid_x; ++block) {
    int unit = static_cast<int>(block);
    const int first_column = unit % column_blocks * value_tiles * 16;
    unit /= column_blocks;
    const int row_granule = unit % a.row_granules;
    const int half = a.dealt.half_of(row_granule);
    const int halves = halves_of_group(granules);
    const int granule = half % halves * (granules / halves) + row_granule - a.dealt.first(half); // of the group
    const auto b = static_cast<size_t>(unit / a.row_granules);
    const request_view r(a, static_cast<int>(b));
    const slot_range slots =
        a.splits > 0 ? slot_range{static_cast<int>(b) * a.splits, a.splits}
                     : balanced_slots(static_cast<int>(b), line.begin[b], line.end[b], line.places,
                                      effective_partitions(line.places, a.partitions, a.min_tiles, a.few_partitions));
    for (int i = 0; i < 8; ++i)
      if (row_granule * 8 + i < r.draft * a.heads)
        reduce_row(r, slots, half / halves, granule * 8 + i, granules, first_column, value_tiles * 16,
                   row_granule * 8 + i);
  }
}

} // namespace verify_mla
