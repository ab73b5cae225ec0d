//===- MaskOps.td - Masks and scalar regions of tiles -------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_OPS_MASKOPS_TD
#define ATTN_DIALECT_ATTN_IR_OPS_MASKOPS_TD

include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "attn/Dialect/Attn/IR/AttnTypes.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "attn/Dialect/Attn/IR/OpGroups.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

let opDocGroup = Attn_TileGroup in {

def Attn_ApplyMaskOp : Attn_Op<"apply_mask", [Pure, AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<Attn_LayoutOpInterface, ["getLayoutLinks", "getOperandLayout"]>,
    AllTypesMatch<["source", "result"]>]> {
  let summary = "sets the scores of excluded keys to -inf";
  let description = [{
    Element (i, j) of the tile stands for query `row + i` and key `column + j`.
    It is kept if `column + j < limit`, and `row + i + lower <= column + j`, and
    `column + j <= row + i + upper`, as far as these operands are given; else it
    becomes -inf. With `rows` row i keeps the keys `from[i]` to `to[i] - 1` alone, as
    `attn.row_keys` finds them. `attn-expand-pipeline` drops the tests that a phase of
    the loop does not need: of `rows` the ends in phases without a test on the right.

    With `quads` the tile has N columns, a multiple of 16, for N keys in another
    order: column `u N/2 + 2t + i` stands for key `column + 4t + 2u + i` (t <
    N/4; u, i < 2). A thread that holds two neighbours of each half of an
    accumulator's columns then holds four neighbouring keys.

    With `group` = G every G rows stand for one query: element (i, j) for query
    `(row + i) / G`, of rows that are not negative.

    Folds: the same mask once more changes nothing.

    Example:

    ```mlir
    func.func @causal(%s: tensor<128x64xf32, #attn.auto>, %i: i32, %j: i32, %nk: i32, %off: i32) -> tensor<128x64xf32, #attn.auto> {
      %r = attn.apply_mask %s[%i, %j] limit %nk upper %off : tensor<128x64xf32, #attn.auto>
      return %r : tensor<128x64xf32, #attn.auto>
    }
    func.func @own(%s: tensor<128x64xf32, #attn.auto>, %i: i32, %j: i32, %from: tensor<128xi32, #attn.auto>, %to: tensor<128xi32, #attn.auto>) -> tensor<128x64xf32, #attn.auto> {
      %r = attn.apply_mask %s[%i, %j] rows %from : tensor<128xi32, #attn.auto> to %to : tensor<128xi32, #attn.auto> : tensor<128x64xf32, #attn.auto>
      return %r : tensor<128x64xf32, #attn.auto>
    }
    ```
  }];
  let arguments = (ins
    Arg<AnyRankedTensor, "scores">:$source,
    Arg<I32, "query of row 0, or with groups its row">:$row,
    Arg<I32, "key of column 0">:$column,
    Arg<Optional<I32>, "number of keys">:$limit,
    Arg<Optional<I32>, "least kept key minus query">:$lower,
    Arg<Optional<I32>, "greatest kept key minus query">:$upper,
    Arg<Optional<AnyRankedTensor>, "the first key that each row keeps, i32">:$from,
    Arg<Optional<AnyRankedTensor>, "one past the last one, i32">:$to,
    Described<UnitAttr, "columns are keys in the order of quads">:$quads,
    Described<OptionalAttr<I64Attr>, "rows of one query">:$group);
  let results = (outs Res<AnyRankedTensor, "masked scores">:$result);
  let assemblyFormat = [{
    $source `[` $row `,` $column `]` (`limit` $limit^)? (`lower` $lower^)?
    (`upper` $upper^)? (`rows` $from^ `:` type($from))? (`to` $to^ `:` type($to))?
    attr-dict `:` type($source)
  }];
  let builders = [
    // Each row is a query, whose keys are not told one by one.
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$source,
      "::mlir::Value":$row, "::mlir::Value":$column, "::mlir::Value":$limit,
      "::mlir::Value":$lower, "::mlir::Value":$upper,
      CArg<"bool", "false">:$quads), [{
      build($_builder, $_state, result, source, row, column, limit, lower, upper,
            /*from=*/::mlir::Value(), /*to=*/::mlir::Value(), quads,
            /*group=*/::mlir::IntegerAttr());
    }]>];
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    /// Rows' own keys have another layout.
    bool isElementwiseOnTiles() { return !getFrom() && !getTo(); }
  }];
}

