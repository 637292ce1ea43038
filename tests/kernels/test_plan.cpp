// Launch arithmetic and every check, without a GPU: the device is a struct.
#include "catch_compat.h"

#include "config.h"
#include "plan.h"

#include <vector>

using namespace verify_mla;

namespace {

const verify_mla_device H200{0, 132, 232448, 9, 0, 60 << 20};
const verify_mla_device RTX{0, 188, 101376, 12, 0, 128 << 20};

// Host memory stands in for device memory: only addresses are looked at.
struct fixture {
  alignas(256) char memory[256];
  verify_mla_params p = {};
  verify_mla_buffer buffer(int64_t elements, int dtype) { return {memory, elements, dtype, 0}; }
  fixture() {
    p.struct_bytes = sizeof p;
    p.batch = 8;
    p.draft_tokens = 9;
    p.heads = 8;
    p.causal = 1;
    p.scale = 0.1447f;
    const int64_t tokens = 72, rows = tokens * 8;
    p.q = buffer(rows * 576, VERIFY_MLA_BF16);
    p.kv = buffer(1000 * 576, VERIFY_MLA_BF16);
    p.kv_indptr = buffer(9, VERIFY_MLA_I32);
    p.kv_indices = buffer(900, VERIFY_MLA_I64);
    p.qo_indptr = buffer(9, VERIFY_MLA_I64);
    p.out_cache_loc = buffer(tokens, VERIFY_MLA_I64);
    p.custom_mask = buffer(9 * (900 + tokens), VERIFY_MLA_U8);
    p.mask_indptr = buffer(9, VERIFY_MLA_I64);
    p.out = buffer(rows * 512, VERIFY_MLA_BF16);
    p.lse = buffer(rows, VERIFY_MLA_F32);
    p.workspace = buffer(int64_t{1} << 30, VERIFY_MLA_U8);
  }
  result check(const verify_mla_device& device = H200) const {
    launch_plan plan;
    const result planned = make_plan(device, p, plan);
    return planned ? check_buffers(p, plan) : planned;
  }
};

bool says(const result& r, int status, const std::string& words) {
  INFO(r.message);
  const bool ok = r.status == status && r.message.find(words) != std::string::npos;
  CHECK(ok);
  return ok;
}

} // namespace

TEST_CASE("a right call passes, on both devices") {
  fixture f;
  CHECK(f.check());
  CHECK(f.check(RTX));
  f.p.custom_mask = f.p.mask_indptr = f.p.lse = {};
  CHECK(f.check());
}

TEST_CASE("wrong dtypes are refused by name") {
  fixture f;
  f.p.qo_indptr.dtype = VERIFY_MLA_I32; // what SGLang hands over outside a graph
  says(f.check(), VERIFY_MLA_INVALID, "qo_indptr must be i64, got i32");
  f = {};
  f.p.kv_indptr.dtype = VERIFY_MLA_I64;
  says(f.check(), VERIFY_MLA_INVALID, "kv_indptr must be i32, got i64");
  f = {};
  f.p.kv_indices.dtype = VERIFY_MLA_I32;
  says(f.check(), VERIFY_MLA_INVALID, "kv_indices must be i64");
  f = {};
  f.p.mask_indptr.dtype = VERIFY_MLA_I32;
  says(f.check(), VERIFY_MLA_INVALID, "mask_indptr must be i64");
  f = {};
  f.p.kv.dtype = VERIFY_MLA_FP8_E4M3;
  says(f.check(), VERIFY_MLA_INVALID, "kv must be bf16, got fp8_e4m3");
  f = {};
  f.p.lse.dtype = VERIFY_MLA_BF16;
  says(f.check(), VERIFY_MLA_INVALID, "lse must be f32");
}

TEST_CASE("wrong sizes, missing buffers, alignment") {
  fixture f;
  f.p.q.elements -= 1;
  says(f.check(), VERIFY_MLA_INVALID, "q needs at least");
  f = {};
  f.p.out.data = f.memory + 2;
  says(f.check(), VERIFY_MLA_INVALID, "out must be aligned to 16 bytes");
  f = {};
  f.p.out_cache_loc = {};
  says(f.check(), VERIFY_MLA_INVALID, "out_cache_loc is missing");
  f = {};
  f.p.mask_indptr = {};
  says(f.check(), VERIFY_MLA_INVALID, "come together");
  f = {};
  f.p.kv.elements = 577;
  says(f.check(), VERIFY_MLA_INVALID, "whole rows");
  f = {};
  f.p.kv.elements = (int64_t{1} << 31) * 576;
  says(f.check(), VERIFY_MLA_INVALID, "2^31");
  f = {};
  f.p.workspace.elements = 1000;
  says(f.check(), VERIFY_MLA_WORKSPACE, "got 1000");
  f = {};
  f.p.workspace.data = f.memory + 16;
  says(f.check(), VERIFY_MLA_INVALID, "256");
}

