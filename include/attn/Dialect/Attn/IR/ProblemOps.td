//===- ProblemOps.td - What to compute ----------------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_PROBLEMOPS_TD
#define ATTN_DIALECT_ATTN_IR_PROBLEMOPS_TD

include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "attn/Dialect/Attn/IR/AttnTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/IR/OpAsmInterface.td"

def Attn_ShapedOperand : AnyTypeOf<[AnyMemRef, AnyRankedTensor],
    "memref or ranked tensor">;

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
    lse[i] = m + log(z)                                 natural logarithm
    ```

    A query without any key (all masked, or Nk = 0) gives `o = 0` and
    `lse = -inf` (`lse = sinks[h]` with sinks).

    Operands q (B, H, Nq, D), k (B, Hkv, Nk, D), v (B, Hkv, Nk, Dv), o (B, H,
    Nq, Dv) and lse (B, H, Nq) have these dimensions in this order and any
    strides, so that (batch, sequence, heads, dim) is the same op with other
    strides. H is a multiple of Hkv (GQA, MQA). On tensors the op is in
    destination style and returns o and lse.

    With `cu_seqlens_q` and `cu_seqlens_k` (both int32, B + 1 elements, not
    decreasing, first 0) the sequences of a batch are packed: q, k, v, o and lse
    have batch 1, batch `b` owns rows `cu_seqlens[b]` to `cu_seqlens[b+1] - 1`,
    and `max_seqlen_q` bounds the length of a query sequence.

    The regions `score_mod` and `mask_mod` take (score: f32, batch, head, q
    index, kv index: i32) and yield an f32, and an i1 that is true where the
    pair is kept. They may read values from outside; indices count from the
    start of the sequence.

    Undefined behaviour: o or lse overlapping an input; cu_seqlens outside the
    rows; a query sequence longer than `max_seqlen_q`.

    Example:

    ```mlir
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
    Arg<Attn_ShapedOperand, "queries, (B, H, Nq, D)">:$q,
    Arg<Attn_ShapedOperand, "keys, (B, Hkv, Nk, D)">:$k,
    Arg<Attn_ShapedOperand, "values, (B, Hkv, Nk, Dv)">:$v,
    Arg<Attn_ShapedOperand, "output, (B, H, Nq, Dv)">:$o,
    Arg<Optional<Attn_ShapedOperand>, "log-sum-exp, (B, H, Nq), f32">:$lse,
    Arg<Optional<Attn_ShapedOperand>, "one extra logit for each head, (H), f32">:$sinks,
    Arg<Optional<Attn_ShapedOperand>, "cumulative query lengths, (B+1), i32">:$cu_seqlens_q,
    Arg<Optional<Attn_ShapedOperand>, "cumulative key lengths, (B+1), i32">:$cu_seqlens_k,
    Arg<Optional<Attn_ShapedOperand>, "page of each (batch, page index), i32">:$page_table,
    OptionalAttr<Attn_MaskAttr>:$mask,
    OptionalAttr<F32Attr>:$scale,
    OptionalAttr<F32Attr>:$softcap,
    OptionalAttr<I64Attr>:$max_seqlen_q,
    OptionalAttr<I64Attr>:$page_size,
    OptionalAttr<I64Attr>:$kv_splits,
    OptionalAttr<I64Attr>:$rope_dim,
    OptionalAttr<F32Attr>:$out_scale,
    OptionalAttr<Attn_PlanInterface>:$plan);
  let results = (outs Res<Variadic<AnyRankedTensor>, "o and lse, on tensors">:$results);
  let regions = (region MaxSizedRegion<1>:$score_mod, MaxSizedRegion<1>:$mask_mod);
  let assemblyFormat = [{
    `ins` `(` $q `,` $k `,` $v `:` type($q) `,` type($k) `,` type($v) `)`
    `outs` `(` $o (`,` $lse^)? `:` type($o) (`,` type($lse)^)? `)`
    oilist(`sinks` `(` $sinks `:` type($sinks) `)`
         | `cu_seqlens` `(` $cu_seqlens_q `,` $cu_seqlens_k `:` type($cu_seqlens_q) `,` type($cu_seqlens_k) `)`
         | `pages` `(` $page_table `:` type($page_table) `)`)
    (`score_mod` $score_mod^)? (`mask_mod` $mask_mod^)?
    attr-dict (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    MutableOperandRange getDpsInitsMutable();
    /// The scale in force: the attribute, or 1 / sqrt(D).
    double getEffectiveScale();
    /// The mask in force: the attribute, or the mask that keeps every pair.
    ::mlir::attn::MaskAttr getEffectiveMask();
    int64_t getHeadDim() { return getShape(getQ()).back(); }
    int64_t getValueDim() { return getShape(getV()).back(); }
    bool isVariableLength() { return static_cast<bool>(getCuSeqlensQ()); }
    bool hasTensorSemantics() { return isa<RankedTensorType>(getQ().getType()); }
    static ::llvm::ArrayRef<int64_t> getShape(::mlir::Value value) {
      return ::llvm::cast<::mlir::ShapedType>(value.getType()).getShape();
    }
  }];
}

def Attn_CombineOp : Attn_Op<"combine", [
    DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "merges partial attention results by their LSE";
  let description = [{
    Merges S partial results over disjoint sets of keys:

    ```
    m      = max_s partial_lse[s]
    w[s]   = exp(partial_lse[s] - m)
    o      = sum_s w[s] * partial_o[s] / sum_s w[s]
    lse    = m + log(sum_s w[s])
    ```

    A row whose partial LSEs are all -inf gives `o = 0`, `lse = -inf`.

    Example:

    ```mlir
    func.func @merge(%po: memref<4x2x8x300x64xf32>, %pl: memref<4x2x8x300xf32>,
                     %o: memref<2x8x300x64xf16>, %lse: memref<2x8x300xf32>) {
      attn.combine ins(%po, %pl : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
                   outs(%o, %lse : memref<2x8x300x64xf16>, memref<2x8x300xf32>)
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_ShapedOperand, "partial outputs, (S, B, H, Nq, Dv), f32">:$partial_o,
    Arg<Attn_ShapedOperand, "partial log-sum-exps, (S, B, H, Nq), f32">:$partial_lse,
    Arg<Attn_ShapedOperand, "output, (B, H, Nq, Dv)">:$o,
    Arg<Optional<Attn_ShapedOperand>, "log-sum-exp, (B, H, Nq), f32">:$lse);
  let results = (outs Res<Variadic<AnyRankedTensor>, "o and lse, on tensors">:$results);
  let assemblyFormat = [{
    `ins` `(` $partial_o `,` $partial_lse `:` type($partial_o) `,` type($partial_lse) `)`
    `outs` `(` $o (`,` $lse^)? `:` type($o) (`,` type($lse)^)? `)`
    attr-dict (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    MutableOperandRange getDpsInitsMutable();
  }];
}

def Attn_YieldOp : Attn_Op<"yield", [Pure, Terminator, ReturnLike,
    ParentOneOf<["AttentionOp", "MapElementsOp", "KVLoopOp"]>]> {
  let summary = "ends a region of this dialect and gives its values";
  let description = [{
    Terminates the regions of `attn.attention`, `attn.map_elements` and
    `attn.kv_loop`. Number and types of its operands are those that the parent
    states.

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

#endif // ATTN_DIALECT_ATTN_IR_PROBLEMOPS_TD
