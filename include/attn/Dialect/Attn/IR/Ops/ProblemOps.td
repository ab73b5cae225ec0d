//===- ProblemOps.td - What to compute ----------------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_OPS_PROBLEMOPS_TD
#define ATTN_DIALECT_ATTN_IR_OPS_PROBLEMOPS_TD

include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "attn/Dialect/Attn/IR/AttnTypes.td"
include "attn/Dialect/Attn/IR/OpGroups.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/IR/OpAsmInterface.td"

def Attn_ShapedOperand : AnyTypeOf<[AnyMemRef, AnyRankedTensor],
    "memref or ranked tensor">;

let opDocGroup = Attn_ProblemGroup in {

def Attn_AttentionOp : Attn_Op<"attention", [
    AttrSizedOperandSegments,
    DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    RecursiveMemoryEffects]> {
  let summary = "scaled dot-product attention";
  let description = [{
    For each batch `b`, query head `h`, query `i`, with `g = h / (H / Hkv)`:

    ```
    s[j]   = scale * sum_d q[b,h,i,d] * k[b,g,j,d]
    s[j]   = softcap * tanh(s[j] / softcap)             if softcap is given
    s[j]   = score_mod(s[j], b, h, i, j)                if score_mod is given
    s[j]   = -inf    where mask or mask_mod excludes (i, j)
    m      = max(max_j s[j], sinks[h])
    z      = sum_j exp(s[j] - m) + exp(sinks[h] - m)    second term only with sinks
    o[i,:] = (sum_j exp(s[j] - m) * v[b,g,j,:]) / z
    o[i,c] = out_mod(o[i,c], b, h, i, c)                if out_mod is given
    lse[i] = m + log(z)                                 natural logarithm
    ```

    A query without any key (all masked, or Nk = 0) gives `o = 0` and
    `lse = -inf` (`lse = sinks[h]` with sinks).

    Operands q (B, H, Nq, D), k (B, Hkv, Nk, D), v (B, Hkv, Nk, Dv), o (B, H,
    Nq, Dv) and lse (B, H, Nq) have these dimensions in this order and any
    strides but an innermost one of 1, so that (batch, sequence, heads, dim) is
    the same op with other strides. The stride of 1 of v may be that of its keys
    instead, as in (batch, heads, dim, sequence). H is a multiple of Hkv (GQA, MQA). On tensors the op is in
    destination style and returns o and lse.

    With `cu_seqlens_q` and `cu_seqlens_k` (both int32, B + 1 elements, not
    decreasing, first 0) the sequences of a batch are packed: q, k, v, o and lse
    have batch 1, batch `b` owns rows `cu_seqlens[b]` to `cu_seqlens[b+1] - 1`,
    and `max_seqlen_q` bounds the length of a query sequence. Rows of o and lse
    that no sequence owns keep their values.

    With `kv_lengths` (int32, (B)) batch `b` has the keys 0 to `kv_lengths[b] -
    1` only, and masks that are aligned bottom-right count from the last of
    them. A length below 0 counts as 0, one beyond what k, or the sequence's part
    of the page table, holds as that. What k and v hold behind the length reaches
    nothing, NaN included.

    With `page_table` (int32, (B, pages of a sequence)) k and v are pools of
    pages, (pages, Hkv, page_size, D) and (pages, Hkv, page_size, Dv): key `j`
    of batch `b` is row `j % page_size` of page `page_table[b, j / page_size]`.
    With `page_indptr` (int32, (B + 1), not decreasing, first 0) the table is one
    list (int32, (all pages)) in which batch `b` owns the entries
    `page_indptr[b]` to `page_indptr[b+1] - 1`; entries outside of the list count
    as none. A batch has as many keys as `kv_lengths` or `cu_seqlens_k` says, else
    as its pages hold. Pages may be shared. A page that is not in the pool, below
    0 or beyond, stands for keys and values that are zero: nothing outside of the
    pool is read. Entries of the table behind a sequence's last key are not looked
    at. With `selected` such a page stands for no keys: what is in its place gets
    no weight. Then the table says which pages a sequence's queries see, with
    pages of one key which keys, and -1 fills a row up; keys are numbered by their
    places in the table, so that no mask stands beside it. With pages and
    `kv_lengths`, `cu_seqlens_q` may stand without `cu_seqlens_k`: packed queries,
    whose keys are in pages.

    With `blocks(%block_counts, %block_indices)` the keys of a query are those of blocks
    that a list names (FlexAttention's BlockMask). `block_rows` queries side by side
    have a list of blocks of `block_keys` keys: the query `i` of head `h` has the blocks
    `block_indices[b,h,r,0]` to `block_indices[b,h,r,n-1]`, `r = i / block_rows` and `n =
    block_counts[b,h,r,0]`, in any order. The first `block_counts[b,h,r,1]` of them are
    full: `mask_mod` is not asked there. Counts are i32 (B, H, R, 2), indices i32 (B, H,
    R, L); a stride of 0 gives heads or batches one list. A count below 0 counts as 0,
    one beyond L, or of more full blocks than there are, as that. Indices behind a list's
    end are not looked at.

    With `kv_splits = S` the keys of each row are cut into S runs and o and lse
    become the partial results of each run, o (S, B, H, Nq, Dv) of type f32, bf16
    or f16 and lse (S, B, H, Nq) of type f32, for `attn.combine`. Runs are in order and may be empty,
    which gives 0 and -inf; their ends are the schedule's choice without
    `run_keys`. Sinks count in run 0 only. Partial results that a function
    allocates (`memref.alloc`) and that only problems use become workspaces: the
    kernels of these problems are the steps of one launch record, or one kernel
    where the plan says `combine = launch`.

    With `run_keys = N` run `r` has the keys `r N` to `(r+1) N - 1`, and the last
    run all that are left. Then what a sequence gives depends on the sequence
    alone: attn.combine of its runs has the same bits whatever else is in the
    batch, wherever the sequence stands in it, and however many runs there are.

    With `rope_dim = R` (multi-head latent attention, absorbed form) v is the
    first Dv = D - R columns of k: `v[b, 0, j, c]` and `k[b, 0, j, c]` are one
    value, which a kernel reads from k: its launch has no tensor v. With R = 0
    the values are the keys.

    With `rope(%k_rope)` the last R columns of k are a tensor of their own, of the
    type of q, and k has the first Dv: the operand v is the whole of k. So 8-bit
    latent columns stand beside rotated ones of 16 bits. With
    `rope(%k_rope, %q_rope)` q is divided in the same way: q has Dv columns, q_rope
    (B, H, Nq, R) the others.

    `init(%init_o, %init_lse)` is a state that rows go on from: o (B, H, Nq, Dv)
    and lse (B, H, Nq) of an attention to other keys, which count as one more key
    of row `i`, with the score `init_lse[b,h,i]` and the value `init_o[b,h,i,:]`.
    A score of -inf is that of no keys, whatever the value is. With `kv_splits`
    the state counts in run 0 only.

    `added(%added_k, %added_v, %added_table, %added_lengths)` are more keys, beside
    those of k, which every query of a sequence sees: the first `added_lengths[b]` keys
    of the pages that row `b` of the table names, of `added_page_size` keys each, as many
    as the row holds. A page outside of the pool hides its keys. Masks are those of k's
    keys, from whose end they count. With `rope_dim` it is `added(%added_k, %added_table,
    %added_lengths)`. So a window over the last keys of a sequence stands beside a list of
    keys that were selected or compressed, in one softmax. Descales count for both.

    `out_scale` multiplies o before it is rounded to an 8-bit type; what is beyond
    its largest number M becomes that one. With `out_scales(%o_scales)` and
    `out_group = N` each N columns of a row of an 8-bit o have a scale of their own,
    which the op writes: `o_scales[b,h,i,c] = max_j |o[b,h,i,j]| / M` over the columns
    j of group c, 1 where that is 0, and o is divided by it before it is rounded.
    Scales of f8E8M0FNU are the least powers of two that are no less than that, of
    2^-126 to 2^126, so that no finite number exceeds M.
    An o of i8, (B, H, Nq, Dv / 2), has two numbers of f4E2M1FN in a byte, that of the
    column with the even index in its lower half. It stands beside `out_group = 16` and
    scales of f8E4M3FN (nvfp4): `o_scales[b,h,i,c]` is the f8E4M3FN nearest to
    `max_j |o[b,h,i,j]| / 6`, and o is divided by it before it is rounded, or 0 where it
    is 0; `out_scale`, 1 without it, multiplies o before that. So it stands for
    `o[..., j] * o_scales[..., j / 16] / out_scale`. What is beyond a largest number
    becomes that one; a group with a NaN has unspecified numbers.
    Scales of 8 bits may be a matrix in tiles of 128 rows and 4 columns, (R, C), the
    layout 128x4 that block-scaled products read (see `attn.global_view`): row
    `b Nq + i` and column `h Dv / N + c` have what is `o_scales[b,h,i,c]` else, so that
    the tokens of all heads are the rows of a product. R is B Nq and C is H Dv / N, each
    padded to whole tiles; what is padding is not written.
    With `kv_splits` and an o of f16 `out_scales(%o_scales)`, (S, B, H, Nq, G), says what
    one unit of o stands for in each of G groups of neighbouring columns, as many in each,
    of each row, for all runs of all rows: a power of two, by which the group's largest
    number in size is in [2^14, 2^15), or less where that power would be below 2^-126. So
    partial results of f16 keep 11 bits whatever their range.

    k and v have the type of q, or one of 8 bits beside a q of 16 bits.

    With 8-bit k and v `descales(%q_descale, %k_descale, %v_descale)` says what
    one unit of each operand stands for: three f32 tensors (B, H), (B, Hkv) and
    (B, Hkv), where B counts sequences. q[b,h,:,:], k[b,g,:,:] and v[b,g,:,:] in
    the formulas are the stored numbers times q_descale[b,h], k_descale[b,g] and
    v_descale[b,g]. Beside a q of 16 bits it is `descales(%k_descale, %v_descale)`. A
    stride of 0 gives heads or sequences one number.

    With `scales(%k_scales, %v_scales)` and `scale_group = N` each N columns of a
    row of 8-bit k and v, beside a q of 16 bits, have a unit of their own: `k[b,g,j,c]`
    in the formulas is the stored number times `k_scales[b,g,j,c/N]`, `v` likewise.
    The tensors have the batches, heads and rows of k and v, or their pages, and
    are read where these are: rows that belong to no sequence may hold anything.
    Descales may stand beside. With `rope_dim` it is `scales(%k_scales)`, of the
    columns of k that v has, too.

    With `row_state` rows are not divided by z: o, of type f32, is `sum_j exp(s[j] - m)
    * v[b,g,j,:]`, and lse, (B, H, Nq, 2), has m and z of each row, -inf and 0 for one
    without any key; beside `kv_splits` each run has its own, which `attn.combine` merges
    to those of all keys. So results of other keys can be added to a row without a division.

    `expected_keys` says how many keys the sequences of a batch are expected to have,
    one number for each of them or for a few that stand for all. Costs are those of
    such a batch; what a kernel computes does not depend on it. Packed queries are
    expected to be in proportion.

    The regions `score_mod` and `mask_mod` take (score: f32, batch, head, q
    index, kv index: i32) and yield an f32, and an i1 that is true where the
    pair is kept. They may read values and memory from outside, and have no
    other effect; indices count from the start of the sequence. `mask_mod` gets
    the score that `score_mod` gives.

    The region `key_range` says which keys `mask_mod` leaves, so that a kernel skips
    blocks of others. It takes (batch, first head, last head, first query, last query:
    i32) of some tile, of which it may know no more than that these are in the problem
    or, in a problem without queries or keys, next to it. It yields `begin` and `end`:
    `mask_mod` is false for all heads and queries of the tile and all keys outside of
    `begin` to `end - 1`. If it yields `full_begin` and `full_end` in addition, `mask_mod`
    is true for all of them and the keys `full_begin` to `full_end - 1`. Numbers below 0
    count as 0, numbers beyond the keys as these. `attn-read-masks` writes it.

    The region `out_mod` takes (result: f32, batch, head, q index, column of o: i32)
    and yields an f32, as `score_mod` takes and yields scores. It runs once for each
    result, in f32, before `out_scale`, `out_scales` and the rounding to the type of o;
    lse is not its business. Partial results have none: it stands in the `attn.combine`
    of them.

    With `amax(%amax)` the largest |o| of all results joins the number of `amax`, (1): the
    results as `out_mod` leaves them, in f32, before `out_scale`, `out_scales` and the
    rounding to the type of o. What is in `amax` before counts too, so that the caller
    writes 0 there first, or has one number for several problems. A result that is NaN
    makes it NaN, one that is infinite makes it infinite unless another one is NaN.
    Without results it stays as it is. Partial results have none: it stands in the
    `attn.combine` of them.

    The constraints are numbered in `docs/spec.md` (attention_c1 to
    attention_c61).

    Undefined behaviour: o or lse overlapping an input or each other;
    cu_seqlens outside the rows or decreasing; a query sequence longer than
    `max_seqlen_q`; a descale that is not finite and
    above zero; with `rope_dim`, a v that differs from the first columns of k; an
    index of a list that names no block of k, or one that the list has twice; a
    `key_range` that `mask_mod` does not keep to; a number of `amax` that is below zero.

    Example:

    ```mlir
    func.func @listed(%q: memref<1x8x512x64xf16>, %k: memref<1x8x512x64xf16>, %v: memref<1x8x512x64xf16>,
                      %counts: memref<1x8x4x2xi32>, %indices: memref<1x8x4x4xi32>, %o: memref<1x8x512x64xf16>) {
      attn.attention ins(%q, %k, %v : memref<1x8x512x64xf16>, memref<1x8x512x64xf16>, memref<1x8x512x64xf16>)
                     outs(%o : memref<1x8x512x64xf16>)
                     blocks(%counts, %indices : memref<1x8x4x2xi32>, memref<1x8x4x4xi32>)
                     {block_rows = 128, block_keys = 128}
      return
    }
    func.func @largest(%q: memref<1x8x512x64xf16>, %k: memref<1x8x512x64xf16>, %v: memref<1x8x512x64xf16>,
                       %o: memref<1x8x512x64xf8E4M3FN>, %amax: memref<1xf32>) {
      attn.attention ins(%q, %k, %v : memref<1x8x512x64xf16>, memref<1x8x512x64xf16>, memref<1x8x512x64xf16>)
                     outs(%o : memref<1x8x512x64xf8E4M3FN>)
                     amax(%amax : memref<1xf32>) {out_scale = 64.0 : f32}
      return
    }
    func.func @window_and_list(%q: memref<2x16x1x128xbf16>, %k: memref<64x1x16x128xbf16>, %v: memref<64x1x16x128xbf16>,
                               %table: memref<2x32xi32>, %lengths: memref<2xi32>,
                               %more_k: memref<900x1x1x128xbf16>, %more_v: memref<900x1x1x128xbf16>,
                               %list: memref<2x256xi32>, %listed: memref<2xi32>, %o: memref<2x16x1x128xbf16>) {
      attn.attention ins(%q, %k, %v : memref<2x16x1x128xbf16>, memref<64x1x16x128xbf16>, memref<64x1x16x128xbf16>)
                     outs(%o : memref<2x16x1x128xbf16>)
                     pages(%table : memref<2x32xi32>) kv_lengths(%lengths : memref<2xi32>)
                     added(%more_k, %more_v, %list, %listed : memref<900x1x1x128xbf16>, memref<900x1x1x128xbf16>, memref<2x256xi32>, memref<2xi32>)
                     {page_size = 16, added_page_size = 1, mask = #attn.mask<kind = window, align = bottom_right, left = 127, right = 0>}
      return
    }
    func.func @causal_gqa(%q: memref<2x32x1024x128xf16>, %k: memref<2x8x1024x128xf16>,
                          %v: memref<2x8x1024x128xf16>, %o: memref<2x32x1024x128xf16>,
                          %lse: memref<2x32x1024xf32>) {
      attn.attention ins(%q, %k, %v : memref<2x32x1024x128xf16>, memref<2x8x1024x128xf16>, memref<2x8x1024x128xf16>)
                     outs(%o, %lse : memref<2x32x1024x128xf16>, memref<2x32x1024xf32>)
                     {mask = #attn.mask<kind = causal>, scale = 0.0883883461 : f32}
      return
    }
    ```
  }];
  let arguments = (ins
    /*attention_c1, attention_c2, attention_c3, attention_c4*/
    /*attention_c5, attention_c8, attention_c9, attention_c10, attention_c11*/
    /*attention_c12, attention_c13, attention_c14, attention_c15*/
    /*attention_c16, attention_c31*/
    Arg<Attn_ShapedOperand, "queries, (B, H, Nq, D)">:$q,
    Arg<Attn_ShapedOperand, "keys, (B, Hkv, Nk, D)">:$k,
    Arg<Attn_ShapedOperand, "values, (B, Hkv, Nk, Dv)">:$v,
    /*attention_c6*/
    Arg<Attn_ShapedOperand, "output, (B, H, Nq, Dv)">:$o,
    /*attention_c7, attention_c57*/
    Arg<Optional<Attn_ShapedOperand>, "log-sum-exp, (B, H, Nq), f32; with `row_state` maxima and sums, (B, H, Nq, 2)">:$lse,
    /*attention_c45, attention_c46, attention_c48, attention_c53*/
    Arg<Optional<Attn_ShapedOperand>, "what units of each row of o stand for, (B, H, Nq, Dv / N), f32 or f8E8M0FNU, or f8E4M3FN beside an o of i8, or of 8 bits (R, C) in tiles; of a partial result (S, B, H, Nq, G), f32">:$o_scales,
    /*attention_c61*/
    Arg<Optional<Attn_ShapedOperand>, "the largest |o|, (1), f32, which that of this problem joins">:$amax,
    /*attention_c19*/
    Arg<Optional<Attn_ShapedOperand>, "one extra logit for each head, (H), f32">:$sinks,
    /*attention_c20, attention_c21, attention_c22*/
    Arg<Optional<Attn_ShapedOperand>, "cumulative query lengths, (B+1), i32">:$cu_seqlens_q,
    Arg<Optional<Attn_ShapedOperand>, "cumulative key lengths, (B+1), i32">:$cu_seqlens_k,
    /*attention_c23*/
    Arg<Optional<Attn_ShapedOperand>, "page of each (batch, page index), or of each entry, i32">:$page_table,
    /*attention_c33, attention_c34, attention_c35*/
    Arg<Optional<Attn_ShapedOperand>, "what a unit of q stands for, (B, H), f32">:$q_descale,
    Arg<Optional<Attn_ShapedOperand>, "what a unit of k stands for, (B, Hkv), f32">:$k_descale,
    Arg<Optional<Attn_ShapedOperand>, "what a unit of v stands for, (B, Hkv), f32">:$v_descale,
    /*attention_c38*/
    Arg<Optional<Attn_ShapedOperand>, "cumulative counts of pages, (B+1), i32">:$page_indptr,
    /*attention_c37*/
    Arg<Optional<Attn_ShapedOperand>, "keys of each batch, (B), i32">:$kv_lengths,
    /*attention_c41*/
    Arg<Optional<Attn_ShapedOperand>, "results to go on from, (B, H, Nq, Dv)">:$init_o,
    Arg<Optional<Attn_ShapedOperand>, "their log-sum-exp, (B, H, Nq), f32">:$init_lse,
    /*attention_c42, attention_c43*/
    Arg<Optional<Attn_ShapedOperand>, "what units of each row of k stand for, (B, Hkv, Nk, D / N), f32">:$k_scales,
    Arg<Optional<Attn_ShapedOperand>, "what units of each row of v stand for, (B, Hkv, Nk, Dv / N), f32">:$v_scales,
    /*attention_c44*/
    Arg<Optional<Attn_ShapedOperand>, "columns of k that v does not have, apart, (B, Hkv, Nk, R)">:$k_rope,
    /*attention_c47*/
    Arg<Optional<Attn_ShapedOperand>, "as many columns of q apart, (B, H, Nq, R)">:$q_rope,
    /*attention_c54, attention_c55*/
    Arg<Optional<Attn_ShapedOperand>, "blocks of each list, and those of them that are full, (B, H, R, 2), i32">:$block_counts,
    Arg<Optional<Attn_ShapedOperand>, "blocks that lists name, full ones first, (B, H, R, L), i32">:$block_indices,
    /*attention_c59, attention_c60*/
    Arg<Optional<Attn_ShapedOperand>, "more keys, (pages, Hkv, S, D)">:$added_k,
    Arg<Optional<Attn_ShapedOperand>, "their values, (pages, Hkv, S, Dv)">:$added_v,
    Arg<Optional<Attn_ShapedOperand>, "their page of each (batch, page index), i32">:$added_table,
    Arg<Optional<Attn_ShapedOperand>, "how many each batch has, (B), i32">:$added_lengths,
    /*attention_c30*/
    Described<OptionalAttr<Attn_MaskAttr>, "which keys a query sees; all without it">:$mask,
    /*attention_c17*/
    Described<OptionalAttr<F32Attr>, "factor of the scores; 1 / sqrt(D) without it">:$scale,
    /*attention_c18*/
    Described<OptionalAttr<F32Attr>, "scores become softcap * tanh(score / softcap)">:$softcap,
    /*attention_c22*/
    Described<OptionalAttr<I64Attr>, "bound on the queries of a packed sequence">:$max_seqlen_q,
    /*attention_c23*/
    Described<OptionalAttr<I64Attr>, "keys of a page">:$page_size,
    /*attention_c40*/
    Described<UnitAttr, "pages outside of the pool hide their keys">:$selected,
    /*attention_c59*/
    Described<OptionalAttr<I64Attr>, "keys of a page of added_k">:$added_page_size,
    /*attention_c54, attention_c55*/
    Described<OptionalAttr<I64Attr>, "queries that share a list of blocks">:$block_rows,
    Described<OptionalAttr<I64Attr>, "keys of a block that lists name">:$block_keys,
    /*attention_c24*/
    Described<OptionalAttr<I64Attr>, "parts that the keys are cut into">:$kv_splits,
    /*attention_c39*/
    Described<OptionalAttr<I64Attr>, "keys of each part">:$run_keys,
    /*attention_c25*/
    Described<OptionalAttr<I64Attr>, "columns of q and k that v does not have">:$rope_dim,
    /*attention_c57*/
    Described<UnitAttr, "rows are not divided; lse has their maxima and sums">:$row_state,
    /*attention_c58*/
    Described<OptionalAttr<DenseI64ArrayAttr>, "keys that sequences are expected to have">:$expected_keys,
    /*attention_c42, attention_c43*/
    Described<OptionalAttr<I64Attr>, "columns of k and v that share a scale">:$scale_group,
    /*attention_c26*/
    Described<OptionalAttr<F32Attr>, "factor of the output">:$out_scale,
    /*attention_c45, attention_c46*/
    Described<OptionalAttr<I64Attr>, "columns of o that share a scale">:$out_group,
    /*attention_c36*/
    Described<DefaultValuedOptionalAttr<StrAttr, "\"attn_fwd\"">, "name of the kernel">:$kernel,
    Described<OptionalAttr<Attn_PlanInterface>, "schedule and parameters, set by attn-plan">:$plan);
  /*attention_c29*/
  let results = (outs Res<Variadic<AnyRankedTensor>, "o, lse, o_scales and amax, on tensors">:$results);
  /*attention_c27, attention_c28, attention_c32, attention_c49, attention_c50*/
  /*attention_c51, attention_c52, attention_c56*/
  // key_range, which may be empty, and out_mod, as far as they are there:
  // bytecode before version 6 has none of them, before version 7 no out_mod.
  let regions = (region MaxSizedRegion<1>:$score_mod, MaxSizedRegion<1>:$mask_mod,
    VariadicRegion<MaxSizedRegion<1>>:$late_regions);
  let assemblyFormat = [{
    `ins` `(` $q `,` $k `,` $v `:` type($q) `,` type($k) `,` type($v) `)`
    `outs` `(` $o (`,` $lse^)? `:` type($o) (`,` type($lse)^)? `)`
    oilist(`sinks` `(` $sinks `:` type($sinks) `)`
         | `cu_seqlens` `(` $cu_seqlens_q (`,` $cu_seqlens_k^)? `:` type($cu_seqlens_q) (`,` type($cu_seqlens_k)^)? `)`
         | `pages` `(` $page_table (`,` $page_indptr^)? `:` type($page_table) (`,` type($page_indptr)^)? `)`
         | `kv_lengths` `(` $kv_lengths `:` type($kv_lengths) `)`
         | `blocks` `(` $block_counts `,` $block_indices `:` type($block_counts) `,` type($block_indices) `)`
         | `init` `(` $init_o `,` $init_lse `:` type($init_o) `,` type($init_lse) `)`
         | `out_scales` `(` $o_scales `:` type($o_scales) `)`
         | `amax` `(` $amax `:` type($amax) `)`
         | `scales` `(` $k_scales (`,` $v_scales^)? `:` type($k_scales) (`,` type($v_scales)^)? `)`
         | `rope` `(` $k_rope (`,` $q_rope^)? `:` type($k_rope) (`,` type($q_rope)^)? `)`
         | `added` `(` custom<Added>($added_k, type($added_k), $added_v, type($added_v), $added_table, type($added_table), $added_lengths, type($added_lengths)) `)`
         | `descales` `(` custom<Descales>($q_descale, type($q_descale), $k_descale, type($k_descale), $v_descale, type($v_descale)) `)`)
    (`score_mod` $score_mod^)? (`mask_mod` $mask_mod^)? (custom<LateRegions>($late_regions)^)?
    attr-dict (`->` type($results)^)?
  }];
  let builders = [
    // An attention with its operands only; attributes and regions are the
    // caller's to add.
    OpBuilder<(ins "::mlir::Value":$q, "::mlir::Value":$k, "::mlir::Value":$v,
      "::mlir::Value":$o, CArg<"::mlir::Value", "{}">:$lse,
      CArg<"::mlir::Value", "{}">:$sinks,
      CArg<"::mlir::Value", "{}">:$cuSeqlensQ,
      CArg<"::mlir::Value", "{}">:$cuSeqlensK)>];
  // Bytecode of version 0 has no `kernel`.
  let useCustomPropertiesEncoding = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    MutableOperandRange getDpsInitsMutable();
    /// The name of the kernel in force: the plan's, or the attribute.
    ::llvm::StringRef getKernelName();
    /// The scale in force: the attribute, or 1 / sqrt(D).
    double getEffectiveScale();
    /// The mask in force: the attribute, or the mask that keeps every pair.
    ::mlir::attn::MaskAttr getEffectiveMask();
    /// D and Dv: columns of q, with those that are apart, and of v.
    int64_t getHeadDim() {
      int64_t apart = getQRope() ? getRopeDim().value_or(0) : 0;
      return getShape(getQ()).back() + apart;
    }
    int64_t getValueDim() { return getShape(getV()).back(); }
    /// True if the sequences of the batch are packed (cu_seqlens).
    bool isVariableLength() { return static_cast<bool>(getCuSeqlensQ()); }
    /// Returns the region that says which keys mask_mod leaves, null without one.
    Region *getKeyRange() { return findLateRegion(0); }
    /// Returns the region that changes results, null without one.
    Region *getOutMod() { return findLateRegion(1); }
    /// Returns one of `late_regions`, null if it is empty or not there.
    Region *findLateRegion(unsigned number) {
      ::mlir::MutableArrayRef<Region> all = getLateRegions();
      return number < all.size() && !all[number].empty() ? &all[number] : nullptr;
    }
    /// True if a region says which keys mask_mod leaves.
    bool hasKeyRange() { return getKeyRange() != nullptr; }
    /// True on tensors, false on memrefs.
    bool hasTensorSemantics() { return isa<RankedTensorType>(getQ().getType()); }
    /// The shape of an operand.
    static ::llvm::ArrayRef<int64_t> getShape(::mlir::Value value) {
      return ::llvm::cast<::mlir::ShapedType>(value.getType()).getShape();
    }
  }];
}

