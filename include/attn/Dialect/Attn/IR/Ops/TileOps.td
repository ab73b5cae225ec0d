//===- TileOps.td - Register tiles --------------------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_OPS_TILEOPS_TD
#define ATTN_DIALECT_ATTN_IR_OPS_TILEOPS_TD

include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "attn/Dialect/Attn/IR/AttnTypes.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "attn/Dialect/Attn/IR/OpGroups.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

let opDocGroup = Attn_TileGroup in {

def Attn_ReduceOp : Attn_Op<"reduce", [Pure,
    DeclareOpInterfaceMethods<Attn_LayoutOpInterface, ["getLayoutLinks"]>]> {
  let summary = "reduces a tile along its columns";
  let description = [{
    Reduces dimension 1 of a rank-2 tile by `kind`.

    Without `partial` the result has rank 1: element i is the sum (maximum) of
    row i. With `partial` the result has rank 2: the elements of row i are sums
    (maxima) over an unspecified partition of row i's columns, one part for each
    column of the result. Reducing it again gives the same as reducing the
    source; a loop carries partial sums and pays for the exchange between
    threads once. `max` ignores NaN unless all are NaN (as `max.f32`); `maximum` is
    NaN where one element is (as `max.NaN.f32`).

    Folds: the maximum of rows that `attn.broadcast` made is what it repeated;
    the maximum of equal constants is one of them, the sum of zeros zero.

    Example:

    ```mlir
    func.func @rows(%t: tensor<128x64xf32, #attn.auto>) -> (tensor<128xf32, #attn.auto>, tensor<128x4xf32, #attn.partial<parent = #attn.auto>>) {
      %m = attn.reduce max %t : tensor<128x64xf32, #attn.auto> -> tensor<128xf32, #attn.auto>
      %l = attn.reduce add %t partial : tensor<128x64xf32, #attn.auto> -> tensor<128x4xf32, #attn.partial<parent = #attn.auto>>
      return %m, %l : tensor<128xf32, #attn.auto>, tensor<128x4xf32, #attn.partial<parent = #attn.auto>>
    }
    ```
  }];
  let arguments = (ins
    EnumProp<Attn_ReduceKind>:$kind,
    Arg<AnyRankedTensor, "the tile">:$source,
    Described<UnitAttr, "one column for each thread that holds the row's elements, to be added later">:$partial);
  let results = (outs Res<AnyRankedTensor, "row values">:$result);
  let assemblyFormat = [{
    $kind $source (`partial` $partial^)? attr-dict `:` type($source) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Attn_BroadcastOp : Attn_Op<"broadcast", [Pure,
    DeclareOpInterfaceMethods<Attn_LayoutOpInterface, ["getLayoutLinks", "getOperandLayout"]>]> {
  let summary = "repeats row values along the columns, or column values along the rows";
  let description = [{
    `result[i, j] = source[i]`; with `columns` `result[i, j] = source[j]`.

    Folds: equal constants are equal constants.

    Example:

    ```mlir
    func.func @spread(%m: tensor<128xf32, #attn.auto>) -> tensor<128x64xf32, #attn.auto> {
      %t = attn.broadcast %m : tensor<128xf32, #attn.auto> -> tensor<128x64xf32, #attn.auto>
      return %t : tensor<128x64xf32, #attn.auto>
    }
    ```
  }];
  let arguments = (ins
    Arg<AnyRankedTensor, "row or column values">:$source,
    Described<UnitAttr, "the source has a value for each column">:$columns);
  let results = (outs Res<AnyRankedTensor, "the tile">:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    /// The dimension of the result that the source has.
    unsigned getSourceDim() { return getColumns() ? 1 : 0; }
  }];
}

def Attn_SliceOp : Attn_Op<"slice", [Pure,
    DeclareOpInterfaceMethods<Attn_LayoutOpInterface, ["getLayoutLinks"]>]> {
  let summary = "some columns of a tile";
  let description = [{
    `result[i, j] = source[i, column + j]`. No element moves: each thread keeps those
    of its elements that are in the slice, so both tiles have one layout, in which a
    thread's elements repeat from slice to slice.

    Where all uses of the probabilities of `attn.online_softmax` are slices, the step
    computes them slice by slice, each where it is used.

    Folds: a slice of the tile's own type is the tile.

    Example:

    ```mlir
    func.func @back(%p: tensor<128x128xf16, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>) -> tensor<128x32xf16, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>> {
      %b = attn.slice %p {column = 96} : tensor<128x128xf16, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>> -> tensor<128x32xf16, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>
      return %b : tensor<128x32xf16, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>
    }
    ```
  }];
  let arguments = (ins
    Arg<AnyRankedTensor, "the tile">:$source,
    Described<I64Attr, "the first one of the slice">:$column);
  let results = (outs Res<AnyRankedTensor, "the slice">:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Attn_ColumnOp : Attn_Op<"column", [Pure,
    DeclareOpInterfaceMethods<Attn_LayoutOpInterface, ["getLayoutLinks"]>]> {
  let summary = "one column of a tile, as row values";
  let description = [{
    `result[i] = source[i, column]`. The thread that holds the element gives it to
    all threads of its warp that hold row values of that row.

    Folds: a column of equal constants is equal constants.

    Example:

    ```mlir
    func.func @third(%t: tensor<128x4xf32, #attn.partial<parent = #attn.auto>>) -> tensor<128xf32, #attn.auto> {
      %c = attn.column %t {column = 2} : tensor<128x4xf32, #attn.partial<parent = #attn.auto>> -> tensor<128xf32, #attn.auto>
      return %c : tensor<128xf32, #attn.auto>
    }
    ```
  }];
  let arguments = (ins
    Arg<AnyRankedTensor, "the tile">:$source,
    Described<I64Attr, "which one">:$column);
  let results = (outs Res<AnyRankedTensor, "row values">:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Attn_ConvertLayoutOp : Attn_Op<"convert_layout", [Pure]> {
  let summary = "the same tile in another layout";
  let description = [{
    No element changes; threads may exchange them: renaming of registers,
    shuffles in a warp, or a round trip through shared memory (`scratch`, placed
    by `attn-materialize-scratch`), as the two layouts ask.

    Folds: a conversion to the tile's own layout, and one there and back, are the
    tile. Two conversions in a row stay two: there may be no way to do them in
    one without more shared memory.

    Example:

    ```mlir
    func.func @p(%s: tensor<128x64xf16, #attn.mma<warps = [4, 1]>>) -> tensor<128x64xf16, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>> {
      %p = attn.convert_layout %s : tensor<128x64xf16, #attn.mma<warps = [4, 1]>> -> tensor<128x64xf16, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>
      return %p : tensor<128x64xf16, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>
    }
    ```
  }];
  let arguments = (ins Arg<AnyRankedTensor, "the tile">:$source);
  let results = (outs Res<AnyRankedTensor, "the tile in the result's layout">:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Attn_Exp2Op : Attn_Op<"exp2", [Attn_LayoutOpInterface, Pure, SameOperandsAndResultType]> {
  let summary = "2 to the power of each element";
  let description = [{
    `ex2.approx.ftz.f32`: relative error at most 2^-22; exp2(-inf) = 0.

    `polynomial` is the number of elements of every 16 (of an odd number one more
    and one less in turns, so that none is alone) which each thread computes by a
    polynomial of degree 3 on the FMA pipes instead: relative error at most
    1e-4; 0 below 2^-127, infinity from 2^128 on, NaN of NaN. Which ones they are
    follows from their places among the tile's elements that the thread holds, in
    the order of registers, and so from the layout alone: where threads hold
    whole rows the same columns of each block; the tile's first column counts as
    `column`, a multiple of 16. Pairs of them take packed
    arithmetic where the target has it, with the same bits as results. Scalars,
    and tiles of fewer elements than 16, take none. With `bounded` no exponent is
    128 or more, or NaN, or the results are not used: three instructions less for
    a pair. Of 2^-127 and less the results are below 2^-126, of NaN any.

    Example:

    ```mlir
    func.func @e(%t: tensor<128x64xf32, #attn.auto>) -> tensor<128x64xf32, #attn.auto> {
      %e = attn.exp2 %t {polynomial = 2, bounded} : tensor<128x64xf32, #attn.auto>
      return %e : tensor<128x64xf32, #attn.auto>
    }
    ```
  }];
  let arguments = (ins
    Arg<AnyTypeOf<[F32, AnyRankedTensor]>, "exponents">:$source,
    Described<DefaultValuedAttr<I64Attr, "0">, "of every 16 elements, how many a polynomial computes">:$polynomial,
    Described<UnitAttr, "no exponent is 128 or more or NaN where the result matters">:$bounded,
    Described<DefaultValuedAttr<I64Attr, "0">, "the first one, of a row of which this is a slice">:$column);
  let results = (outs Res<AnyTypeOf<[F32, AnyRankedTensor]>, "powers">:$result);
  let assemblyFormat = "$source attr-dict `:` type($source)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    bool isElementwiseOnTiles() { return true; }
  }];
}

def Attn_OnlineSoftmaxOp : Attn_Op<"online_softmax", [Pure,
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<Attn_LayoutOpInterface, ["getLayoutLinks"]>,
    DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "one step of the online softmax";
  let description = [{
    With scores s (M x N), running maximum m (M), partial row sums l (M x P) and
    output accumulator o (M x Dv), and `scale` (which already holds log2 e):

    ```
    m' = max(m, rowmax(s) * scale - offset, lowest)
    p  = exp2(s * scale - m')
    f  = exp2(m - m')
    l' = l * f + partial row sums of p
    o' = o * f
    ```

    Without o the last result is f, for whoever keeps o elsewhere: a row whose f
    is 1 has nothing to rescale. An `attn.rare` without results behind the step,
    on the condition that some f is not 1, becomes a part of the step's own rare
    path, and costs no second vote.

    With `largest`, a row's largest exponent so far, the last result is the
    largest behind the step; m' lies at most `growth` below it, and where it does
    no later step has changed m. So 2^(largest - m) is the row's largest
    probability as it was computed, whose rounding whoever divides by l may add
    to it. Where maxima are whole that is so whenever m has changed: then
    `largest` may have the type of l, largest ones of the parts of a row, under
    any policy and beside o.

    `keys` is how many keys the sums l come from, for `threshold` with 8-bit p. Then
    l / sqrt(keys) is at most the root of the sum of the squares of a row's powers. A
    new largest power up to that is rounded like the others, and no maximum changes
    for it as long as it grows by at most `growth`; a larger one decides its row and
    becomes a power of two, which no type rounds. Rows that no key decides get
    maxima `slack` powers of two higher, which they may grow by beside `growth`.

    m is in exponents of two and starts at -inf; `lowest` is the lowest finite
    number, so that a row whose keys are all masked gets p = 0.

    `#attn.softmax` behind `policy` says how m is kept and how powers are computed; a
    step without it is exact.

    `finite` promises that every row has at least one key in this block or had
    one before, so that the bound `lowest` is not needed.

    Example:

    ```mlir
    func.func @step(%s: tensor<128x64xf32, #attn.auto>, %m: tensor<128xf32, #attn.auto>, %l: tensor<128x4xf32, #attn.partial<parent = #attn.auto>>, %o: tensor<128x128xf32, #attn.auto>, %c: f32, %n: f32) {
      %p, %m1, %l1, %o1 = attn.online_softmax %s, %m, %l, %o scale %c : tensor<128x64xf32, #attn.auto>, tensor<128xf32, #attn.auto>, tensor<128x4xf32, #attn.partial<parent = #attn.auto>>, tensor<128x128xf32, #attn.auto>
      %q, %m2, %l2, %f = attn.online_softmax %s, %m1, %l1 scale %c policy<lagged> : tensor<128x64xf32, #attn.auto>, tensor<128xf32, #attn.auto>, tensor<128x4xf32, #attn.partial<parent = #attn.auto>>
      %r, %m3, %l3, %g, %largest = attn.online_softmax %s, %m2, %l2 largest %m2 : tensor<128xf32, #attn.auto> scale %c policy<threshold, growth = 7> : tensor<128x64xf32, #attn.auto>, tensor<128xf32, #attn.auto>, tensor<128x4xf32, #attn.partial<parent = #attn.auto>>
      %t, %m4, %l4, %h, %parts = attn.online_softmax %s, %m3, %l3 largest %l3 : tensor<128x4xf32, #attn.partial<parent = #attn.auto>> scale %c policy<exact, whole> : tensor<128x64xf32, #attn.auto>, tensor<128xf32, #attn.auto>, tensor<128x4xf32, #attn.partial<parent = #attn.auto>>
      %u, %m5, %l5, %i, %top = attn.online_softmax %s, %m3, %l3 largest %largest : tensor<128xf32, #attn.auto> keys %n scale %c policy<threshold, offset = 8, growth = 0.5, slack = 2> : tensor<128x64xf32, #attn.auto>, tensor<128xf32, #attn.auto>, tensor<128x4xf32, #attn.partial<parent = #attn.auto>>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<AnyRankedTensor, "scores, M x N, f32">:$s,
    Arg<AnyRankedTensor, "running maximum in exponents of two, M, f32">:$m,
    Arg<AnyRankedTensor, "partial row sums, M x P, f32">:$l,
    Arg<Optional<AnyRankedTensor>, "accumulator, M x Dv, f32">:$o,
    Arg<Optional<AnyRankedTensor>, "largest exponent so far, M or M x P, f32">:$largest,
    Arg<Optional<F32>, "number of keys that the sums come from">:$keys,
    Arg<F32, "scale times log2 e">:$scale,
    Described<OptionalAttr<Attn_SoftmaxAttr>, "how maxima are kept and powers are computed">:$softmax,
    Described<UnitAttr, "every row has a key that is not masked">:$finite);
  let results = (outs
    Res<AnyRankedTensor, "probabilities, M x N, f32">:$p,
    Res<AnyRankedTensor, "new maximum">:$newM,
    Res<AnyRankedTensor, "new partial sums">:$newL,
    Res<AnyRankedTensor, "rescaled accumulator; without one the factor, M">:$newO,
    Res<Optional<AnyRankedTensor>, "new largest exponent">:$newLargest);
  let assemblyFormat = [{
    $s `,` $m `,` $l (`,` $o^)? (`largest` $largest^ `:` type($largest))?
    (`keys` $keys^)? `scale` $scale
    (`policy` `` $softmax^)? attr-dict
    `:` type($s) `,` type($m) `,` type($l) (`,` type($o)^)?
  }];
  let builders = [
    // A step with the attributes' defaults; `o`, `largest` and `keys` may be null.
    OpBuilder<(ins "::mlir::Value":$s, "::mlir::Value":$m, "::mlir::Value":$l,
      "::mlir::Value":$o, "::mlir::Value":$scale,
      "::mlir::attn::SoftmaxPolicy":$policy,
      CArg<"::mlir::Value", "{}">:$largest,
      CArg<"::mlir::Value", "{}">:$keys)>];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    // The parameters of `softmax`, or their defaults.
    ::mlir::attn::SoftmaxAttr getStep();
    ::mlir::attn::SoftmaxPolicy getPolicy() { return getStep().getPolicy(); }
    ::llvm::APFloat getOffset() { return getStep().getOffset(); }
    ::llvm::APFloat getGrowth() { return getStep().getGrowth(); }
    ::llvm::APFloat getLimit() { return getStep().getLimit(); }
    int64_t getPolynomial() { return getStep().getPolynomial(); }
    bool getWhole() { return getStep().getWhole(); }
    ::llvm::APFloat getSlack() { return getStep().getSlack(); }
    void setPolicy(::mlir::attn::SoftmaxPolicy policy);
    void setOffset(const ::llvm::APFloat &offset);
    void setGrowth(const ::llvm::APFloat &growth);
    void setLimit(const ::llvm::APFloat &limit);
    void setPolynomial(int64_t polynomial);
    void setWhole(bool whole);
    void setSlack(const ::llvm::APFloat &slack);
    /// The factor by which whoever keeps the accumulator rescales it; null if
    /// the op does.
    ::mlir::Value getFactor() {
      return getO() ? ::mlir::Value() : ::mlir::Value(getNewO());
    }
    /// `largest` where it is that of whole rows; else null.
    ::mlir::Value getRowLargest() {
      ::mlir::Value largest = getLargest();
      return largest && largest.getType() == getM().getType()
                 ? largest
                 : ::mlir::Value();
    }
  }];
}

def Attn_SoftmaxSumsOp : Attn_Op<"softmax_sums", [Pure,
    Attn_ArithmeticOpInterface, AllTypesMatch<["m", "sums"]>]> {
  let summary = "the row sums behind the last step of an online softmax";
  let description = [{
    The whole sums of rows, from the partial ones that `attn.online_softmax` carries.
    Where the maximum m, in exponents of two, is `limit` or more, scores were beyond
    what the type of probabilities can tell apart, and the sum is NaN.

    Example:

    ```mlir
    func.func @sums(%l: tensor<128x4xf32, #attn.partial<parent = #attn.auto>>, %m: tensor<128xf32, #attn.auto>) -> tensor<128xf32, #attn.auto> {
      %sums = attn.softmax_sums %l, %m limit 2.68435456e+08 : tensor<128x4xf32, #attn.partial<parent = #attn.auto>>, tensor<128xf32, #attn.auto>
      return %sums : tensor<128xf32, #attn.auto>
    }
    ```
  }];
  let arguments = (ins
    Arg<AnyRankedTensor, "partial row sums, M x P, f32">:$l,
    Arg<AnyRankedTensor, "maxima in exponents of two, M, f32">:$m,
    Described<F32Attr, "maxima from which on sums are NaN">:$limit);
  let results = (outs Res<AnyRankedTensor, "row sums, M, f32">:$sums);
  let assemblyFormat = "$l `,` $m `limit` $limit attr-dict `:` type($l) `,` type($m)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::Value> emitArithmetic(::mlir::ImplicitLocOpBuilder &builder);
  }];
}

def Attn_SoftmaxInverseOp : Attn_Op<"softmax_inverse", [Pure,
    Attn_ArithmeticOpInterface, SameOperandsAndResultType]> {
  let summary = "what the results of a row are multiplied by";
  let description = [{
    One by the row's sum; 1 where the sum is 0, as in rows without keys, whose results
    are zeros.

    Example:

    ```mlir
    func.func @inverse(%sums: tensor<128xf32, #attn.auto>) -> tensor<128xf32, #attn.auto> {
      %inverse = attn.softmax_inverse %sums : tensor<128xf32, #attn.auto>
      return %inverse : tensor<128xf32, #attn.auto>
    }
    ```
  }];
  let arguments = (ins Arg<AnyRankedTensor, "row sums, M, f32">:$sums);
  let results = (outs Res<AnyRankedTensor, "factors of rows, M, f32">:$inverse);
  let assemblyFormat = "$sums attr-dict `:` type($sums)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::Value> emitArithmetic(::mlir::ImplicitLocOpBuilder &builder);
  }];
}

def Attn_SoftmaxLSEOp : Attn_Op<"softmax_lse", [Pure,
    Attn_ArithmeticOpInterface, SameOperandsAndResultType]> {
  let summary = "the LSE of rows";
  let description = [{
    The natural logarithm of the sum of a row's exponentials: `ln 2 (m + log2 sums)`,
    with m in exponents of two; -inf in a row without keys, whose sum is 0.

    Example:

    ```mlir
    func.func @lse(%m: tensor<128xf32, #attn.auto>, %sums: tensor<128xf32, #attn.auto>) -> tensor<128xf32, #attn.auto> {
      %lse = attn.softmax_lse %m, %sums : tensor<128xf32, #attn.auto>
      return %lse : tensor<128xf32, #attn.auto>
    }
    ```
  }];
  let arguments = (ins
    Arg<AnyRankedTensor, "maxima in exponents of two, M, f32">:$m,
    Arg<AnyRankedTensor, "row sums, M, f32">:$sums);
  let results = (outs Res<AnyRankedTensor, "LSE of rows, M, f32">:$lse);
  let assemblyFormat = "$m `,` $sums attr-dict `:` type($m)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::Value> emitArithmetic(::mlir::ImplicitLocOpBuilder &builder);
  }];
}

def Attn_RareOp : Attn_Op<"rare", [Attn_TakesWholeWarps,
    RecursiveMemoryEffects,
    DeclareOpInterfaceMethods<RegionBranchOpInterface,
      ["getEntrySuccessorOperands"]>,
    RangedTypesMatchWith<"results have the defaults' types", "defaults",
      "results", "$_self">,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "a path that a warp takes when one of its elements asks for it";
  let description = [{
    If an element of `condition` that the warp holds is true, the warp runs the
    body and the results are what it yields; else they are the defaults. Warps
    decide for themselves, so both paths must serve: the results of different
    warps need not come from the same one.

    With `each_warpgroup` the four warps of a warpgroup decide as one: all take
    the body if one of them needs it. That is what a body with an
    `attn.wgmma.wait` asks for (PTX ISA, wgmma.wait_group: all threads of the
    warp execute it, and all warps of the warpgroup the same instructions). The
    vote is a named barrier of the 128 threads (PTX ISA, barrier.cta.red);
    `attn-insert-fences` allots `barrier`, the first warpgroup's.

    With `leave_loop` a loop that the path ends is to be left for it
    (`attn-move-rare-paths`).

    Canonical form: where the condition is a constant, the path is always taken
    and stands where the op did, or never, and the defaults are the results.

    The body computes on tiles, and on buffers by `attn.mma`. It holds no barrier, no
    copy and no other access to memory, because other warps may not take it.

    Undefined behaviour: a body that combines values of rows which another warp
    holds; with `each_warpgroup`, warps of a warpgroup that do not execute it
    together, and another barrier of the same number at the same time.

    Example:

    ```mlir
    func.func @keep_small(%x: tensor<128x64xf32, #attn.auto>, %big: tensor<128x64xi1, #attn.auto>) -> tensor<128x64xf32, #attn.auto> {
      %r = attn.rare any %big default(%x : tensor<128x64xf32, #attn.auto>) : tensor<128x64xi1, #attn.auto> {
        %y = arith.mulf %x, %x : tensor<128x64xf32, #attn.auto>
        attn.yield %y : tensor<128x64xf32, #attn.auto>
      }
      return %r : tensor<128x64xf32, #attn.auto>
    }
    ```
  }];
  let arguments = (ins
    Arg<AnyRankedTensor, "i1: true where the body is needed">:$condition,
    Arg<Variadic<AnyType>, "results where it is not">:$defaults,
    Described<UnitAttr, "a warpgroup's four warps decide as one">:$each_warpgroup,
    Described<OptionalAttr<I64Attr>, "the first warpgroup's named barrier, set by attn-insert-fences">:$barrier,
    Described<UnitAttr, "a loop that the path ends is left for it">:$leave_loop);
  let results = (outs Res<Variadic<AnyType>, "yielded values or defaults">:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `any` $condition (`default` `(` $defaults^ `:` type($defaults) `)`)?
    attr-dict `:` type($condition) $body
  }];
  let hasCanonicalizeMethod = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

} // let opDocGroup

#endif // ATTN_DIALECT_ATTN_IR_OPS_TILEOPS_TD
