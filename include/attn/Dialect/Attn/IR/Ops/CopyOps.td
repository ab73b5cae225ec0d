//===- CopyOps.td - Global memory and asynchronous copies ---*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_OPS_COPYOPS_TD
#define ATTN_DIALECT_ATTN_IR_OPS_COPYOPS_TD

include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "attn/Dialect/Attn/IR/AttnTypes.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "attn/Dialect/Attn/IR/OpGroups.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Dialect/LLVMIR/LLVMOpBase.td"

/// Completion state of a thread's asynchronous copies.
def Attn_AsyncGroups : Resource<"::mlir::attn::AsyncGroups">;

let opDocGroup = Attn_CopyGroup in {

def Attn_GlobalViewOp : Attn_Op<"global_view", [Pure, AttrSizedOperandSegments]> {
  let summary = "rows of global memory, from a pointer, a count and a stride";
  let description = [{
    Row `r` (0 <= r < rows) starts `offset + r * stride` elements after `base`.
    A rank-1 view has one element a row. `alignment` states how many bytes
    every row start is a multiple of (default: the element's size).

    With `group` = G and `members` row `r` starts `offset + (r / G) * stride + (r
    mod G) * members` elements after `base`: the heads of a group as rows of
    their query. With `present` = H at most G only rows with `r mod G < H` exist.
    With `in_bounds` no op names a row from `rows` on.

    With `tiles` row `r` is an element of a matrix of 8-bit elements in tiles of 128
    rows and 4 columns, the layout 128x4 of scales: the one in row `first + r` and
    column `offset`, or with groups in row `first + r / G` and column `offset + (r mod
    G) * members`. Row `i`, column `c` of the matrix is at `(i / 128) * 128 * stride + (c
    / 4) * 512 + (i mod 32) * 16 + (i / 32 mod 4) * 4 + c mod 4` elements after `base`. In a
    view of i32 a row is four columns from a multiple of four on.

    Undefined behaviour: a row start that does not have the stated alignment;
    rows outside the allocation; with `in_bounds` an op that names a row from
    `rows` on; in tiles of i32 a column that is no multiple of four.

    Example:

    ```mlir
    func.func @view(%p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64) {
      %g = attn.global_view %p[%off] rows %n stride %stride {alignment = 16 : i64} : !attn.global<?x128xf16>
      %first = arith.constant 256 : i64
      %scales = attn.global_view %p[%off] rows %n stride %stride tiles %first : !attn.global<?xf8E4M3FN>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<LLVM_PointerInAddressSpace<1>, "base address">:$base,
    Arg<I64, "elements from the base to row 0">:$offset,
    Arg<I32, "number of rows that exist">:$rows,
    Arg<I64, "elements from one row to the next, or from one group to the next">:$stride,
    Arg<Optional<I64>, "elements from one member of a group to the next">:$members,
    Arg<Optional<I64>, "of a matrix in tiles the row that is row 0">:$first,
    Described<OptionalAttr<I64Attr>, "bytes by which each row's first address is divisible; without it an element's">:$alignment,
    Described<OptionalAttr<I64Attr>, "rows of a group">:$group,
    Described<OptionalAttr<I64Attr>, "rows of a group that exist; without it all">:$present,
    Described<UnitAttr, "ops name rows below `rows` only">:$in_bounds);
  let results = (outs Res<Attn_GlobalType, "the view">:$result);
  let assemblyFormat = [{
    $base `[` $offset `]` `rows` $rows `stride` $stride (`members` $members^)?
    (`tiles` $first^)? attr-dict `:` type($result)
  }];
  let builders = [
    // Rows at equal distances.
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$base,
      "::mlir::Value":$offset, "::mlir::Value":$rows, "::mlir::Value":$stride,
      "::mlir::IntegerAttr":$alignment), [{
      build($_builder, $_state, result, base, offset, rows, stride,
            /*members=*/::mlir::Value(), /*first=*/::mlir::Value(), alignment, /*group=*/::mlir::IntegerAttr(),
            /*present=*/::mlir::IntegerAttr(), /*in_bounds=*/::mlir::UnitAttr());
    }]>];
  let hasVerifier = 1;
}

def Attn_PagedViewOp : Attn_Op<"paged_view", [Pure]> {
  let summary = "rows of a sequence in pages of global memory that a table names";
  let description = [{
    Row `r` (0 <= r < rows) is row `r mod page` of the page `table[first + r /
    page]` and starts `offset + id * distance + (r mod page) * stride` elements
    after `base`, where `id` is the page's number and `distance` the elements
    from one page to the next. A row whose `id` is not below `pages`, compared as
    unsigned, does not exist: copies bring zeros, whatever `in_bounds` says.

    Undefined behaviour: a copy from a view without rows whose first entry of the
    table is outside of its allocation; entries that change while the kernel
    runs; what `attn.global_view` says of alignments.

    Example:

    ```mlir
    func.func @pages(%pool: !llvm.ptr<1>, %off: i64, %stride: i64, %table: !llvm.ptr<1>, %first: i64,
                     %distance: i64, %pages: i32, %n: i32, %row: i32,
                     %b: !attn.buffer<64x128xf16, #attn.auto, shared>) {
      %g = attn.paged_view %pool[%off] rows %n stride %stride table %table[%first] pages %pages distance %distance {alignment = 16 : i64, page = 16 : i64} : !attn.global<?x128xf16>
      attn.cp_async %g[%row], %b : !attn.global<?x128xf16>, !attn.buffer<64x128xf16, #attn.auto, shared>
      attn.cp_async.commit
      attn.cp_async.wait {pending = 0}
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<LLVM_PointerInAddressSpace<1>, "base address of the pool">:$base,
    Arg<I64, "elements from the base to row 0 of page 0">:$offset,
    Arg<I32, "number of rows of the sequence">:$rows,
    Arg<I64, "elements from one row of a page to the next">:$stride,
    Arg<LLVM_PointerInAddressSpace<1>, "the table, i32">:$table,
    Arg<I64, "the sequence's first entry of the table">:$first,
    Arg<I32, "pages of the pool">:$pages,
    Arg<I64, "elements from one page to the next">:$distance,
    Described<I64Attr, "rows of a page">:$page,
    Described<OptionalAttr<I64Attr>, "bytes by which each row's first address is divisible; without it an element's">:$alignment);
  let results = (outs Res<Attn_GlobalType, "the view">:$result);
  let assemblyFormat = [{
    $base `[` $offset `]` `rows` $rows `stride` $stride `table` $table `[` $first `]`
    `pages` $pages `distance` $distance attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

def Attn_JoinedViewOp : Attn_Op<"joined_view", [Pure, AllTypesMatch<["front", "back", "result"]>]> {
  let summary = "rows of a sequence in pages, and behind them those of another table";
  let description = [{
    Row `r` is row `r` of `front` for all rows that this has, and behind these row
    `r - rows + skip` of `back`, where `rows` is the number of rows of `front`. Both are
    views of attn.paged_view. `back` has at least `skip` rows, and its first entry of the
    table is in its allocation.

    Example:

    ```mlir
    func.func @joined(%pool: !llvm.ptr<1>, %other: !llvm.ptr<1>, %off: i64, %stride: i64, %table: !llvm.ptr<1>,
                      %list: !llvm.ptr<1>, %first: i64, %distance: i64, %pages: i32, %n: i32, %m: i32, %skip: i32,
                      %row: i32, %b: !attn.buffer<64x128xf16, #attn.auto, shared>) {
      %f = attn.paged_view %other[%off] rows %m stride %stride table %list[%first] pages %pages distance %stride {alignment = 16 : i64, page = 1 : i64} : !attn.global<?x128xf16>
      %g = attn.paged_view %pool[%off] rows %n stride %stride table %table[%first] pages %pages distance %distance {alignment = 16 : i64, page = 16 : i64} : !attn.global<?x128xf16>
      %j = attn.joined_view %f, %g[%skip] : !attn.global<?x128xf16>
      attn.cp_async %j[%row], %b : !attn.global<?x128xf16>, !attn.buffer<64x128xf16, #attn.auto, shared>
      attn.cp_async.commit
      attn.cp_async.wait {pending = 0}
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_GlobalType, "the first rows">:$front,
    Arg<Attn_GlobalType, "the rows behind them">:$back,
    Arg<I32, "rows of `back` that are left out">:$skip);
  let results = (outs Res<Attn_GlobalType, "the view">:$result);
  let assemblyFormat = "$front `,` $back `[` $skip `]` attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Attn_CpAsyncOp : Attn_Op<"cp_async", [AttnRequiresSM<80>, AttnAsync<"kCopyGroups">,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "starts copying rows from global to shared memory";
  let description = [{
    All threads of the CTA together copy rows `row` to `row + R - 1` of `source`
    into `dest` (R x C), asynchronously (PTX ISA, cp.async: generic proxy,
    groups of a thread). Rows that do not exist, and columns of the buffer
    beyond the view's, become zeros. `in_bounds` promises that all R rows exist.
    Complete for a thread after a `attn.cp_async.wait` that covers it, for the
    CTA after a barrier behind that.

    Undefined behaviour: touching `dest` before that; `in_bounds` without being
    so.

    Example:

    ```mlir
    func.func @copy(%g: !attn.global<?x128xf16>, %row: i32, %b: !attn.buffer<64x128xf16, #attn.auto, shared>) {
      attn.cp_async %g[%row], %b : !attn.global<?x128xf16>, !attn.buffer<64x128xf16, #attn.auto, shared>
      attn.cp_async.commit
      attn.cp_async.wait {pending = 0}
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_GlobalType, "source rows">:$source,
    Arg<I32, "first row">:$row,
    Arg<Attn_BufferType, "destination">:$dest,
    Described<UnitAttr, "all rows exist">:$in_bounds);
  let assemblyFormat = [{
    $source `[` $row `]` `,` $dest attr-dict `:` type($source) `,` type($dest)
  }];
  let hasVerifier = 1;
}

def Attn_PageRowsOp : Attn_Op<"page_rows", [AttnRequiresSM<80>]> {
  let summary = "numbers of the rows of a sequence in pages";
  let description = [{
    All threads of the partition store in element `i` of `dest` the number that row `row
    + i` of a sequence in pages has among all rows of the pool: row `r` is row `r mod
    page` of the page `table[first + r / page]`, whose number in the pool is `offset + id
    * distance + (r mod page) * stride`, where `id` is the page's number. A row from
    `rows` on, and one whose `id` is not below `pages`, compared as unsigned, gets the
    number -1, which no row has. No entry of the table after that of the last row is
    read.

    Undefined behaviour: `rows` below 1 with a first entry outside of the table's
    allocation; entries that change while the kernel runs; numbers of 2^31 or more.

    Example:

    ```mlir
    func.func @page_rows(%table: !llvm.ptr<1>, %first: i64, %n: i32, %pages: i32, %row: i32, %head: i32,
                         %dest: !attn.buffer<128xi32, #attn.rows, shared>) {
      // Pages of 8 rows of 2 heads.
      attn.page_rows %table[%first], %row rows %n pages %pages offset %head, %dest {distance = 16 : i64, page = 8 : i64, stride = 2 : i64} : !attn.buffer<128xi32, #attn.rows, shared>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<LLVM_PointerInAddressSpace<1>, "the table, i32", [MemRead]>:$table,
    Arg<I64, "the sequence's first entry of the table">:$first,
    Arg<I32, "the first row">:$row,
    Arg<I32, "number of rows of the sequence">:$rows,
    Arg<I32, "pages of the pool">:$pages,
    Arg<I32, "number of row 0 of page 0">:$offset,
    Arg<Attn_BufferType, "where the numbers go, i32", [MemWrite]>:$dest,
    Described<ConfinedAttr<I64Attr, [IntPositive]>, "rows of a page">:$page,
    Described<ConfinedAttr<I64Attr, [IntPositive]>, "from the number of a row to that of the next one in a page">:$stride,
    Described<ConfinedAttr<I64Attr, [IntPositive]>, "from the number of a row to that of the same one in the next page">:$distance);
  let assemblyFormat = [{
    $table `[` $first `]` `,` $row `rows` $rows `pages` $pages `offset` $offset `,` $dest
    attr-dict `:` type($dest)
  }];
  let hasVerifier = 1;
}

def Attn_CpAsyncCommitOp : Attn_Op<"cp_async.commit", [AttnRequiresSM<80>, AttnAsync<"kCopyGroups">,
    MemoryEffects<[MemWrite<Attn_AsyncGroups>]>]> {
  let summary = "closes a group of asynchronous copies";
  let description = [{
    The copies that each thread started since its last commit become one group
    (PTX ISA, cp.async.commit_group). An empty group is legal.

    Example:

    ```mlir
    func.func @commit() {
      attn.cp_async.commit
      return
    }
    ```
  }];
  let assemblyFormat = "attr-dict";
  let extraClassDeclaration = [{
    bool closesGroup() { return true; }
  }];
}

def Attn_CpAsyncWaitOp : Attn_Op<"cp_async.wait", [AttnRequiresSM<80>, AttnAsync<"kCopyGroups">,
    MemoryEffects<[MemRead<Attn_AsyncGroups>, MemWrite<Attn_AsyncGroups>]>]> {
  let summary = "waits until at most `pending` groups are incomplete";
  let description = [{
    Each thread waits for its own groups only (PTX ISA, cp.async.wait_group);
    other threads' copies are visible after a barrier behind it.

    Example:

    ```mlir
    func.func @wait() {
      attn.cp_async.wait {pending = 1}
      return
    }
    ```
  }];
  let arguments = (ins Described<I64Attr, "the youngest groups, which may stay incomplete">:$pending);
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::std::optional<int64_t> getAwaitedGroups() { return getPending(); }
  }];
}

def Attn_GlobalLoadOp : Attn_Op<"global_load"> {
  let summary = "rows of global memory to a register tile";
  let description = [{
    Reads rows `row` onwards, as many as the tile has. Elements of rows that do
    not exist are 0.

    Example:

    ```mlir
    func.func @load(%g: !attn.global<?xf32>, %row: i32) -> tensor<128xf32, #attn.auto> {
      %t = attn.global_load %g[%row] : !attn.global<?xf32> -> tensor<128xf32, #attn.auto>
      return %t : tensor<128xf32, #attn.auto>
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_GlobalType, "source rows", [MemRead]>:$source,
    Arg<I32, "first row">:$row);
  let results = (outs Res<AnyRankedTensor, "the tile">:$result);
  let assemblyFormat = "$source `[` $row `]` attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Attn_GlobalStoreOp : Attn_Op<"global_store"> {
  let summary = "a register tile to rows of global memory";
  let description = [{
    Writes rows `row` onwards that exist; the others are dropped. Each thread
    stores what it holds, as wide as the tile's layout and the view's alignment
    allow; one thread writes where several hold copies. Columns of the tile beyond
    the view's are dropped too.

    A tile of f4E2M1FN goes to a view of i8 with half of the columns: a byte has the
    first of two columns in its lower half. Values of rows of f32, and tiles of the
    layout `#attn.partial`, that go to a view of f8E4M3FN are rounded to it, those
    beyond its largest number to that one.

    Example:

    ```mlir
    func.func @store(%t: tensor<128x64xf16, #attn.auto>, %g: !attn.global<?x64xf16>, %row: i32) {
      attn.global_store %t, %g[%row] : tensor<128x64xf16, #attn.auto>, !attn.global<?x64xf16>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<AnyRankedTensor, "the tile">:$value,
    Arg<Attn_GlobalType, "destination rows", [MemWrite]>:$dest,
    Arg<I32, "first row">:$row);
  let assemblyFormat = "$value `,` $dest `[` $row `]` attr-dict `:` type($value) `,` type($dest)";
  let hasVerifier = 1;
}

def Attn_GlobalMaxOp : Attn_Op<"global_max", [AttnRequiresSM<80>,
    Attn_TakesWholeWarps]> {
  let summary = "the largest size of a tile's elements joins a number in memory";
  let description = [{
    `dest` becomes the largest of itself and the sizes of the elements of rows `row`
    onwards that exist in `rows`; columns of the tile beyond those of `rows` do not
    count. A NaN among the elements makes it NaN.

    Warps do it one by one: the lanes of each find its largest element, and one of them
    changes memory by an atomic maximum of integers, which orders numbers that are not
    below zero as floats are ordered. It orders nothing else: who reads `dest` comes
    behind the kernel.

    Rows of i8 have two of the tile's columns in a byte.

    Undefined behaviour: a number of `dest` that is below zero; what `attn.global_store`
    says of rows.

    Example:

    ```mlir
    func.func @largest(%t: tensor<128x64xf32, #attn.auto>, %g: !attn.global<?x64xf16>, %row: i32, %amax: !llvm.ptr<1>) {
      attn.global_max %t, %g[%row] to %amax : tensor<128x64xf32, #attn.auto>, !attn.global<?x64xf16>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<AnyRankedTensor, "the tile, f32">:$value,
    Arg<Attn_GlobalType, "the rows where the tile lies">:$rows,
    Arg<I32, "first row">:$row,
    Arg<LLVM_PointerInAddressSpace<1>, "an f32 that is not below zero", [MemRead, MemWrite]>:$dest);
  let assemblyFormat = "$value `,` $rows `[` $row `]` `to` $dest attr-dict `:` type($value) `,` type($rows)";
  let hasVerifier = 1;
}

def Attn_CopyOutOp : Attn_Op<"copy_out"> {
  let summary = "shared memory to rows of global memory";
  let description = [{
    All threads of the CTA together copy a buffer to rows `row` onwards that
    exist, in 16-byte pieces where the view's alignment allows. Columns of the
    buffer beyond the view's are dropped.

    Example:

    ```mlir
    func.func @out(%b: !attn.buffer<128x64xf16, #attn.auto, shared>, %g: !attn.global<?x64xf16>, %row: i32) {
      attn.copy_out %b, %g[%row] : !attn.buffer<128x64xf16, #attn.auto, shared>, !attn.global<?x64xf16>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_BufferType, "source", [MemRead]>:$source,
    Arg<Attn_GlobalType, "destination rows", [MemWrite]>:$dest,
    Arg<I32, "first row">:$row);
  let assemblyFormat = "$source `,` $dest `[` $row `]` attr-dict `:` type($source) `,` type($dest)";
  let hasVerifier = 1;
}

def Attn_StoreResultOp : Attn_Op<"store_result", [AttrSizedOperandSegments]> {
  let summary = "a result tile leaves the kernel, in a way still to be chosen";
  let description = [{
    Writes a register tile to rows `row` onwards that exist; columns of the tile
    beyond the view's are dropped.
    `attn-select-epilogue` replaces it by direct stores, by a conversion to a
    layout of 16-byte runs and direct stores, or by staging through `scratch`
    (a buffer that is dead here) or a buffer of its own and `attn.copy_out` or
    `attn.tma.store`.

    `map` is a tensor map of the rows: element `coords` of the tensor is that of
    `row`, and the tensor ends where the rows do, so that TMA drops what does not
    exist.

    Example:

    ```mlir
    func.func @result(%t: tensor<128x64xf16, #attn.auto>, %g: !attn.global<?x64xf16>, %row: i32) {
      attn.store_result %t, %g[%row] {kind = #attn<epilogue_kind staged>} : tensor<128x64xf16, #attn.auto>, !attn.global<?x64xf16>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<AnyRankedTensor, "the tile">:$value,
    Arg<Attn_GlobalType, "destination rows", [MemWrite]>:$dest,
    Arg<I32, "first row">:$row,
    Arg<Optional<Attn_BufferType>, "a dead buffer that may be reused", [MemWrite]>:$scratch,
    Arg<Optional<Attn_TensorMapType>, "a map of the rows">:$map,
    Arg<Variadic<I32>, "where the tile starts in the map's tensor">:$coords,
    Described<DefaultValuedAttr<Attn_EpilogueKindAttr, "::mlir::attn::EpilogueKind::Auto">,
      "the way to global memory">:$kind);
  let assemblyFormat = [{
    $value `,` $dest `[` $row `]` (`scratch` $scratch^ `:` type($scratch))?
    (`map` $map^ `[` $coords `]` `:` type($map))? attr-dict
    `:` type($value) `,` type($dest)
  }];
  let hasVerifier = 1;
}

} // let opDocGroup

#endif // ATTN_DIALECT_ATTN_IR_OPS_COPYOPS_TD
