/* Verify attention for absorbed MLA (multi-head latent attention): all draft tokens of each request against its whole
 * latent KV, for speculative decoding. Plain C ABI, usable from C, C++ and by ctypes.
 *
 * Row r = t * heads + h of request b (draft token t, head h), K_j = pool row j (576), V_j = its first 512 columns:
 *   s_j = scale * <q_r, K_j>;  if cap > 0: s_j = cap * tanh(s_j / cap);  s_j = -inf where masked
 *   out_r = sum_j softmax(s)_j V_j;  lse_r = ln(sum_j exp(s_j));  a row that sees nothing: out 0, lse -inf
 * Visible are all prefix tokens, and those draft tokens that the mask allows. Source of the formula: absorbed MLA as in
 * the DeepSeek-V2 paper (arXiv 2405.04434, section 2.1), soft cap and mask order as in SGLang's Triton kernels.
 *
 * Ownership: the caller owns every buffer; nothing is kept between calls. Errors: every function returns a
 * verify_mla_status and writes a sentence to `error` (may be null); none prints, exits or throws.
 * Threads: all functions may be called from any thread; two launches that may overlap on the device must not share a
 * workspace. Capture: after verify_mla_open, verify_mla_launch does nothing but two kernel launches (variant EAGER
 * excepted), so it may be captured in any mode, and a graph stays valid while lengths, slots and masks change in place.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum verify_mla_status {
  VERIFY_MLA_OK = 0,
  VERIFY_MLA_INVALID = 1,     /* a shape, dtype, pointer or option is wrong */
  VERIFY_MLA_UNSUPPORTED = 2, /* right, but not on this device or in this build */
  VERIFY_MLA_WORKSPACE = 3,   /* the workspace is too small */
  VERIFY_MLA_CUDA = 4         /* a CUDA call failed; the message names it */
};

enum verify_mla_dtype {
  VERIFY_MLA_NONE = 0, /* buffer absent */
  VERIFY_MLA_BF16 = 1,
  VERIFY_MLA_F32 = 2,
  VERIFY_MLA_I32 = 3,
  VERIFY_MLA_I64 = 4,
  VERIFY_MLA_U8 = 5,
  VERIFY_MLA_FP8_E4M3 = 6 /* reserved for a later KV format; refused today */
};

enum verify_mla_variant {
  VERIFY_MLA_BALANCED = 0,       /* the default: the batch is partitioned on the device, fixed grid */
  VERIFY_MLA_FIXED_SPLIT_16 = 1, /* 16 runs per request, whatever its length */
  VERIFY_MLA_FIXED_SPLIT_64 = 2,
  VERIFY_MLA_EAGER = 3 /* naive host path: reads lengths back, allocates, converts. Never capturable, on purpose */
};

enum verify_mla_flags {
  VERIFY_MLA_NO_PDL = 1,       /* no programmatic dependent launch between the two kernels */
  VERIFY_MLA_PARTIAL_F32 = 2,  /* partial results in fp32 */
  VERIFY_MLA_PARTIAL_BF16 = 4, /* partial results in bf16 */
  VERIFY_MLA_NARROW = 8,       /* use the tiles made for 99 KB of shared memory also where there is more */
  VERIFY_MLA_OLD_PREFIX = 16 /* the caller's promise: kv_indptr, qo_indptr, kv_indices, out_cache_loc and the pool rows
                                of prefix tokens were complete before the kernel before this launch on its stream began.
                                They are then fetched while that kernel ends. An engine writes them once per step, the
                                layers follow. Queries, masks and the rows of draft tokens may come from that kernel */
};

/* A device buffer. `elements` is its capacity, counted in elements of `dtype`. */
typedef struct verify_mla_buffer {
  void* data;
  int64_t elements;
  int32_t dtype; /* enum verify_mla_dtype */
  int32_t reserved;
} verify_mla_buffer;

