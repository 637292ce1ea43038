"""Verify attention in Triton, three ways, written for this project as start lines to measure against.

T-ext   one program per (request, head, block of draft tokens) walks the whole prefix: the shape SGLang runs today
T-dec   split decode per draft token, heads of a token share a program: the KV is read once per draft token
T-pack  split decode with rows t * heads + h packed into one tile, keys reused as values: the fair opponent

All read prefix slots from kv_indices and draft slots from out_cache_loc, with a causal mask among the drafts.
Shapes as in verify_mla.h. Partials: fp32 [programs' rows, splits, 512], normalised, and fp32 lse (base 2).
"""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["draft", "heads", "rows", "groups", "splits"])
def split_kernel(q, kv, kv_indptr, kv_indices, out_cache_loc, partial, partial_lse, scale_log2, draft, heads, rows, groups,
                 splits, GROUP_ROWS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    b = tl.program_id(0) // groups
    g = tl.program_id(0) % groups
    split = tl.program_id(1)
    start = tl.load(kv_indptr + b)
    prefix = tl.load(kv_indptr + b + 1) - start
    total = prefix + draft
    i = tl.arange(0, BM)
    r = g * GROUP_ROWS + i
    valid = (i < GROUP_ROWS) & (r < rows)
    t = r // heads
    lat = tl.arange(0, 512)
    rope = 512 + tl.arange(0, 64)
    q_row = (b * rows + r).to(tl.int64) * 576
    q_lat = tl.load(q + q_row[:, None] + lat[None, :], mask=valid[:, None], other=0.0)
    q_rope = tl.load(q + q_row[:, None] + rope[None, :], mask=valid[:, None], other=0.0)
    chunk = tl.cdiv(tl.cdiv(total, splits), BN) * BN
    begin = split * chunk
    end = tl.minimum(begin + chunk, total)
    top = tl.full([BM], -1e30, tl.float32)
    norm = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, 512], tl.float32)
    for j0 in range(begin, end, BN):
        j = j0 + tl.arange(0, BN)
        in_prefix = j < prefix
        slot = tl.load(kv_indices + start + j, mask=in_prefix, other=0)
        slot += tl.load(out_cache_loc + b * draft + j - prefix, mask=(j >= prefix) & (j < total), other=0)
        k_lat = tl.load(kv + slot[:, None] * 576 + lat[None, :], mask=(j < end)[:, None], other=0.0)
        k_rope = tl.load(kv + slot[:, None] * 576 + rope[None, :], mask=(j < end)[:, None], other=0.0)
        s = tl.dot(q_lat, tl.trans(k_lat))
        s = tl.dot(q_rope, tl.trans(k_rope), s) * scale_log2
        seen = (j < end)[None, :] & (in_prefix[None, :] | (j[None, :] - prefix <= t[:, None]))
        s = tl.where(seen, s, float("-inf"))
        new_top = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new_top[:, None])
        alpha = tl.exp2(top - new_top)
        norm = norm * alpha + tl.sum(p, 1)
        acc = tl.dot(p.to(k_lat.dtype), k_lat, acc * alpha[:, None])
        top = new_top
    at = (b * rows + r).to(tl.int64) * splits + split
    safe = tl.where(norm > 0, norm, 1.0)
    tl.store(partial + at[:, None] * 512 + lat[None, :], acc / safe[:, None], mask=valid[:, None])
    tl.store(partial_lse + at, tl.where(norm > 0, top + tl.log2(safe), float("-inf")), mask=valid)


@triton.jit(do_not_specialize=["splits"])
def merge_kernel(partial, partial_lse, out, splits, NS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    s = tl.arange(0, NS)
    lse = tl.load(partial_lse + row * splits + s, mask=s < splits, other=float("-inf"))
    w = tl.exp2(lse - tl.maximum(tl.max(lse, 0), -1e30))
    v = tl.load(partial + (row * splits + s)[:, None] * 512 + c[None, :], mask=(s < splits)[:, None], other=0.0)
    total = tl.sum(w, 0)
    tl.store(out + row * 512 + c, (tl.sum(v * w[:, None], 0) / tl.where(total > 0, total, 1.0)).to(out.dtype.element_ty))


@triton.jit(do_not_specialize=["draft", "heads"])
def extend_kernel(q, kv, kv_indptr, kv_indices, out_cache_loc, out, scale_log2, draft, heads, BM: tl.constexpr, BN: tl.constexpr):
    b = tl.program_id(0)
    h = tl.program_id(1)
    start = tl.load(kv_indptr + b)
    prefix = tl.load(kv_indptr + b + 1) - start
    t = tl.program_id(2) * BM + tl.arange(0, BM)
    lat = tl.arange(0, 512)
    rope = 512 + tl.arange(0, 64)
    q_row = ((b * draft + t) * heads + h).to(tl.int64) * 576
    q_lat = tl.load(q + q_row[:, None] + lat[None, :], mask=(t < draft)[:, None], other=0.0)
    q_rope = tl.load(q + q_row[:, None] + rope[None, :], mask=(t < draft)[:, None], other=0.0)
    top = tl.full([BM], -1e30, tl.float32)
    norm = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, 512], tl.float32)
    for part in range(2):  # the prefix, then the drafts
        length = tl.where(part == 0, prefix, draft)
        for j0 in range(0, length, BN):
            j = j0 + tl.arange(0, BN)
            if part == 0:
                slot = tl.load(kv_indices + start + j, mask=j < length, other=0)
            else:
                slot = tl.load(out_cache_loc + b * draft + j, mask=j < length, other=0)
            row = slot * 576
            live = j < length
            k_lat = tl.load(kv + row[None, :] + lat[:, None], mask=live[None, :], other=0.0)
            k_rope = tl.load(kv + row[None, :] + rope[:, None], mask=live[None, :], other=0.0)
            s = tl.dot(q_lat, k_lat)
            s = tl.dot(q_rope, k_rope, s) * scale_log2
            seen = live[None, :] & ((part == 0) | (j[None, :] <= t[:, None]))
            s = tl.where(seen, s, float("-inf"))
            new_top = tl.maximum(top, tl.max(s, 1))
            p = tl.exp2(s - new_top[:, None])
            alpha = tl.exp2(top - new_top)
            norm = norm * alpha + tl.sum(p, 1)
            v = tl.load(kv + row[:, None] + lat[None, :], mask=live[:, None], other=0.0)
            acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
            top = new_top
    o_row = ((b * draft + t) * heads + h).to(tl.int64) * 512
    tl.store(out + o_row[:, None] + lat[None, :], (acc / norm[:, None]).to(out.dtype.element_ty), mask=(t < draft)[:, None])