def Attn_RowKeysOp : Attn_Op<"row_keys", [Attn_TakesWholeWarps,
    DeclareOpInterfaceMethods<Attn_LayoutOpInterface, ["getLayoutLinks"]>,
    RecursiveMemoryEffects,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "which keys each row of a tile keeps";
  let description = [{
    The region takes the number of a row, `row + i`, and yields four numbers as
    `key_range` of `attn.attention` does: another mask hides all keys from the row that
    are not between the first two, and none that are between the other two.

    `from[i]` and `to[i]` are the first two numbers of row i. `exact` is true if in all
    rows of the warp the last two say the same, so that the mask has nothing to hide
    but what lies outside: an `attn.map_elements` may be left out for it.

    Where `same` is true all rows keep the keys `begin` to `end - 1`, which is exact, and
    the region does not run.

    The region may use scalars from outside and read memory; it is inlined for each row
    that a thread holds.

    Example:

    ```mlir
    func.func @chunk(%row: i32, %same: i1, %begin: i32, %end: i32) -> (tensor<128xi32, #attn.auto>, tensor<128xi32, #attn.auto>) {
      %from, %to, %exact = attn.row_keys of %row same %same from %begin to %end : tensor<128xi32, #attn.auto>, tensor<128xi32, #attn.auto> {
      ^bb0(%r: i32):
        %length = arith.constant 64 : i32
        %n = arith.divui %r, %length : i32
        %b = arith.muli %n, %length : i32
        %e = arith.addi %b, %length : i32
        attn.yield %b, %e, %b, %e : i32, i32, i32, i32
      }
      return %from, %to : tensor<128xi32, #attn.auto>, tensor<128xi32, #attn.auto>
    }
    ```
  }];
  let arguments = (ins
    Arg<I32, "number of row 0">:$row,
    Arg<I1, "true if all rows keep the same keys">:$same,
    Arg<I32, "then the first of these">:$begin,
    Arg<I32, "then one past the last of these">:$end);
  let results = (outs
    Res<AnyRankedTensor, "the first key that each row keeps">:$from,
    Res<AnyRankedTensor, "one past the last one">:$to,
    Res<I1, "true if the rows of the warp keep all keys between">:$exact);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `of` $row `same` $same `from` $begin `to` $end attr-dict
    `:` type($from) `,` type($to) $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Attn_MapElementsOp : Attn_Op<"map_elements", [
    Attn_LayoutOpInterface,
    RecursiveMemoryEffects, AllTypesMatch<["source", "result"]>,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "applies a scalar region to each element";
  let description = [{
    The region takes (element, query index, key index) of each element, with the
    indices `row + i` and `column + j`, and yields the new element. It may use
    scalars from outside and read memory; it is inlined for each element a
    thread holds. An `i1` that depends on the key alone and reads memory may be
    asked once by a warp, for keys of the block in any order. With `quads`
    columns stand for keys as in `attn.apply_mask`.

    With `hides` the region is a mask's: it changes nothing where the mask hides nothing,
    and `attn-expand-pipeline` leaves it out of the phase of a loop that needs no test.
    Warps for which `unless` is true do without it everywhere.

    Folds: a region that yields the element that it got leaves the tile as it is.

    Example:

    ```mlir
    func.func @alibi(%s: tensor<128x64xf32, #attn.auto>, %i: i32, %j: i32, %slope: f32) -> tensor<128x64xf32, #attn.auto> {
      %r = attn.map_elements %s[%i, %j] : tensor<128x64xf32, #attn.auto> {
      ^bb0(%x: f32, %q: i32, %k: i32):
        %d = arith.subi %k, %q : i32
        %f = arith.sitofp %d : i32 to f32
        %y = math.fma %slope, %f, %x : f32
        attn.yield %y : f32
      }
      return %r : tensor<128x64xf32, #attn.auto>
    }
    ```
  }];
  let arguments = (ins
    Arg<AnyRankedTensor, "the tile">:$source,
    Arg<I32, "query of row 0">:$row,
    Arg<I32, "key of column 0">:$column,
    Arg<Optional<I1>, "with `hides`, true in warps from whose elements the mask hides nothing more">:$unless,
    Described<UnitAttr, "columns are keys in the order of quads">:$quads,
    Described<UnitAttr, "a mask, which blocks between full bounds do without">:$hides);
  let results = (outs Res<AnyRankedTensor, "the new tile">:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $source `[` $row `,` $column `]` (`unless` $unless^)? attr-dict
    `:` type($source) $body
  }];
  let builders = [
    // All warps need it.
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$source,
      "::mlir::Value":$row, "::mlir::Value":$column,
      CArg<"bool", "false">:$quads, CArg<"bool", "false">:$hides), [{
      build($_builder, $_state, result, source, row, column,
            /*unless=*/::mlir::Value(), quads, hides);
    }]>];
  let hasFolder = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    bool isElementwiseOnTiles() { return true; }
  }];
}

} // let opDocGroup

#endif // ATTN_DIALECT_ATTN_IR_OPS_MASKOPS_TD
