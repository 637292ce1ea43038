// Tile constants of the verify kernel: everything that fixes a shape at compile time, and nothing else.
// Included by device code, by the host launcher and by the tests, so no CUDA header is needed here.
#pragma once

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

inline constexpr int VALUES_PER_WARP = VALUE_DIM / WARPS; // value columns one warp accumulates
inline constexpr int M_TILES = VALUES_PER_WARP / 16;

inline constexpr int MAX_BATCH = 64; // requests per launch: the request table lives in shared memory
inline constexpr int MAX_DRAFT = 64; // draft tokens per request: one 64-bit word of mask per draft row

// One warp stages eight query rows of its slice here while it turns them into fragments (pitch 304 B, conflict-free).
inline constexpr int Q_STAGE_PITCH = K_STEPS * 32 + 16;
inline constexpr int Q_STAGE_BYTES = 8 * Q_STAGE_PITCH;

// Splits of the seed design, fixed when the program is compiled.
inline constexpr int FIXED_SPLIT_SMALL = 16;
inline constexpr int FIXED_SPLIT_LARGE = 64;

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

  // A ninth granule does not fit in registers beside eight: its query rows stay in shared memory.
  static constexpr bool EXTRA = NT == 9;
  static constexpr int NT_BASE = EXTRA ? 8 : NT;
  static constexpr int ROWS_BASE = 8 * NT_BASE;

  // The math warps work as two halves of four, one per slice. Each half scores half of the rows.
  static constexpr int HALF_ROWS = ROWS_BASE / 2;
  static constexpr int QK_N = NT_BASE / 2;
  static constexpr int QK_M = TOK / 16;

  // Up to four granules leave registers for two more warps that do nothing but fetch. With eight they do not (any
  // ninth warp caps all at 168 registers), and every math warp fetches its share.
  static constexpr int PRODUCERS = NT <= 4 ? 2 : 0;
  static constexpr int BLOCK = THREADS + 32 * PRODUCERS;
  static constexpr int FETCHERS = PRODUCERS ? PRODUCERS : WARPS;
  static constexpr int FETCH_ROWS = TOK / FETCHERS; // rows per fetching warp

  static constexpr int S_PITCH = TOK + 4; // floats
  static constexpr int P_PITCH = TOK + 8; // bf16

  // Softmax: lanes that share a row, and tokens per lane.
  static constexpr int LANES_PER_ROW = THREADS / ROWS_BASE;
  static constexpr int TOK_PER_LANE = TOK / LANES_PER_ROW;

  static constexpr size_t STAGE_BYTES = size_t{TOK} * ROW_PITCH;
  static constexpr size_t S_BYTES = size_t{K_SLICES} * HALF_ROWS * S_PITCH * 4; // of one half
  static constexpr size_t Q_STAGES_BYTES = size_t{K_SLICES} * Q_STAGE_BYTES;
  static constexpr size_t SCRATCH_BYTES = S_BYTES > Q_STAGES_BYTES ? S_BYTES : Q_STAGES_BYTES; // of one half
  static constexpr size_t S_EXTRA_BYTES = EXTRA ? size_t{K_SLICES} * 8 * S_PITCH * 4 : 0;
  static constexpr size_t P_BYTES = size_t{ROWS} * P_PITCH * 2; // two of them
  static constexpr size_t QX_BYTES = EXTRA ? size_t{8} * ROW_PITCH : 0;

  static constexpr size_t SCRATCH_OFFSET = STAGES * STAGE_BYTES;
  static constexpr size_t S_EXTRA_OFFSET = SCRATCH_OFFSET + 2 * SCRATCH_BYTES;
  static constexpr size_t P_OFFSET = S_EXTRA_OFFSET + S_EXTRA_BYTES;
  static constexpr size_t QX_OFFSET = P_OFFSET + 2 * P_BYTES;
  static constexpr size_t FACTOR_OFFSET = QX_OFFSET + QX_BYTES;
  static constexpr size_t MASK_OFFSET = FACTOR_OFFSET + size_t{2} * ROWS * 4;
  static constexpr size_t STATE_OFFSET = MASK_OFFSET + size_t{ROWS} * 8;
  static constexpr size_t RING_OFFSET = STATE_OFFSET + size_t{THREADS + (EXTRA ? THREADS / 2 : 0)} * 8;
  static constexpr size_t BARRIER_OFFSET = RING_OFFSET + (PRODUCERS ? 0 : size_t{2} * TOK * 4);
  static constexpr size_t FLAG_OFFSET = BARRIER_OFFSET + size_t{2} * STAGES * 8 + 2 * 8; // two per stage, two for P
  static constexpr size_t TABLE_OFFSET = FLAG_OFFSET + size_t{2} * WARPS;
  static constexpr size_t SMEM_BYTES = TABLE_OFFSET + size_t{5} * (MAX_BATCH + 1) * 4;

  static_assert(NT == 2 || NT == 4 || NT == 8 || NT == 9, "row granules");
  static_assert(TOK == 32 || (TOK == 16 && !EXTRA), "tokens per tile");
  static_assert(STAGES >= 4, "up to three tiles are in use at once, one more must be in flight");
  static_assert(SMEM_BYTES <= SMEM_SM90, "does not fit on sm_90");
  static_assert(S_EXTRA_OFFSET % 16 == 0 && P_OFFSET % 16 == 0 && QX_OFFSET % 16 == 0 && FACTOR_OFFSET % 16 == 0);
  static_assert(MASK_OFFSET % 8 == 0 && RING_OFFSET % 16 == 0 && BARRIER_OFFSET % 8 == 0 && FLAG_OFFSET % 8 == 0);
};

// Two families from one source: the wide one where a block may have 227 KB, the narrow one where it may have 99 KB.
// Four stages also where five would fit: measured 1 % faster with up to four granules.
template <int NT>
using wide_config = tile_config<NT, 32, 4>;
template <int NT>
using narrow_config = tile_config<NT, 16, 4>;

static_assert(narrow_config<2>::SMEM_BYTES <= SMEM_SM120 && narrow_config<4>::SMEM_BYTES <= SMEM_SM120);

// Reduce kernel.
inline constexpr int REDUCE_THREADS = 256;
inline constexpr int VALUE_TILES = VALUE_DIM / 16;

} // namespace verify_mla
