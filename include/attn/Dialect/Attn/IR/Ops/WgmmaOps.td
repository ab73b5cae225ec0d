//===- WgmmaOps.td - Matrix instructions of a warpgroup -----*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_OPS_WGMMAOPS_TD
#define ATTN_DIALECT_ATTN_IR_OPS_WGMMAOPS_TD

include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "attn/Dialect/Attn/IR/AttnTypes.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "attn/Dialect/Attn/IR/Ops/MmaOps.td"
include "attn/Dialect/Attn/IR/OpGroups.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// The order of a warpgroup's asynchronous matrix instructions.
def Attn_WgmmaGroups : Resource<"::mlir::attn::WgmmaGroups">;

let opDocGroup = Attn_ProductGroup in {

def Attn_WgmmaOp : Attn_Op<"wgmma", [AttnRequiresSM<90>, AttnAsync<"kWgmmaGroups">,
    DeclareOpInterfaceMethods<Attn_LayoutOpInterface, ["getLayoutAnchors", "getOperandLayout"]>,
    DeclareOpInterfaceMethods<Attn_ProductOpInterface, ["getWarpgroups", "canRepeatInWarp", "repeatInWarp"]>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "starts a matrix multiply-accumulate of warpgroups";
  let description = [{
    `result = a * b` (`+ c`) for a (M x K), b (K x N), c (M x N), started as one
    group of `wgmma.mma_async` instructions (PTX ISA, asynchronous warpgroup
    level matrix instructions) with a fence before and a commit behind. Each
    warpgroup of the partition computes 64 rows: M is 64 times their number.
    `a` is a buffer or a register tile in the operand layout, `b` a buffer; a
    K x N view of a buffer that holds N x K is an `attn.transpose`. Fragments of
    the accumulator are those of `#attn.mma` with one warp for 16 rows. An
    instruction has up to 256 columns, so that wider products take two for each
    step, over columns that start at a multiple of 64.

    With `columns = n` the result has the first n columns of `b` only, and with
    `depth = k` the contraction goes over the first k columns of `a` and over k
    rows of `b`, which may have more: from the first ones on, or with `first = r`
    from row r on.

    The result is in flight: its registers may be touched only after an
    `attn.wgmma.wait`. The buffers may be written only after that too.

    Undefined behaviour: warps of a warpgroup that do not execute it together.

    Example:

    ```mlir
    func.func @qk(%q: !attn.buffer<128x64xf16, #attn.swizzled<span = 128>, shared>, %k: !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>) -> tensor<128x64xf32, #attn.auto> {
      %kt = attn.transpose %k : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>
      %s = attn.wgmma %q, %kt : !attn.buffer<128x64xf16, #attn.swizzled<span = 128>, shared>, !attn.buffer<64x64xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared> -> !attn.inflight<128x64xf32>
      %r = attn.wgmma.wait %s {pending = 0} : !attn.inflight<128x64xf32> -> tensor<128x64xf32, #attn.auto>
      return %r : tensor<128x64xf32, #attn.auto>
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_MmaOperand, "M x K">:$a,
    Arg<Attn_BufferType, "K x N">:$b,
    Arg<Optional<AnyTypeOf<[AnyRankedTensor, Attn_InFlightType]>>, "M x N, the accumulator">:$c,
    Described<OptionalAttr<I64Attr>, "of b that are multiplied, the first ones; all without it">:$columns,
    Described<OptionalAttr<I64Attr>, "of the contraction, the first columns of a; all without it">:$depth,
    Described<OptionalAttr<I64Attr>, "the first row of b of the contraction, 0 without it">:$first);
  let results = (outs Res<Attn_InFlightType, "M x N">:$result);
  let assemblyFormat = [{
    $a `,` $b (`acc` $c^ `:` type($c))? attr-dict `:` type($a) `,` type($b) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Most columns of a product: an accumulator of more leaves a thread no
    /// registers for anything else. Above 256 it takes two instructions a step.
    static constexpr int64_t kMostColumns = 384;
    /// Where in b the contraction starts.
    int64_t getStart() { return getFirst().value_or(0); }
    bool closesGroup() { return true; }
    bool touchesOwnRows(::mlir::OpOperand &operand) {
      return operand.getOperandNumber() == 0;
    }
    bool hasLimits() { return true; }
    void limitColumns(int64_t columns) { setColumns(columns); }
    void limitDepth(int64_t depth) { setDepth(depth); }
  }];
}

def Attn_WgmmaWaitOp : Attn_Op<"wgmma.wait", [AttnRequiresSM<90>, AttnAsync<"kWgmmaGroups">, SameVariadicResultSize,
    DeclareOpInterfaceMethods<Attn_LayoutOpInterface, ["getLayoutAnchors"]>,
    DeclareOpInterfaceMethods<Attn_ProductWaitOpInterface>,
    MemoryEffects<[MemRead<Attn_WgmmaGroups>, MemWrite<Attn_WgmmaGroups>]>]> {
  let summary = "waits for groups of wgmma and returns their accumulators";
  let description = [{
    Waits until at most `pending` groups are incomplete (PTX ISA,
    wgmma.wait_group) and returns the accumulators given, which are complete.
    Groups complete in the order in which they were started.

    Undefined behaviour: an accumulator one of whose groups is among the
    `pending` last ones.

    Example: see `attn.wgmma`.
  }];
  let arguments = (ins
    Arg<Variadic<Attn_InFlightType>, "accumulators in flight">:$sources,
    Described<I64Attr, "the youngest groups, which may stay incomplete">:$pending);
  let results = (outs Res<Variadic<AnyRankedTensor>, "the accumulators">:$results);
  let assemblyFormat = "($sources^)? attr-dict (`:` type($sources)^ `->` type($results))?";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::std::optional<int64_t> getAwaitedGroups() { return getPending(); }
  }];
}

def Attn_WgmmaResumeOp : Attn_Op<"wgmma.resume", [AttnRequiresSM<90>, Pure,
    DeclareOpInterfaceMethods<Attn_LayoutOpInterface, ["getLayoutAnchors", "getOperandLayout"]>]> {
  let summary = "a tile as the accumulator of products to come";
  let description = [{
    The same registers, as an accumulator in flight of which nothing is pending:
    what a path that had to wait hands to a place that takes an accumulator in
    flight. It emits no instruction.

    Example:

    ```mlir
    func.func @resume(%o: tensor<64x64xf32, #attn.auto>) -> tensor<64x64xf32, #attn.auto> {
      %f = attn.wgmma.resume %o : tensor<64x64xf32, #attn.auto> -> !attn.inflight<64x64xf32>
      %r = attn.wgmma.wait %f {pending = 0} : !attn.inflight<64x64xf32> -> tensor<64x64xf32, #attn.auto>
      return %r : tensor<64x64xf32, #attn.auto>
    }
    ```
  }];
  let arguments = (ins Arg<AnyRankedTensor, "the tile">:$source);
  let results = (outs Res<Attn_InFlightType, "the accumulator">:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Attn_ExtendColumnsOp : Attn_Op<"extend_columns", [Pure,
    DeclareOpInterfaceMethods<Attn_LayoutOpInterface, ["getLayoutLinks"]>]> {
  let summary = "a tile with more columns";
  let description = [{
    The source's columns and behind them columns of zeros: tiles of different
    widths that meet where branches do. No element moves between threads.

    Folds: an extension by no column is the tile.

    Example:

    ```mlir
    func.func @extend(%p: tensor<64x16xf16, #attn.auto>) -> tensor<64x64xf16, #attn.auto> {
      %e = attn.extend_columns %p : tensor<64x16xf16, #attn.auto> -> tensor<64x64xf16, #attn.auto>
      return %e : tensor<64x64xf16, #attn.auto>
    }
    ```
  }];
  let arguments = (ins Arg<AnyRankedTensor, "M x N">:$source);
  let results = (outs Res<AnyRankedTensor, "M x at least N">:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Attn_WarpgroupIndexOp : Attn_Op<"warpgroup_index", [AttnRequiresSM<90>, Pure]> {
  let summary = "the number of a thread's warpgroup in its partition";
  let description = [{
    Counts from 0 at the partition's first warp. All threads of a warpgroup take
    the same way in a branch on it, so that matrix instructions may stand there.

    Example:

    ```mlir
    func.func @index() -> i32 attributes {attn.warps = array<i64: 8, 1>} {
      %w = attn.warpgroup_index
      return %w : i32
    }
    ```
  }];
  let results = (outs Res<I32, "the number">:$result);
  let assemblyFormat = "attr-dict";
}

def Attn_NarrowOperandOp : Attn_Op<"narrow_operand", [AttnRequiresSM<89>, Pure,
    DeclareOpInterfaceMethods<Attn_LayoutOpInterface, ["getLayoutAnchors", "getOperandLayout"]>]> {
  let summary = "an accumulator as 8-bit operand a of a product";
  let description = [{
    Rounds f32 elements to the nearest of the result's 8-bit type (out of range:
    the largest finite one). An accumulator has two neighbouring columns in a
    thread, operand a four. `order` says which column of the source becomes
    which one of the result:

    - `interleaved` (the default): in every 16, column `8u + 2t + i` is put at
      `4t + 2u + i` (t < 4; u, i < 2). No element moves between threads. The
      product's operand b needs its rows in that order: `attn.local_transpose`
      makes it for wgmma, and `attn.mma` with `interleaved` reads it so.
    - `plain`: column n stays column n, by a shuffle for each four elements.
    - `quads`: column `u K/2 + 2t + i` is put at `4t + 2u + i` (t < K/4), the
      key that it stands for in `attn.apply_mask` with `quads`. No element moves
      between threads.

    Example:

    ```mlir
    func.func @narrow(%p: tensor<64x32xf32, #attn.mma<warps = [4, 1]>>) -> tensor<64x32xf8E4M3FN, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>> {
      %a = attn.narrow_operand %p : tensor<64x32xf32, #attn.mma<warps = [4, 1]>> -> tensor<64x32xf8E4M3FN, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>
      return %a : tensor<64x32xf8E4M3FN, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>
    }
    ```
  }];
  let arguments = (ins Arg<AnyRankedTensor, "M x K, f32">:$source,
    Described<DefaultValuedAttr<Attn_KeyOrderAttr, "::mlir::attn::KeyOrder::Interleaved">,
      "which column of the source becomes which one of the result">:$order);
  let results = (outs Res<AnyRankedTensor, "M x K, f8E4M3FN or f8E5M2">:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Attn_LocalTransposeOp : Attn_Op<"local_transpose", [AttnRequiresSM<90>,
    Attn_TakesWholeWarps]> {
  let summary = "a transposed copy of an 8-bit buffer";
  let description = [{
    `dest[c, 16 q + 4t + 2u + i] = source[16 q + 8u + 2t + i, c]` (t < 4; u, i <
    2): the transpose of the source, with its rows in the order in which
    `attn.narrow_operand` has columns. The instructions of the tensor cores take
    8-bit operands only with the contraction's index contiguous. The warps of
    the partition share the work, by ldmatrix, byte permutations and stmatrix
    without bank conflicts.

    Undefined behaviour: buffers that overlap; reading the result while another
    warp may write without a barrier or a signal between.

    Example:

    ```mlir
    func.func @transpose(%v: !attn.buffer<64x128xf8E4M3FN, #attn.swizzled<span = 128>, shared>, %vt: !attn.buffer<128x64xf8E4M3FN, #attn.swizzled<span = 64>, shared>) {
      attn.local_transpose %v, %vt : !attn.buffer<64x128xf8E4M3FN, #attn.swizzled<span = 128>, shared>, !attn.buffer<128x64xf8E4M3FN, #attn.swizzled<span = 64>, shared>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_BufferType, "K x N, 8-bit floats", [MemRead]>:$source,
    Arg<Attn_BufferType, "N x K, of the same type", [MemWrite]>:$dest);
  let assemblyFormat = "$source `,` $dest attr-dict `:` type($source) `,` type($dest)";
  let hasVerifier = 1;
}

} // let opDocGroup

#endif // ATTN_DIALECT_ATTN_IR_OPS_WGMMAOPS_TD
