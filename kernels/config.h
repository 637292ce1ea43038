// Tile constants of the verify kernel: everything that fixes a shape at compile time, and nothing else.
// Included by device code, by the host launcher and by the tests, so no CUDA header is needed here.
#pragma once

#include "partition.h"

#include <cstddef>

namespace verify_mla {

// Absorbed MLA as DeepSeek V3 and Kimi K2 publish it: one latent KV row of 512 + 64 bf16, values are its first 512.
inline constexpr int HEAD_DIM = 576;  // elements of a query row and of a pool row
inline constexpr int VALUE_DIM = 512; // elements of a value and of an output row
inline constexpr int ROW_BYTES = HEAD_DIM * 2;

// A pool row in shared memory. 1168 B is an odd multiple of 16 B, so eight consecutive rows start in eight different
// 16-byte bank groups and ldmatrix, plain or transposed, never conflicts.
inline constexpr int ROW_PITCH = 1168;

inline constexpr int WARPS = 8;
inline constexpr int THREADS = WARPS * 32;

// The 576 dimensions of the score product are dealt to four slices of nine 16-wide steps.
inline constexpr int K_SLICES = 4;
inline constexpr int K_STEPS = HEAD_DIM / 16 / K_SLICES;
static_assert(K_SLICES * K_STEPS * 16 == HEAD_DIM, "slices must cover the head dimension");

// Registers per thread of a fetching warp that has given the others away.
inline constexpr int PRODUCER_REGISTERS = 24;

inline constexpr int MAX_BATCH = 64; // requests per launch: the request table lives in shared memory
inline constexpr int TABLE_COLUMNS = 6;
inline constexpr int MAX_DRAFT = 64; // draft tokens per request: one 64-bit word of mask per draft row

// One warp stages eight query rows of its slice here while it turns them into fragments (pitch 304 B, conflict-free).
inline constexpr int Q_STAGE_PITCH = K_STEPS * 32 + 16;
inline constexpr int Q_STAGE_BYTES = 8 * Q_STAGE_PITCH;

// Splits of the seed design, fixed when the program is compiled.
inline constexpr int FIXED_SPLIT_SMALL = 16;
inline constexpr int FIXED_SPLIT_LARGE = 64;

// Parts of a block's math warps that share nothing but the tiles, by the granules of its group.
VERIFY_MLA_HD constexpr int halves_of_group(int granules) { return granules % 2 == 0 ? 2 : 1; }

// Opt-in shared memory per block, bytes.
inline constexpr int SMEM_SM90 = 232448;
inline constexpr int SMEM_SM120 = 101376;

// NT: query rows in units of 8 (the n of mma.m16n8k16; tokens and value columns are the m side).
// TOK: pool rows per tile. STAGES: tiles in flight or in use.
template <int NT_, int TOK_, int STAGES_>
struct tile_config {
  static constexpr int NT = NT_;
  static constexpr int TOK = TOK_;
  static constexpr int STAGES = STAGES_;
  static constexpr int ROWS = 8 * NT;

  // The math warps are two halves of four that share nothing but the tiles: each has half of the rows, and its warps
  // have a slice of the dimensions for the scores and a quarter of the value columns. With an odd number of granules
  // they are one team of eight that has all rows, so that keys and values are read once, not once per half: a slice of
  // the dimensions for the scores of half a tile, and an eighth of the value columns.
  static constexpr int HALVES = halves_of_group(NT);
  static constexpr int HALF_WARPS = WARPS / HALVES;
  static constexpr int HALF_THREADS = THREADS / HALVES;
  static constexpr int HALF_ROWS = ROWS / HALVES;
  static constexpr int NH = NT / HALVES; // granules of a half
  static constexpr int QK_M = TOK / 16;
  static constexpr int WARP_QK_M = QK_M * HALVES / 2; // 16-token pieces of a tile that one warp scores
  static constexpr int VALUES_PER_WARP = VALUE_DIM / HALF_WARPS;
  static constexpr int M_TILES = VALUES_PER_WARP / 16;
  // The last granule of a half with an odd number of them may have no row.
  static constexpr bool LAST_MAY_LACK = NH % 2 == 1 && NH > 1;

  // Warps that do nothing but fetch. With more than four granules a math warp needs more registers than twelve warps
  // can have alike, so four producers, one per scheduler, hand theirs over (setmaxnreg works on groups of four warps):
  // 12 warps of 168 registers become 8 of 240 and 4 of 24.
  // With two or four granules the block leaves registers for blocks of the reduce kernel, which can then wait on the
  // same multiprocessor, with their code in its caches: 3.6 us less where all of them are busy. What counts is the
  // quarter of a multiprocessor, 512 registers per lane: two warps of the reduce kernel take 160, three of ours of 96
  // (two granules) or 112 (four, whose 12 warps of 112 become 8 of 152 and 4 of 24) have place beside them.
  static constexpr bool TRADE_REGISTERS = NT > 2 && TOK == 32;
  static constexpr int MATH_REGISTERS = NT > 4 ? 240 : 152;
  static constexpr int PRODUCERS = TRADE_REGISTERS ? 4 : 2;
  static constexpr int BLOCK = THREADS + 32 * PRODUCERS;
  // Registers per thread at launch. Without a trade: what a multiprocessor has for so many warps.
  static constexpr int REGISTERS = NT == 2 ? 96 : NT == 4 && TRADE_REGISTERS ? 112 : 168;
  static_assert(!TRADE_REGISTERS || 8 * MATH_REGISTERS + 4 * PRODUCER_REGISTERS <= 12 * REGISTERS, "register pool");
  static constexpr int FETCH_ROWS = TOK / PRODUCERS; // rows per fetching warp