def Attn_CombineOp : Attn_Op<"combine", [
    DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    RecursiveMemoryEffects]> {
  let summary = "merges partial attention results by their LSE";
  let description = [{
    Merges S partial results over disjoint sets of keys:

    ```
    m      = max_s partial_lse[s]
    w[s]   = exp(partial_lse[s] - m)
    o      = sum_s w[s] * partial_o[s] / sum_s w[s]
    lse    = m + log(sum_s w[s])
    ```

    A row whose partial LSEs are all -inf gives `o = 0`, `lse = -inf`. What a
    partial result without weight, `w[s] = 0`, has is not looked at. With `scales`,
    exactly beside partial outputs of f16, `partial_o[s]` is the stored numbers times
    `partial_scales[s]`, of their row and group of columns, as `out_scales` of
    `attn.attention` says. `out_scale` multiplies o before it is rounded to an 8-bit
    type. With `out_group = N` the last output is `o_scales`: each N columns of a row of an
    8-bit o have a scale, as `out_scales` of `attn.attention` says, which the op writes;
    an o of i8 has pairs of f4E2M1FN, and may have both.
    The region `out_mod` changes o before both, as that of `attn.attention`. With `amax`
    the last output is the number that the largest |o| joins, as beside
    `attn.attention`: that of merged results alone.

    Where `partial_lse` is (S, B, H, Nq, 2) the partial results are rows that are not
    divided, as `attn.attention` writes with `row_state`, and so is the merged one: with
    `m[s]` and `z[s]` of a row and `w[s] = exp(m[s] - m)`, where m is the largest one,
    `o = sum_s w[s] * partial_o[s]`, and lse has m and `sum_s w[s] * z[s]`.

    The kernel that computes the partial results may do the merge too, where its
    plan says `combine = launch`; there is no kernel of the op then.

    The constraints are numbered in `docs/spec.md` (combine_c1 to combine_c15).

    Undefined behaviour: o, lse, o_scales or amax overlapping an input or each other.

    Example:

    ```mlir
    func.func @merge_halves(%po: memref<4x2x8x300x64xf16>, %pl: memref<4x2x8x300xf32>,
                            %ps: memref<4x2x8x300x1xf32>, %o: memref<2x8x300x64xf16>) {
      attn.combine ins(%po, %pl : memref<4x2x8x300x64xf16>, memref<4x2x8x300xf32>)
                   scales(%ps : memref<4x2x8x300x1xf32>) outs(%o : memref<2x8x300x64xf16>)
      return
    }
    func.func @merge(%po: memref<4x2x8x300x64xf32>, %pl: memref<4x2x8x300xf32>,
                     %o: memref<2x8x300x64xf16>, %lse: memref<2x8x300xf32>) {
      attn.combine ins(%po, %pl : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
                   outs(%o, %lse : memref<2x8x300x64xf16>, memref<2x8x300xf32>)
      return
    }
    func.func @merge_states(%po: memref<4x2x8x300x64xf32>, %pl: memref<4x2x8x300x2xf32>,
                            %o: memref<2x8x300x64xf32>, %lse: memref<2x8x300x2xf32>) {
      attn.combine ins(%po, %pl : memref<4x2x8x300x64xf32>, memref<4x2x8x300x2xf32>)
                   outs(%o, %lse : memref<2x8x300x64xf32>, memref<2x8x300x2xf32>)
      return
    }
    ```
  }];
  let arguments = (ins
    /*combine_c1, combine_c2, combine_c3, combine_c4, combine_c5, combine_c6*/
    Arg<Attn_ShapedOperand, "partial outputs, (S, B, H, Nq, Dv), f32, bf16 or f16">:$partial_o,
    Arg<Attn_ShapedOperand, "partial log-sum-exps, (S, B, H, Nq), f32; of rows that are not divided maxima and sums, (S, B, H, Nq, 2)">:$partial_lse,
    /*combine_c10, combine_c12, combine_c15*/
    Arg<Variadic<Attn_ShapedOperand>, "beside partial outputs of f16 their scales, (S, B, H, Nq, G), f32; o, (B, H, Nq, Dv); lse, (B, H, Nq), f32, where it is wanted, or (B, H, Nq, 2); with `out_group` o_scales, with `amax` that, as beside `attn.attention`">:$others,
    /*combine_c9*/
    Described<OptionalAttr<F32Attr>, "factor of the output">:$out_scale,
    /*combine_c11*/
    Described<OptionalAttr<I64Attr>, "columns of o that share a scale">:$out_group,
    /*combine_c14*/
    Described<UnitAttr, "the last output is the number that the largest |o| joins">:$amax,
    /*combine_c8*/
    Described<DefaultValuedOptionalAttr<StrAttr, "\"attn_combine\"">, "name of the kernel">:$kernel,
    Described<OptionalAttr<Attn_PlanInterface>, "schedule and parameters, set by attn-plan">:$plan);
  /*combine_c7*/
  let results = (outs Res<Variadic<AnyRankedTensor>, "the outputs, on tensors">:$results);
  /*combine_c13*/
  // Variadic, since bytecode before version 7 has no region.
  let regions = (region VariadicRegion<MaxSizedRegion<1>>:$out_mods);
  let assemblyFormat = [{
    `ins` `(` $partial_o `,` $partial_lse `:` type($partial_o) `,` type($partial_lse) `)`
    custom<ScalesAndOutputs>($others, type($others), ref(type($partial_o)))
    (`out_mod` $out_mods^)? attr-dict (`->` type($results)^)?
  }];
  // Bytecode in front of version 4 has no `out_scale`, of 5 no `out_group`, of
  // 11 no `amax`.
  let useCustomPropertiesEncoding = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    MutableOperandRange getDpsInitsMutable();
    /// The name of the kernel in force: the plan's, or the attribute.
    ::llvm::StringRef getKernelName();
    /// What units of partial outputs stand for, null if they are ones.
    Value getPartialScales() {
      return hasPartialScales(getPartialO().getType()) ? getOthers().front()
                                                       : Value();
    }
    /// Whether partial outputs of a type have scales.
    static bool hasPartialScales(Type partials) {
      return ::llvm::cast<::mlir::ShapedType>(partials)
          .getElementType()
          .isF16();
    }
    /// o, lse, o_scales and the number of amax, as far as they are there.
    OperandRange getOutputs() {
      return getOthers().drop_front(getPartialScales() ? 1 : 0);
    }
    Value getO() { return getOutputs().front(); }
    /// The log-sum-exp, null if there is none.
    Value getLse();
    /// The scales of o, null if there are none.
    Value getOScales() {
      return getOutGroupAttr() ? getOutputs().drop_back(getAmax() ? 1 : 0).back()
                               : Value();
    }
    /// The number that the largest |o| joins, null if there is none.
    Value getAmaxOutput() { return getAmax() ? getOutputs().back() : Value(); }
    /// Returns the region that changes results, null without one.
    Region *getOutMod() {
      return getOutMods().empty() || getOutMods().front().empty()
                 ? nullptr : &getOutMods().front();
    }
    /// True on tensors, false on memrefs.
    bool hasTensorSemantics() { return isa<RankedTensorType>(getO().getType()); }
  }];
}