TEST_CASE("wrong options") {
  const auto refused = [](void (*change)(verify_mla_params&), const char* words) {
    fixture f;
    change(f.p);
    says(f.check(), VERIFY_MLA_INVALID, words);
  };
  refused([](verify_mla_params& p) { p.struct_bytes = 8; }, "struct_bytes");
  refused([](verify_mla_params& p) { p.batch = 0; }, "batch must be 1..64");
  refused([](verify_mla_params& p) { p.batch = 65; }, "batch");
  refused([](verify_mla_params& p) { p.draft_tokens = 65; }, "draft_tokens");
  refused([](verify_mla_params& p) { p.heads = 129; }, "heads");
  refused([](verify_mla_params& p) { p.scale = 0; }, "scale");
  refused([](verify_mla_params& p) { p.cap = -1; }, "cap");
  refused([](verify_mla_params& p) { p.variant = 9; }, "variant");
  refused([](verify_mla_params& p) { p.row_granules = 3; }, "row_granules");
  refused([](verify_mla_params& p) { p.flags = VERIFY_MLA_PARTIAL_F32 | VERIFY_MLA_PARTIAL_BF16; }, "either");
}

TEST_CASE("devices that cannot run it") {
  fixture f;
  says(f.check({0, 108, 166912, 8, 0, 0}), VERIFY_MLA_UNSUPPORTED, "compute capability 8.0");
  says(f.check({0, 132, 65536, 9, 0, 0}), VERIFY_MLA_UNSUPPORTED, "shared memory");
  says(f.check({}), VERIFY_MLA_INVALID, "not opened");
}

TEST_CASE("row groups") {
  const auto plan_for = [](int draft, int heads, const verify_mla_device& device) {
    fixture f;
    f.p.draft_tokens = draft;
    f.p.heads = heads;
    launch_plan plan;
    REQUIRE(make_plan(device, f.p, plan));
    CHECK(plan.groups * plan.granules * 8 >= draft * heads);
    CHECK((plan.groups - 1) * plan.granules * 8 < draft * heads);
    CHECK(plan.partial_blocks == plan.groups * plan.partitions);
    return plan;
  };
  CHECK(plan_for(1, 8, H200).granules == 2);
  CHECK(plan_for(4, 8, H200).granules == 4);
  CHECK(plan_for(8, 8, H200).granules == 8);
  CHECK(plan_for(9, 8, H200).granules == 5); // 72 rows: 40 and 32
  CHECK(plan_for(9, 8, H200).groups == 2);
  CHECK(plan_for(9, 64, H200).granules == 8);
  CHECK(plan_for(16, 8, H200).groups == 2);
  CHECK(plan_for(9, 8, RTX).granules == 4); // 99 KB blocks
  CHECK(plan_for(9, 8, RTX).groups == 3);
  CHECK(plan_for(64, 128, H200).partitions >= 1); // more groups than multiprocessors
}

TEST_CASE("few partitions may be short, unless the caller says how long they must be") {
  fixture f;
  launch_plan plan;
  REQUIRE(make_plan(H200, f.p, plan));
  CHECK(plan.few_partitions == 36 * f.p.batch);
  CHECK(make_args(f.p, plan, nullptr).few_partitions == plan.few_partitions);
  CHECK(make_args(f.p, plan, nullptr).old_prefix == 0);
  f.p.flags |= VERIFY_MLA_OLD_PREFIX;
  CHECK(make_args(f.p, plan, nullptr).old_prefix == 1);
  f.p.min_tiles = 5;
  REQUIRE(make_plan(H200, f.p, plan));
  CHECK(plan.min_tiles == 5);
  CHECK(plan.few_partitions == 0);
}

TEST_CASE("workspace") {
  fixture f;
  launch_plan plan;
  REQUIRE(make_plan(H200, f.p, plan));
  // 66 partitions and 8 requests, two groups of 40 rows, 512 values in bf16 and two floats
  CHECK(plan.workspace_bytes == int64_t{74} * 80 * (512 * 2 + 8));
  f.p.variant = VERIFY_MLA_FIXED_SPLIT_16;
  REQUIRE(make_plan(H200, f.p, plan));
  CHECK(plan.workspace_bytes == int64_t{8 * 16} * 80 * (512 * 4 + 8));
  // The seed's 605 MB: 8 requests, 16 splits, 2304 rows, 512 + 1 floats (we keep two).
  f.p.draft_tokens = 36;
  f.p.heads = 64;
  f.p.row_granules = 8;
  REQUIRE(make_plan(H200, f.p, plan));
  CHECK(plan.workspace_bytes == int64_t{8 * 16} * 2304 * 514 * 4);
  CHECK(plan.partial_blocks == 8 * 16 * 36);
}

TEST_CASE("every tile configuration fits its device") {
  CHECK(wide_config<2>::SMEM_BYTES <= SMEM_SM90);
  CHECK(wide_config<5>::SMEM_BYTES <= SMEM_SM90);
  CHECK(wide_config<6>::SMEM_BYTES <= SMEM_SM90);
  CHECK(narrow_config<2>::SMEM_BYTES <= SMEM_SM120);
  CHECK(narrow_config<4>::SMEM_BYTES <= SMEM_SM120);
}