  // With many rows the scores of a tile are worked out before the values of the tile before it are added, so that its
  // softmax has that product to hide behind (deep_math.cuh).
  static constexpr bool DEEP = NT > 4;
  static constexpr int BUFFERS = DEEP ? 2 : 1; // of scores, probabilities and factors

  static constexpr int S_PITCH = TOK + 4; // floats
  static constexpr int P_PITCH = TOK + 8; // bf16

  // Softmax: lanes that share a row, and tokens per lane.
  static constexpr int LANES_PER_ROW = THREADS / ROWS; // not DEEP
  static constexpr int TOK_PER_LANE = TOK / LANES_PER_ROW;

  static constexpr size_t STAGE_BYTES = size_t{TOK} * ROW_PITCH;
  // Scores of one half on their way between its warps. DEEP: fragments of 1 KB, from three warps to the one that owns a
  // granule; its own lie apart, once, except where there is one team.
  static constexpr int FOREIGN_SLICES = HALVES == 1 ? K_SLICES : K_SLICES - 1;
  static constexpr size_t EXCHANGE_BYTES = size_t{NH} * FOREIGN_SLICES * 1024;
  static constexpr size_t S_BYTES = DEEP ? BUFFERS * EXCHANGE_BYTES : size_t{K_SLICES} * HALF_ROWS * S_PITCH * 4;
  static constexpr size_t Q_STAGES_BYTES = size_t{HALF_WARPS} * Q_STAGE_BYTES;
  static constexpr size_t SCRATCH_BYTES = S_BYTES > Q_STAGES_BYTES ? S_BYTES : Q_STAGES_BYTES; // of one half

  static constexpr size_t SCRATCH_OFFSET = STAGES * STAGE_BYTES;
  static constexpr size_t OWN_OFFSET = SCRATCH_OFFSET + HALVES * SCRATCH_BYTES; // DEEP: scores that a warp keeps
  static constexpr size_t P_OFFSET = OWN_OFFSET + (DEEP && HALVES == 2 ? size_t{WARPS} * 1024 : 0);
  static constexpr size_t P_BYTES = size_t{ROWS} * P_PITCH * 2;
  static constexpr size_t FACTOR_OFFSET = P_OFFSET + BUFFERS * P_BYTES;
  static constexpr size_t MASK_OFFSET = FACTOR_OFFSET + size_t{BUFFERS} * ROWS * 4;
  static constexpr size_t STATE_OFFSET = MASK_OFFSET + size_t{ROWS} * 8;
  static constexpr size_t BARRIER_OFFSET = STATE_OFFSET + (DEEP ? size_t{WARPS} * 8 * 4 : size_t{THREADS} * 8);
  static constexpr size_t TABLE_OFFSET = BARRIER_OFFSET + size_t{2} * (STAGES + HALVES) * 8;
  static constexpr size_t GREW_OFFSET = (TABLE_OFFSET + size_t{TABLE_COLUMNS} * (MAX_BATCH + 1) * 4 + 15) / 16 * 16;
  static constexpr size_t SMEM_BYTES = GREW_OFFSET + (DEEP ? size_t{BUFFERS} * WARPS * 4 : 0);

  static_assert(NT == 2 || NT == 4 || NT == 5 || NT == 6 || NT == 8, "row granules");
  static_assert(HALVES == 2 || DEEP, "one team only with many rows");
  static_assert(TOK == 32 || TOK == 16, "tokens per tile");
  static_assert(STAGES >= 3, "the halves may be a tile apart, one more must be in flight");
  static_assert(SMEM_BYTES <= SMEM_SM90, "does not fit on sm_90");
  static_assert(P_OFFSET % 16 == 0 && FACTOR_OFFSET % 16 == 0 && MASK_OFFSET % 8 == 0 && BARRIER_OFFSET % 8 == 0);
};

// Two families from one source: the wide one where a block may have 227 KB, the narrow one where it may have 99 KB.
// Four stages also where five would fit: measured 1 % faster with up to four granules.
inline constexpr int WIDE_TOKENS = 32;
inline constexpr int NARROW_TOKENS = 16;
template <int NT>
using wide_config = tile_config<NT, WIDE_TOKENS, 4>;
template <int NT>
using narrow_config = tile_config<NT, NARROW_TOKENS, 4>;

// Granules of a group for which there are kernels; the narrow family has the first two.
inline constexpr int ROW_GRANULES[] = {2, 4, 5, 6, 8};

static_assert(narrow_config<2>::SMEM_BYTES <= SMEM_SM120 && narrow_config<4>::SMEM_BYTES <= SMEM_SM120);

// Reduce kernel.
inline constexpr int REDUCE_THREADS = 256;
inline constexpr int VALUE_TILES = VALUE_DIM / 16;
inline constexpr int REDUCE_TILES[] = {1, 2, 4, 8}; // value tiles per block for which there are kernels

} // namespace verify_mla