/* What the checks and the launch arithmetic need to know of a device. Filled by verify_mla_open. */
typedef struct verify_mla_device {
  int32_t ordinal;
  int32_t sm_count;
  int32_t smem_per_block; /* opt-in maximum, bytes */
  int32_t cc_major;
  int32_t cc_minor;
  int32_t l2_bytes;
} verify_mla_device;

/* Every integer here is fixed when a graph is captured. Set struct_bytes to sizeof(verify_mla_params). */
typedef struct verify_mla_params {
  uint32_t struct_bytes;
  int32_t variant;      /* enum verify_mla_variant */
  int32_t batch;        /* requests, 1..64 (padding requests included) */
  int32_t draft_tokens; /* most draft tokens of a request, 1..64 */
  int32_t heads;        /* query heads on this rank, 1..128 */
  int32_t causal;       /* used without custom_mask: 1 = draft t sees drafts 0..t, 0 = all drafts of its request */
  float scale;          /* > 0; not derived from the head dimension: 192^-0.5 * mscale^2 for these models */
  float cap;            /* >= 0; 0: none */
  verify_mla_buffer q;  /* bf16 [tokens, heads, 576], tokens = sum of draft tokens; 16-byte aligned */
  verify_mla_buffer kv; /* bf16 [slots, 1, 576], this layer's pool; 16-byte aligned; slots < 2^31 */
  verify_mla_buffer kv_indptr;     /* i32 [batch + 1], prefix tokens before each request */
  verify_mla_buffer kv_indices;    /* i64 [kv_indptr[batch]], pool slots of the prefix tokens, any order */
  verify_mla_buffer qo_indptr;     /* i64 [batch + 1], draft tokens before each request */
  verify_mla_buffer out_cache_loc; /* i64 [tokens], pool slots of the draft tokens, written before this call */
  verify_mla_buffer custom_mask; /* u8, request b: [T_b, prefix_b + T_b] at mask_indptr[b], 1 = visible; may be absent.
                                    Only columns >= prefix_b are read, as SGLang does by default */
  verify_mla_buffer mask_indptr; /* i64 [batch + 1], element offsets; absent with the mask */
  verify_mla_buffer out;         /* bf16 [tokens, heads, 512]; 16-byte aligned */
  verify_mla_buffer lse;         /* f32 [tokens, heads], natural logarithm; may be absent */
  verify_mla_buffer workspace;   /* any dtype, verify_mla_workspace_bytes bytes; 256-byte aligned; absent for EAGER */
  void* stream;                  /* cudaStream_t */
  uint32_t flags;                /* enum verify_mla_flags */
  int32_t min_tiles;             /* least tiles of a balanced partition; 0: by the number of rows */
  int32_t row_granules;          /* 8-row granules of a row group (2, 4, 5, 6, 8); 0: by the number of rows */
  int32_t reserved;
} verify_mla_params;

/* Queries a device and prepares its kernels (shared memory limits). Call once per device, before any capture. */
int verify_mla_open(int ordinal, verify_mla_device* device, char* error, size_t error_bytes);

/* One line for a log: mode, split design, multiprocessors. Returns the characters it needs, as snprintf does. */
int verify_mla_describe(const verify_mla_device* device, const verify_mla_params* params, char* text, size_t bytes);

/* Bytes for any batch up to params->batch and the other sizes as given; buffers are not looked at. 0 for EAGER. */
int verify_mla_workspace_bytes(const verify_mla_device* device, const verify_mla_params* params, int64_t* bytes,
                               char* error, size_t error_bytes);

/* Every check there is: sizes, dtypes, capacities, alignment, workspace, device. Touches no device memory; call it
 * once, before capture. */
int verify_mla_check(const verify_mla_device* device, const verify_mla_params* params, char* error, size_t error_bytes);

/* verify_mla_check, then the launches, on params->stream. */
int verify_mla_launch(const verify_mla_device* device, const verify_mla_params* params, char* error,
                      size_t error_bytes);

#ifdef __cplusplus
}
#endif