def Attn_YieldOp : Attn_Op<"yield", [Pure, Terminator, ReturnLike,
    ParentOneOf<["AttentionOp", "CombineOp", "MapElementsOp", "KVLoopOp", "TileLoopOp", "RareOp", "RowKeysOp", "WarpSpecializeOp", "ElectOp", "ClusterLeaderOp"]>]> {
  let summary = "ends a region of this dialect and gives its values";
  let description = [{
    Terminates the regions of `attn.attention`, `attn.combine`, `attn.map_elements`,
    `attn.row_keys`, `attn.kv_loop`, `attn.tile_loop`, `attn.rare`, `attn.warp_specialize` and
    `attn.elect`. Number and types of its operands are those that the parent states.

    Example:

    ```mlir
    func.func @double(%s: tensor<128x64xf32, #attn.auto>, %i: i32, %j: i32) -> tensor<128x64xf32, #attn.auto> {
      %r = attn.map_elements %s[%i, %j] : tensor<128x64xf32, #attn.auto> {
      ^bb0(%x: f32, %row: i32, %column: i32):
        %y = arith.addf %x, %x : f32
        attn.yield %y : f32
      }
      return %r : tensor<128x64xf32, #attn.auto>
    }
    ```
  }];
  let arguments = (ins Arg<Variadic<AnyType>, "values given to the parent">:$operands);
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
  let builders = [OpBuilder<(ins), [{
    build($_builder, $_state, ::mlir::ValueRange());
  }]>];
}

} // let opDocGroup

#endif // ATTN_DIALECT_ATTN_IR_OPS_PROBLEMOPS_TD
