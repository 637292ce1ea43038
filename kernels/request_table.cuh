// The batch as each block sees it: built once per block from the index pointers, kept in shared memory.
#pragma once

#include "config.h"
#include "kernel_args.h"
#include "partition.h"

namespace verify_mla {

struct request_table {
  int* tile_begin; // [MAX_BATCH + 1] first tile of each request on the line of tiles, then the end of the line
  int* kv_start;   // [MAX_BATCH] first entry in kv_indices
  int* prefix;     // [MAX_BATCH] prefix tokens
  int* qo_start;   // [MAX_BATCH] first draft token in q, out and out_cache_loc
  int* draft;      // [MAX_BATCH] draft tokens
  int* tile_end;   // [MAX_BATCH] behind the last tile of each request; 0: it has none

  __device__ explicit request_table(void* shared) {
    tile_begin = static_cast<int*>(shared);
    kv_start = tile_begin + MAX_BATCH + 1;
    prefix = kv_start + MAX_BATCH + 1;
    qo_start = prefix + MAX_BATCH + 1;
    draft = qo_start + MAX_BATCH + 1;
    tile_end = draft + MAX_BATCH + 1;
  }
};

// Called by warp 0; the caller puts a block barrier behind it.
__device__ __forceinline__ void build_request_table(const request_table& table, const kernel_args& args,
                                                    int tile_tokens, int lane) {
  int carry = 0;
  for (int base = 0; base < args.batch; base += 32) {
    const int b = base + lane;
    int tiles = 0;
    if (b < args.batch) {
      const int kv_start = args.kv_indptr[b];
      const int prefix = args.kv_indptr[b + 1] - kv_start;
      const int qo_start = static_cast<int>(args.qo_indptr[b]);
      const int draft = static_cast<int>(args.qo_indptr[b + 1]) - qo_start;
      tiles = tiles_of(prefix, draft, tile_tokens);
      table.kv_start[b] = kv_start;
      table.prefix[b] = prefix;
      table.qo_start[b] = qo_start;
      table.draft[b] = draft;
    }
    const int places = places_of(tiles, args.border);
    int sum = places;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const int other = __shfl_up_sync(0xffffffffu, sum, offset);
      if (lane >= offset) sum += other;
    }
    if (b < args.batch) {
      table.tile_begin[b] = carry + sum - places;
      table.tile_end[b] = tiles > 0 ? carry + sum - args.border : 0;
    }
    carry += __shfl_sync(0xffffffffu, sum, 31);
  }
  if (lane == 0) table.tile_begin[args.batch] = line_end(carry, args.border);
}

} // namespace verify_mla
