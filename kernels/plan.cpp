#include "plan.h"

#include "config.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace verify_mla {
namespace {

result invalid(const std::string& message) { return {VERIFY_MLA_INVALID, message}; }

int ceil_div(int a, int b) { return (a + b - 1) / b; }

// Time of a tile by granules, in units of an 8-granule one: measured per group with two groups at batch 8, 65k tokens
// (146, 160, 191 us; four granules, 142, with an older version).
struct tile_cost {
  int granules;
  double cost;
};
constexpr tile_cost COSTS[] = {{4, 0.74}, {5, 0.76}, {6, 0.84}, {8, 1.0}};

int choose_granules(int rows, int sm_count, bool wide) {
  for (int g : ROW_GRANULES)
    if (rows <= 8 * g && (wide || g <= 4)) return g;
  if (!wide) return 4;
  // Blocks that share a KV run come in sets of `groups`; what does not fill a set idles.
  const auto cost = [&](const tile_cost& t) {
    const int groups = ceil_div(rows, 8 * t.granules);
    return groups > sm_count ? t.cost * ceil_div(groups, sm_count) : t.cost / (sm_count / groups);
  };
  tile_cost best = COSTS[0];
  for (const tile_cost& t : COSTS)
    if (cost(t) < cost(best)) best = t;
  return best.granules;
}

// In 32-token tiles, where there are many; a partial result costs as much as many tokens. Measured at batch 1, 4k (129
// tiles), us with 1 / 2 / 3 / 4 tiles per partition: 16 rows 8.0 / 7.7, 32 rows 13.4 / 9.9 / 10.3 / 11.2, 64 rows 17.2
// / 17.6 / 15.4 / 16.2, 72 rows 17.1 / 17.2 / 14.3 / 14.8, 128 rows 19.7 / 19.7 / 19.3 / 17.9. At 1k (33 tiles) one is
// best everywhere: 33 partials are few.
int default_min_tiles(int granules, int groups, bool wide) {
  const int tiles = granules == 2 ? 1 : granules == 4 ? 2 : granules == 8 && groups > 1 ? 4 : 3;
  return tiles * (wide ? 1 : 2);
}
constexpr int FEW_PARTIALS = 36; // of a request
// What going on with another request costs a block. Measured at batch 8, 4k and 16k, 64 to 128 rows: 32, 64 and 96
// tokens are 0 to 2, 1 to 3 and 1 to 4 us faster than none; up to 32 rows no difference.
constexpr int BORDER_TOKENS = 96;

const char* dtype_name(int dtype) {
  switch (dtype) {
  case VERIFY_MLA_NONE:
    return "none";
  case VERIFY_MLA_BF16:
    return "bf16";
  case VERIFY_MLA_F32:
    return "f32";
  case VERIFY_MLA_I32:
    return "i32";
  case VERIFY_MLA_I64:
    return "i64";
  case VERIFY_MLA_U8:
    return "u8";
  case VERIFY_MLA_FP8_E4M3:
    return "fp8_e4m3";
  default:
    return "unknown";
  }
}

struct requirement {
  const char* name;
  const verify_mla_buffer& buffer;
  int dtype;
  int64_t elements; // at least
  int64_t alignment;
};

result check_one(const requirement& r) {
  const std::string name = r.name;
  if (r.buffer.data == nullptr || r.buffer.dtype == VERIFY_MLA_NONE) return invalid(name + " is missing");
  if (r.buffer.dtype != r.dtype)
    return invalid(name + " must be " + dtype_name(r.dtype) + ", got " + dtype_name(r.buffer.dtype));
  if (r.buffer.elements < r.elements)
    return invalid(name + " needs at least " + std::to_string(r.elements) + " elements, got " +
                   std::to_string(r.buffer.elements));
  if (reinterpret_cast<uintptr_t>(r.buffer.data) % static_cast<uintptr_t>(r.alignment) != 0)
    return invalid(name + " must be aligned to " + std::to_string(r.alignment) + " bytes");
  return {};
}

bool present(const verify_mla_buffer& b) { return b.data != nullptr || b.dtype != VERIFY_MLA_NONE; }

result check_sizes(const verify_mla_params& p) {
  if (p.struct_bytes != sizeof(verify_mla_params))
    return invalid("struct_bytes is " + std::to_string(p.struct_bytes) + ", this library expects " +
                   std::to_string(sizeof(verify_mla_params)));
  if (p.variant < VERIFY_MLA_BALANCED || p.variant > VERIFY_MLA_EAGER) return invalid("unknown variant");
  if (p.batch < 1 || p.batch > MAX_BATCH)
    return invalid("batch must be 1.." + std::to_string(MAX_BATCH) + ", got " + std::to_string(p.batch));
  if (p.draft_tokens < 1 || p.draft_tokens > MAX_DRAFT)
    return invalid("draft_tokens must be 1.." + std::to_string(MAX_DRAFT) + ", got " + std::to_string(p.draft_tokens));
  if (p.heads < 1 || p.heads > 128) return invalid("heads must be 1..128, got " + std::to_string(p.heads));
  if (!(p.scale > 0) || !std::isfinite(p.scale))
    return invalid("scale must be positive: it cannot be derived from the absorbed head dimension");
  if (!(p.cap >= 0) || !std::isfinite(p.cap)) return invalid("cap must be 0 or positive");
  if (p.causal != 0 && p.causal != 1) return invalid("causal must be 0 or 1");
  if (p.min_tiles < 0) return invalid("min_tiles must not be negative");
  if ((p.flags & VERIFY_MLA_PARTIAL_F32) && (p.flags & VERIFY_MLA_PARTIAL_BF16))
    return invalid("partial results are either fp32 or bf16");
  if (p.row_granules != 0 && std::count(std::begin(ROW_GRANULES), std::end(ROW_GRANULES), p.row_granules) == 0)
    return invalid("row_granules must be 0, 2, 4, 5, 6 or 8");
  return {};
}

} // namespace

