//===- IndexOps.td - Where tiles and their keys are ---------*- tablegen -*-===//
//
// Index arithmetic that all roles of a kernel have to agree on, as one op each.
// attn-expand-arithmetic writes it out.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_OPS_INDEXOPS_TD
#define ATTN_DIALECT_ATTN_IR_OPS_INDEXOPS_TD

include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "attn/Dialect/Attn/IR/OpGroups.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Dialect/LLVMIR/LLVMOpBase.td"

let opDocGroup = Attn_WorkGroup in {

def Attn_TilePlaceOp : Attn_Op<"tile_place", [AttnRequiresSM<80>, Pure,
    Attn_ArithmeticOpInterface,
    DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "where the tile of a number is";
  let description = [{
    Tiles are numbered through all heads of all batches. Heads are numbered through
    the batches, `heads` in each and `all` in total; each has `tiles` tiles of `rows`
    rows. With `runs` above 1 each head stands there as often, once for each run of
    its keys, and `all` counts these.

    In the order `row_major` the tiles of a head follow each other. In the order
    `longest_first` the heads of a group follow each other, first with their last
    tile, which has the most keys under a causal mask, and last with their first
    tile. `group` heads are a group, 0 for all; the last group may have fewer. With
    `alternating` each second group goes the other way, so that the last one
    descends: a loop over tiles in turns of alternating direction meets at the end of
    a group tiles of one length.

    Results are the batch, the head of that batch, the first row of the tile and, with
    `runs` above 1, the run.

    Undefined behaviour: a number outside of 0 to `tiles * all - 1`; sizes below 1;
    `all` that is no multiple of `heads * runs`; a product beyond 2^31 - 1.

    Example:

    ```mlir
    func.func @place(%tile: i32, %tiles: i32, %heads: i32, %all: i32) -> (i32, i32, i32, i32) {
      // Eight heads at a time, from their last rows on.
      %batch, %head, %row = attn.tile_place %tile of %tiles heads %heads of %all rows 128 longest_first group 8 alternating
      // In order of rows, four runs of each head.
      %b, %h, %r, %run = attn.tile_place %tile of %tiles heads %heads of %all rows 64 row_major runs 4
      return %batch, %head, %row, %run : i32, i32, i32, i32
    }
    ```
  }];
  let arguments = (ins
    Arg<I32, "the number of the tile">:$tile,
    Arg<I32, "the tiles of a head">:$tiles,
    Arg<I32, "the heads of a batch">:$heads,
    Arg<I32, "the heads of all batches, each as often as it has runs">:$all,
    Described<ConfinedAttr<I64Attr, [IntPositive]>, "rows of a tile">:$rows,
    Described<Attn_TileOrderAttr, "the order in which tiles are numbered">:$order,
    Described<DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">,
      "heads of a group, 0 for all">:$group,
    Described<UnitAttr, "each second group ascends">:$alternating,
    Described<DefaultValuedAttr<ConfinedAttr<I64Attr, [IntPositive]>, "1">,
      "runs of keys of a head">:$runs);
  let results = (outs
    Res<I32, "the batch">:$batch,
    Res<I32, "the head of the batch">:$head,
    Res<I32, "the first row of the tile">:$row,
    Res<Optional<I32>, "the run, where there are several">:$run);
  let assemblyFormat = [{
    $tile `of` $tiles `heads` $heads `of` $all `rows` $rows `` $order
    (`group` $group^)? (`alternating` $alternating^)? (`runs` $runs^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::Value> emitArithmetic(::mlir::ImplicitLocOpBuilder &builder);
  }];
}

def Attn_KeyBlocksOp : Attn_Op<"key_blocks", [AttnRequiresSM<80>, Pure,
    Attn_ArithmeticOpInterface,
    DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "which blocks of keys a tile of queries needs";
  let description = [{
    The tile has the rows `row` to `row + rows - 1` of a sequence of `queries` queries
    and `keys` keys, of which those that exist count; `block` keys are a block. With
    `group` above 1 each query has as many rows: row r is query r / group.

    Results are block numbers with `begin <= full_begin <= full_end <= end`, as
    `attn.kv_loop` takes them: the tile needs the blocks from `begin` up to, without,
    `end`; those from `full_begin` up to `full_end` need no test of the mask; those
    below `full_begin` may hold keys left of its band, and those from `full_end` on
    keys right of it or beyond the last one.

    Behind them stand the bounds of j - i that `attn.apply_mask` takes, where the mask
    has them: `lower`, then `upper`.

    `range` says what another mask leaves: two numbers of keys, outside of which it hides
    all keys from all rows of the tile, and two more, where they are known, between which
    it hides none. The tile then needs those blocks only that have keys between the first
    two, and the blocks from `full_begin` up to `full_end` hold none but keys between the
    other two. Without these `full_begin` and `full_end` are those of `mask`.

    Undefined behaviour: a negative row or length; lengths, or a product of `queries` and
    `group`, of 2^29 or more.

    Folds to constants where all operands are.

    Example:

    ```mlir
    func.func @blocks(%row: i32, %queries: i32, %keys: i32) -> (i32, i32) {
      %begin, %full_begin, %full_end, %end, %upper = attn.key_blocks %row queries %queries keys %keys mask <kind = causal> rows 128 block 64
      %b, %fb, %fe, %e, %lower, %zero = attn.key_blocks %row queries %queries keys %keys mask <kind = window, left = 512, right = 0> rows 128 block 64 group 4
      return %end, %e : i32, i32
    }
    func.func @chunk(%row: i32, %queries: i32, %keys: i32, %from: i32, %to: i32) -> (i32, i32) {
      %begin, %full_begin, %full_end, %end = attn.key_blocks %row queries %queries keys %keys range %from, %to mask <kind = none> rows 128 block 64
      return %begin, %end : i32, i32
    }
    ```
  }];
  let arguments = (ins
    Arg<I32, "the first row of the tile">:$row,
    Arg<I32, "queries of the sequence">:$queries,
    Arg<I32, "keys of the sequence">:$keys,
    Arg<Variadic<I32>, "keys that another mask leaves, 2 numbers or 4">:$range,
    Described<Attn_MaskAttr, "which keys a query attends to">:$mask,
    Described<ConfinedAttr<I64Attr, [IntPositive]>, "rows of the tile">:$rows,
    Described<ConfinedAttr<I64Attr, [IntPositive]>, "keys of a block">:$block,
    Described<DefaultValuedAttr<ConfinedAttr<I64Attr, [IntPositive]>, "1">,
      "rows of a query">:$group);
  let results = (outs
    Res<I32, "the first block">:$begin,
    Res<I32, "the first block that needs no test on the left">:$full_begin,
    Res<I32, "the first block that needs a test on the right">:$full_end,
    Res<I32, "one past the last block">:$end,
    Res<Variadic<I32>, "the mask's lower and upper bound of j - i, those that it has">:$bounds);
  let assemblyFormat = [{
    $row `queries` $queries `keys` $keys (`range` $range^)? `mask` $mask `rows` $rows
    `block` $block (`group` $group^)? attr-dict
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::Value> emitArithmetic(::mlir::ImplicitLocOpBuilder &builder);
    /// The bounds of j - i; null where the mask has none.
    ::mlir::Value getLower() {
      return getMask().hasLeft() ? getBounds().front() : ::mlir::Value();
    }
    ::mlir::Value getUpper() {
      return getMask().hasRight() ? getBounds().back() : ::mlir::Value();
    }
  }];
}

def Attn_ElementOffsetOp : Attn_Op<"element_offset", [AttnRequiresSM<80>, Pure,
    Attn_ArithmeticOpInterface]> {
  let summary = "the offset of a head's rows in a tensor, in elements";
  let description = [{
    The sum of each index times its stride, and `first`, in 64 bits: tensors may have
    more than 2^31 elements.

    Undefined behaviour: a negative index.

    Folds to a constant where all indices are.

    Example:

    ```mlir
    func.func @offset(%head: i32, %batch: i32) -> (i64, i64) {
      %o = attn.element_offset [%head, %batch] strides [524288, 8388608]
      %half = attn.element_offset [%head, %batch] strides [524288, 8388608] first 64
      return %o, %half : i64, i64
    }
    ```
  }];
  let arguments = (ins
    Arg<Variadic<I32>, "an index for each stride">:$indices,
    Described<DenseI64ArrayAttr, "elements from one index to the next">:$strides,
    Described<DefaultValuedAttr<I64Attr, "0">, "elements more">:$first);
  let results = (outs Res<I64, "the offset">:$offset);
  let assemblyFormat = [{
    `[` $indices `]` `strides` $strides (`first` $first^)? attr-dict
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::Value> emitArithmetic(::mlir::ImplicitLocOpBuilder &builder);
  }];
}

def Attn_DevicePointersOp : Attn_Op<"device_pointers", [Pure,
    Attn_ArithmeticOpInterface,
    DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "the addresses of memrefs, as a kernel takes them";
  let description = [{
    The aligned pointer of each memref, without its offset, as an address of global
    memory. The host passes them to a kernel.

    Example:

    ```mlir
    func.func @pointers(%q: memref<1x4x128x64xf16>, %lse: memref<1x4x128xf32>) -> !llvm.ptr<1> {
      %0:2 = attn.device_pointers %q, %lse : memref<1x4x128x64xf16>, memref<1x4x128xf32>
      return %0#1 : !llvm.ptr<1>
    }
    ```
  }];
  let arguments = (ins Arg<Variadic<AnyMemRef>, "memory of the device">:$memrefs);
  let results = (outs Res<Variadic<LLVM_PointerInAddressSpace<1>>, "where each of them begins">:$pointers);
  let assemblyFormat = "$memrefs attr-dict `:` type($memrefs)";
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::Value> emitArithmetic(::mlir::ImplicitLocOpBuilder &builder);
  }];
}

} // let opDocGroup

#endif // ATTN_DIALECT_ATTN_IR_OPS_INDEXOPS_TD
