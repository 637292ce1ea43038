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

inline constexpr int MAX_BATCH = 64;  // requests per launch: the request table lives in shared memory
inline constexpr int MAX_DRAFT = 64;  // draft tokens per request: one 64-bit word of mask per draft row

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
template <int NT_, int TOK_, int STAGES_> struct tile_config {
  static constexpr int NT = NT_;
  static constexpr int TOK = TOK_;
  static constexpr int STAGES = STAGES_;
  static constexpr int ROWS = 8 * NT;

  // A ninth granule does not fit in registers beside eight: its query rows stay in shared memory.
  static constexpr bool EXTRA = NT == 9;
  static constexpr int NT_BASE = EXTRA ? 8 : NT;
  static constexpr int ROWS_BASE = 8 * NT_BASE;

  // The two warps of one slice share the score product of a tile by tokens where the query fragments of all rows fit
  // in registers (each key is then read once), else by rows.
  static constexpr bool BY_TOKEN = TOK == 32 && NT <= 4;
  static constexpr bool ONE_HALF = !BY_TOKEN && NT == 1; // nothing to share: the second warp idles
  static constexpr int QK_N = BY_TOKEN || ONE_HALF ? NT : NT_BASE / 2;
  static constexpr int QK_M = BY_TOKEN ? 1 : TOK / 16;

  static constexpr int S_PITCH = TOK + 4; // floats
  static constexpr int P_PITCH = TOK + 8; // bf16
  static constexpr int ROWS_PER_WARP = TOK / WARPS;

  // Softmax: lanes that share a row, and tokens per lane.
  static constexpr int LANES_PER_ROW = (THREADS / ROWS_BASE < 32 ? THREADS / ROWS_BASE : 32) < TOK
                                           ? (THREADS / ROWS_BASE < 32 ? THREADS / ROWS_BASE : 32)
                                           : TOK;
  static constexpr int TOK_PER_LANE = TOK / LANES_PER_ROW;

  static constexpr size_t STAGE_BYTES = size_t{TOK} * ROW_PITCH;
  static constexpr size_t S_BYTES = size_t{K_SLICES} * ROWS * S_PITCH * 4;
  static constexpr size_t SCRATCH_BYTES = S_BYTES > size_t{WARPS} * Q_STAGE_BYTES ? S_BYTES : WARPS * Q_STAGE_BYTES;
  static constexpr size_t P_BYTES = size_t{2} * ROWS * P_PITCH * 2;
  static constexpr size_t QX_BYTES = EXTRA ? size_t{8} * ROW_PITCH : 0;

  static constexpr size_t SCRATCH_OFFSET = STAGES * STAGE_BYTES;
  static constexpr size_t P_OFFSET = SCRATCH_OFFSET + SCRATCH_BYTES;
  static constexpr size_t QX_OFFSET = P_OFFSET + P_BYTES;
  static constexpr size_t ALPHA_OFFSET = QX_OFFSET + QX_BYTES;
  static constexpr size_t MASK_OFFSET = ALPHA_OFFSET + size_t{2} * ROWS * 4;
  static constexpr size_t STATE_OFFSET = MASK_OFFSET + size_t{ROWS} * 8;
  static constexpr size_t TABLE_OFFSET = STATE_OFFSET + size_t{THREADS + (EXTRA ? WARPS : 0)} * 8;
  static constexpr size_t RING_OFFSET = TABLE_OFFSET + size_t{5} * (MAX_BATCH + 1) * 4; // slots of the next two tiles
  static constexpr size_t BARRIER_OFFSET = (RING_OFFSET + size_t{2} * TOK * 4 + 7) / 8 * 8;
  static constexpr size_t SMEM_BYTES = BARRIER_OFFSET + size_t{STAGES} * 8;

  static_assert(NT == 1 || NT == 2 || NT == 4 || NT == 8 || NT == 9, "row granules");
  static_assert(TOK == 16 || TOK == 32, "tokens per tile");
  static_assert(STAGES >= 3, "two tiles are in use at once, one more must be in flight");
  static_assert(SMEM_BYTES <= SMEM_SM90, "does not fit on sm_90");
  static_assert(P_OFFSET % 16 == 0 && QX_OFFSET % 16 == 0 && ALPHA_OFFSET % 16 == 0 && MASK_OFFSET % 8 == 0);
};

// Two families from one source: the wide one where a block may have 227 KB, the narrow one where it may have 99 KB.
template <int NT> using wide_config = tile_config<NT, 32, (NT <= 4 ? 5 : 4)>;
template <int NT> using narrow_config = tile_config<NT, 16, (NT <= 4 ? 4 : 3)>;

static_assert(narrow_config<1>::SMEM_BYTES <= SMEM_SM120 && narrow_config<2>::SMEM_BYTES <= SMEM_SM120);
static_assert(narrow_config<4>::SMEM_BYTES <= SMEM_SM120 && narrow_config<8>::SMEM_BYTES <= SMEM_SM120);
static_assert(narrow_config<9>::SMEM_BYTES <= SMEM_SM120);

// Reduce kernel.
inline constexpr int REDUCE_THREADS = 256;
inline constexpr int VALUE_TILES = VALUE_DIM / 16;

} // namespace verify_mla