result make_plan(const verify_mla_device& device, const verify_mla_params& p, launch_plan& plan, int splits_override) {
  if (const result sizes = check_sizes(p); !sizes) return sizes;
  if (device.sm_count < 1) return invalid("the device was not opened");
  const bool supported = (device.cc_major == 9 && device.cc_minor == 0) || device.cc_major == 12;
  if (!supported)
    return {VERIFY_MLA_UNSUPPORTED, "compute capability " + std::to_string(device.cc_major) + "." +
                                        std::to_string(device.cc_minor) + "; kernels are built for 9.0 and 12.0"};
  if (device.smem_per_block < SMEM_SM120)
    return {VERIFY_MLA_UNSUPPORTED, "the kernels need " + std::to_string(SMEM_SM120) +
                                        " bytes of shared memory per block, the device offers " +
                                        std::to_string(device.smem_per_block)};

  plan = {};
  const int rows = p.draft_tokens * p.heads;
  plan.wide = device.cc_major == 9 && device.smem_per_block >= SMEM_SM90 && !(p.flags & VERIFY_MLA_NARROW);
  plan.pdl = !(p.flags & VERIFY_MLA_NO_PDL);
  plan.granules = p.row_granules ? p.row_granules : choose_granules(rows, device.sm_count, plan.wide);
  if (plan.granules > 4 && !plan.wide) return {VERIFY_MLA_UNSUPPORTED, "more than four granules need 227 KB blocks"};
  plan.tile_tokens = plan.wide ? WIDE_TOKENS : NARROW_TOKENS;
  plan.groups = ceil_div(rows, 8 * plan.granules);
  plan.partitions = std::max(1, device.sm_count / plan.groups);
  plan.min_tiles = p.min_tiles ? p.min_tiles : default_min_tiles(plan.granules, plan.groups, plan.wide);
  plan.few_partitions = p.min_tiles ? 0 : FEW_PARTIALS * p.batch;
  plan.border = p.variant == VERIFY_MLA_BALANCED ? BORDER_TOKENS / plan.tile_tokens : 0;
  if (p.variant == VERIFY_MLA_FIXED_SPLIT_16) plan.splits = FIXED_SPLIT_SMALL;
  if (p.variant == VERIFY_MLA_FIXED_SPLIT_64) plan.splits = FIXED_SPLIT_LARGE;
  if (p.variant == VERIFY_MLA_EAGER) plan.splits = std::max(1, splits_override);
  plan.partial_bf16 = plan.splits == 0 ? !(p.flags & VERIFY_MLA_PARTIAL_F32) : (p.flags & VERIFY_MLA_PARTIAL_BF16) != 0;

  plan.slots = plan.splits ? p.batch * plan.splits : plan.partitions + p.batch;
  plan.partial_blocks = plan.groups * (plan.splits ? p.batch * plan.splits : plan.partitions);
  plan.row_granules = ceil_div(rows, 8);
  const int granule_count = p.batch * plan.row_granules;
  // As many blocks as the device holds at once, two per multiprocessor: a second wave costs as much as the first.
  // Two tiles only where kernel A leaves registers for such blocks: measured 1 us faster at 16 rows and batch 8, but up
  // to 2 us slower at 72 and 128 rows, batch 1.
  plan.reduce_tiles = 8;
  for (int tiles : {4, 2, 1})
    if ((tiles != 2 || plan.granules <= 4) && granule_count * (VALUE_TILES / tiles) <= 2 * device.sm_count)
      plan.reduce_tiles = tiles;
  plan.reduce_chunks = 1;
  const auto blocks = [&] { return granule_count * (VALUE_TILES / plan.reduce_tiles / plan.reduce_chunks); };
  while (blocks() > 2 * device.sm_count && plan.reduce_tiles * plan.reduce_chunks < VALUE_TILES)
    plan.reduce_chunks *= 2;
  plan.reduce_blocks = blocks();
  plan.reduce_smem = size_t{64} * static_cast<size_t>(plan.splits ? plan.splits : plan.partitions);

  const int64_t slot_rows = int64_t{plan.slots} * plan.groups * plan.granules * 8;
  plan.ml_offset = slot_rows * VALUE_DIM * (plan.partial_bf16 ? 2 : 4);
  plan.workspace_bytes = plan.ml_offset + slot_rows * 8;
  return {};
}

