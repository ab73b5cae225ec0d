//===- TmemOps.td - Tensor memory ---------------------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_OPS_TMEMOPS_TD
#define ATTN_DIALECT_ATTN_IR_OPS_TMEMOPS_TD

include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "attn/Dialect/Attn/IR/AttnTypes.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "attn/Dialect/Attn/IR/OpGroups.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ViewLikeInterface.td"

/// The loads and stores of tensor memory that a thread has started.
def Attn_TensorAccesses : Resource<"::mlir::attn::TensorAccesses">;

//===----------------------------------------------------------------------===//
// Allocations and views
//===----------------------------------------------------------------------===//

let opDocGroup = Attn_TmemGroup in {

def Attn_TmemAllocOp : Attn_Op<"tmem_alloc", [AttnRequiresSM<100>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "allocates a buffer in tensor memory";
  let description = [{
    Columns of tensor memory, uninitialised, from here to the last use through any
    view. A buffer of rank 3 is a ring, whose slots lie beside each other.
    `attn-allocate-tmem` sets `column`; buffers whose lifetimes do not overlap may
    share columns. With `fields` the columns of a slot have names, and may have
    several: `attn.tmem.field` makes a view of a field.

    Undefined behaviour: reading an element that was never written, or one whose
    columns another field was written to since.

    Example:

    ```mlir
    func.func @alloc() {
      %s = attn.tmem_alloc {name = "s0", fields = [#attn.field<"s", 0, 128>, #attn.field<"p", 64, 64>]} : !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
      return
    }
    ```
  }];
  let arguments = (ins
    Described<OptionalAttr<StrAttr>, "what it is for, in messages and printed IR">:$name,
    Described<OptionalAttr<I64Attr>, "from the start of the kernel's tensor memory, set by attn-allocate-tmem">:$column,
    Described<OptionalAttr<TypedArrayAttrBase<Attn_FieldAttr, "fields">>, "names of columns of a slot">:$fields,
    Described<OptionalAttr<Attn_CGAAttr>, "which block of a value of the cluster a slot holds">:$cga);
  let results = (outs Res<Attn_BufferType, "the buffer", [MemAlloc]>:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
  // A buffer of one CTA.
  let builders = [OpBuilder<(ins "::mlir::Type":$type,
    "::mlir::StringAttr":$name, "::mlir::IntegerAttr":$column,
    "::mlir::ArrayAttr":$fields), [{
      build($_builder, $_state, type, name, column, fields,
            ::mlir::attn::CGAAttr());
    }]>];
  let extraClassDeclaration = [{
    /// The field of a name, or null.
    ::mlir::attn::FieldAttr findField(::llvm::StringRef name);
  }];
}

def Attn_TmemFieldOp : Attn_Op<"tmem.field", [AttnRequiresSM<100>, Pure,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>,
    DeclareOpInterfaceMethods<ViewLikeOpInterface>]> {
  let summary = "a field of an allocation of tensor memory";
  let description = [{
    The columns of a field, in a shape and element type that needs no more of them.
    The source is an `attn.tmem_alloc` or a slot of one.

    Example:

    ```mlir
    func.func @field() {
      %s = attn.tmem_alloc {fields = [#attn.field<"s", 0, 128>, #attn.field<"p", 64, 64>]} : !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
      %p = attn.tmem.field %s "p" : !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem> -> !attn.buffer<128x128xf16, #attn.tmem<m = 128>, tmem>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_BufferType, "a buffer of rank 2 in tensor memory">:$source,
    Described<StrAttr, "one of the allocation's fields">:$field);
  let results = (outs Res<Attn_BufferType, "the view">:$result);
  let assemblyFormat = "$source $field attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The attribute of the field, or null if there is no such field.
    ::mlir::attn::FieldAttr findField();
  }];
}

def Attn_TmemSliceOp : Attn_Op<"tmem.slice", [AttnRequiresSM<100>, Pure,
    DeclareOpInterfaceMethods<ViewLikeOpInterface>]> {
  let summary = "some columns of a buffer in tensor memory";
  let description = [{
    All rows of the elements from `column` on, which count as the buffer's do. Of one in
    halves fewer than 128 are as many of either half: 64 from 32 on are 32 to 63, 96 to 127.

    Folds: a view of the buffer's own type is the buffer.

    Example:

    ```mlir
    func.func @chunk(%s: !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>) {
      %c = attn.tmem.slice %s {column = 32} : !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem> -> !attn.buffer<128x32xf32, #attn.tmem<m = 128>, tmem>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_BufferType, "a buffer of rank 2 in tensor memory">:$source,
    Described<I64Attr, "the first one of the view, at the start of a column of 32 bits">:$column);
  let results = (outs Res<Attn_BufferType, "the view">:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Attn_TmemReserveOp : Attn_Op<"tmem.reserve", [AttnRequiresSM<100>,
    Attn_TakesWholeWarps,
    DeclareOpInterfaceMethods<Attn_TensorGroupOpInterface, ["takesMemory"]>,
    MemoryEffects<[MemWrite<Attn_TensorAccesses>]>]> {
  let summary = "takes columns of the SM's tensor memory for the CTA";
  let description = [{
    The CTA's first warp takes `columns` columns, a power of two from 32 to 512, and
    gives up the right to take more (PTX ISA, tcgen05.alloc and
    tcgen05.relinquish_alloc_permit). It waits until other CTAs of the SM have left
    so many. The address goes through `slot` to all threads, with a barrier of the
    CTA; the result is the first column. `attn-allocate-tmem` makes one in front of a
    kernel's allocations.

    With `pair` the first warps of both CTAs of a pair take the same columns
    together, each waiting for the other (cta_group::2). A cluster barrier stands in
    front of it, for both CTAs have to run.

    Undefined behaviour: a branch around it that not all threads take; a second one
    in a kernel; a kernel that ends without `attn.tmem.dealloc`; with `pair`, one that
    the other CTA does not come to.

    Example:

    ```mlir
    func.func @reserve(%slot: !attn.buffer<1xi32, #attn.rows, shared>) {
      %base = attn.tmem.reserve %slot {columns = 256} : !attn.buffer<1xi32, #attn.rows, shared>
      attn.tmem.dealloc %base {columns = 256}
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_BufferType, "one i32 of shared memory, for the address", [MemRead, MemWrite]>:$slot,
    Described<I64Attr, "taken, a power of two from 32 to 512">:$columns,
    Described<UnitAttr, "by both CTAs of a pair">:$pair);
  let results = (outs Res<I32, "the address of the first column">:$base);
  let assemblyFormat = "$slot attr-dict `:` type($slot)";
  let hasVerifier = 1;
}

def Attn_TmemDeallocOp : Attn_Op<"tmem.dealloc", [AttnRequiresSM<100>,
    Attn_TakesWholeWarps,
    DeclareOpInterfaceMethods<Attn_TensorGroupOpInterface, ["givesMemoryBack"]>,
    MemoryEffects<[MemWrite<Attn_TensorAccesses>]>]> {
  let summary = "gives columns of tensor memory back";
  let description = [{
    All warps come to a barrier of the CTA, behind their last accesses to tensor
    memory; then the first warp gives back what it has taken (PTX ISA,
    tcgen05.dealloc).

    With `pair` the columns of both CTAs of a pair are not to be used any more, so
    a cluster barrier stands in front of it, behind the last accesses of both.

    Undefined behaviour: a load, a store or a product that has not ended; another
    number of columns than were taken.

    Example: see `attn.tmem.reserve`.
  }];
  let arguments = (ins
    Arg<I32, "what attn.tmem.reserve returned">:$base,
    Described<I64Attr, "as many as were taken">:$columns,
    Described<UnitAttr, "by both CTAs of a pair">:$pair);
  let assemblyFormat = "$base attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

def Attn_TmemLoadOp : Attn_Op<"tmem.load", [AttnAsync<"kTensorLoads">,
    DeclareOpInterfaceMethods<Attn_ArchOpInterface>]> {
  let summary = "starts a load from tensor memory";
  let description = [{
    The four warps of a warpgroup load all of a buffer, each the lanes that it
    reaches (PTX ISA, tcgen05.ld). The instructions follow from dividing the layout
    of the result by the shapes that there are. The registers may be touched behind
    an `attn.tmem.wait` only, and the columns may be handed to others behind it
    only.

    With `reduce = max` or `maximum` (`attn.reduce`) a second result is the maximum of
    each row, which the instruction computes (sm_103a). It takes a layout in which a thread has whole
    rows, and 2 to 128 columns, a power of two.

    Undefined behaviour: a warp that reaches other lanes than the rows that it has in
    the layout; warps of the warpgroup that do not execute it together; loading while
    a product or a store writes that is not known to have ended.

    Example:

    ```mlir
    func.func @load(%s: !attn.buffer<128x32xf32, #attn.tmem<m = 128>, tmem>) -> tensor<128x32xf32, #attn.auto> {
      %f = attn.tmem.load %s : !attn.buffer<128x32xf32, #attn.tmem<m = 128>, tmem> -> !attn.inflight<128x32xf32, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>
      %t = attn.tmem.wait %f : !attn.inflight<128x32xf32, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>> -> tensor<128x32xf32, #attn.auto>
      return %t : tensor<128x32xf32, #attn.auto>
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_BufferType, "a buffer of rank 2 in tensor memory", [MemRead]>:$source,
    Described<OptionalAttr<Attn_ReduceKindAttr>, "max or maximum, for the rows' maxima as well">:$reduce);
  let results = (outs
    Res<Attn_InFlightType, "the tile, with a layout">:$result,
    Res<Optional<Attn_InFlightType>, "the rows' maxima">:$row_values);
  let assemblyFormat = [{
    $source attr-dict `:` type($source) `->` type($result) (`,` type($row_values)^)?
  }];
  let hasVerifier = 1;
}

def Attn_TmemWaitOp : Attn_Op<"tmem.wait", [AttnRequiresSM<100>, AttnAsync<"kTensorLoads">,
    SameVariadicResultSize,
    DeclareOpInterfaceMethods<Attn_LayoutOpInterface, ["getLayoutAnchors"]>,
    MemoryEffects<[MemRead<Attn_TensorAccesses>, MemWrite<Attn_TensorAccesses>]>]> {
  let summary = "waits for loads from tensor memory and returns their tiles";
  let description = [{
    Waits for all loads that the thread has started (PTX ISA, tcgen05.wait::ld) and
    returns those given. Their columns may be handed on behind it.

    Example: see `attn.tmem.load`.
  }];
  let arguments = (ins Arg<Variadic<Attn_InFlightType>, "tiles in flight">:$sources);
  let results = (outs Res<Variadic<AnyRankedTensor>, "the tiles">:$results);
  let assemblyFormat = "($sources^)? attr-dict (`:` type($sources)^ `->` type($results))?";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::std::optional<int64_t> getAwaitedGroups() { return 0; }
  }];
}

def Attn_TmemStoreOp : Attn_Op<"tmem.store", [AttnRequiresSM<100>, AttnAsync<"kTensorStores">,
    DeclareOpInterfaceMethods<Attn_LayoutOpInterface, ["getLayoutAnchors", "getOperandLayout"]>]> {
  let summary = "starts a store to tensor memory";
  let description = [{
    The four warps of a warpgroup store all of a buffer, each the lanes that it
    reaches (PTX ISA, tcgen05.st), with the shape that the tile's layout is a multiple
    of. Others see it behind an `attn.tmem.store_wait` and a signal;
    `attn-insert-fences` places the wait.

    Undefined behaviour: that of `attn.tmem.load`, with loads as well.

    Example:

    ```mlir
    func.func @store(%t: tensor<128x32xf16, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>, %p: !attn.buffer<128x32xf16, #attn.tmem<m = 128>, tmem>) {
      attn.tmem.store %t, %p : tensor<128x32xf16, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>, !attn.buffer<128x32xf16, #attn.tmem<m = 128>, tmem>
      attn.tmem.store_wait
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<AnyRankedTensor, "the tile">:$value,
    Arg<Attn_BufferType, "a buffer of rank 2 in tensor memory", [MemWrite]>:$dest);
  let assemblyFormat = "$value `,` $dest attr-dict `:` type($value) `,` type($dest)";
  let hasVerifier = 1;
}

def Attn_TmemStoreWaitOp : Attn_Op<"tmem.store_wait", [AttnRequiresSM<100>, AttnAsync<"kTensorStores">,
    MemoryEffects<[MemRead<Attn_TensorAccesses>, MemWrite<Attn_TensorAccesses>]>]> {
  let summary = "waits for stores to tensor memory";
  let description = [{
    Waits for all stores that the thread has started (PTX ISA, tcgen05.wait::st).
    `attn-insert-fences` puts it in front of the signals that hand stored columns
    on.

    Example: see `attn.tmem.store`.
  }];
  let assemblyFormat = "attr-dict";
  let extraClassDeclaration = [{
    ::std::optional<int64_t> getAwaitedGroups() { return 0; }
  }];
}

} // let opDocGroup

#endif // ATTN_DIALECT_ATTN_IR_OPS_TMEMOPS_TD