result check_buffers(const verify_mla_params& p, const launch_plan& plan) {
  // Padding requests keep their draft tokens, so the token buffers must hold the full batch.
  const int64_t tokens = int64_t{p.batch} * p.draft_tokens;
  const int64_t rows = tokens * p.heads;
  const requirement required[] = {
      {"q", p.q, VERIFY_MLA_BF16, rows * HEAD_DIM, 16},
      {"kv", p.kv, VERIFY_MLA_BF16, HEAD_DIM, 16},
      {"kv_indptr", p.kv_indptr, VERIFY_MLA_I32, p.batch + 1, 4},
      {"kv_indices", p.kv_indices, VERIFY_MLA_I64, 0, 8},
      {"qo_indptr", p.qo_indptr, VERIFY_MLA_I64, p.batch + 1, 8},
      {"out_cache_loc", p.out_cache_loc, VERIFY_MLA_I64, tokens, 8},
      {"out", p.out, VERIFY_MLA_BF16, rows * VALUE_DIM, 16},
  };
  for (const requirement& r : required)
    if (const result one = check_one(r); !one) return one;
  if (p.kv.elements % HEAD_DIM != 0) return invalid("kv must be whole rows of 576 elements");
  if (p.kv.elements / HEAD_DIM > INT32_MAX) return invalid("kv has more than 2^31 - 1 slots");
  if (present(p.custom_mask) != present(p.mask_indptr)) return invalid("custom_mask and mask_indptr come together");
  if (present(p.custom_mask)) {
    if (const result one = check_one({"custom_mask", p.custom_mask, VERIFY_MLA_U8, 1, 1}); !one) return one;
    if (const result one = check_one({"mask_indptr", p.mask_indptr, VERIFY_MLA_I64, p.batch + 1, 8}); !one) return one;
  }
  if (present(p.lse))
    if (const result one = check_one({"lse", p.lse, VERIFY_MLA_F32, rows, 4}); !one) return one;
  if (p.variant == VERIFY_MLA_EAGER) return {};

  if (p.workspace.data == nullptr) return invalid("workspace is missing");
  if (reinterpret_cast<uintptr_t>(p.workspace.data) % 256 != 0)
    return invalid("workspace must be aligned to 256 bytes");
  const int64_t element = p.workspace.dtype == VERIFY_MLA_U8                                           ? 1
                          : p.workspace.dtype == VERIFY_MLA_BF16                                       ? 2
                          : p.workspace.dtype == VERIFY_MLA_F32 || p.workspace.dtype == VERIFY_MLA_I32 ? 4
                          : p.workspace.dtype == VERIFY_MLA_I64                                        ? 8
                                                                                                       : 0;
  if (element == 0) return invalid("workspace has no known dtype");
  if (p.workspace.elements * element < plan.workspace_bytes)
    return {VERIFY_MLA_WORKSPACE, "workspace needs " + std::to_string(plan.workspace_bytes) + " bytes, got " +
                                      std::to_string(p.workspace.elements * element)};
  return {};
}

kernel_args make_args(const verify_mla_params& p, const launch_plan& plan, void* workspace) {
  kernel_args a = {};
  a.q = static_cast<const bf16_bits*>(p.q.data);
  a.kv = static_cast<const bf16_bits*>(p.kv.data);
  a.kv_indptr = static_cast<const int32_t*>(p.kv_indptr.data);
  a.kv_indices = static_cast<const int64_t*>(p.kv_indices.data);
  a.qo_indptr = static_cast<const int64_t*>(p.qo_indptr.data);
  a.out_cache_loc = static_cast<const int64_t*>(p.out_cache_loc.data);
  a.mask = static_cast<const uint8_t*>(p.custom_mask.data);
  a.mask_indptr = static_cast<const int64_t*>(p.mask_indptr.data);
  a.out = static_cast<bf16_bits*>(p.out.data);
  a.lse = static_cast<float*>(p.lse.data);
  a.partial = workspace;
  a.partial_ml = reinterpret_cast<float*>(static_cast<char*>(workspace) + plan.ml_offset);
  a.scale = p.scale;
  a.cap = p.cap;
  a.batch = p.batch;
  a.heads = p.heads;
  a.groups = plan.groups;
  a.row_granules = plan.row_granules;
  a.dealt = deal_granules(plan.row_granules, plan.groups * halves_of_group(plan.granules));
  a.partitions = plan.partitions;
  a.min_tiles = plan.min_tiles;
  a.few_partitions = plan.few_partitions;
  a.border = plan.border;
  a.reduce_chunks = plan.reduce_chunks;
  a.splits = plan.splits;
  a.causal = p.causal;
  a.partial_bf16 = plan.partial_bf16 ? 1 : 0;
  a.old_prefix = p.flags & VERIFY_MLA_OLD_PREFIX ? 1 : 0;
  return a;
}

} // namespace verify_mla
