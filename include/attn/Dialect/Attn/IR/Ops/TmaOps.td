//===- TmaOps.td - Bulk tensor copies -----------------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_OPS_TMAOPS_TD
#define ATTN_DIALECT_ATTN_IR_OPS_TMAOPS_TD

include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "attn/Dialect/Attn/IR/AttnTypes.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "attn/Dialect/Attn/IR/Ops/BarrierOps.td"
include "attn/Dialect/Attn/IR/OpGroups.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

let opDocGroup = Attn_TmaGroup in {

def Attn_EncodeTensorMapOp : Attn_Op<"encode_tensor_map", [Pure]> {
  let summary = "describes a memref for TMA, on the host";
  let description = [{
    The tensor map of `source` with the box, swizzle and element type of the
    result (CUDA driver API, cuTensorMapEncodeTiled), for a kernel's parameter.
    Elements outside the memref read as zeros.

    With `packed` the memref holds sequences of variable lengths one behind the
    other, R rows in all, in a batch of 1. A dimension in place of the batch says
    where a sequence ends: element (e, ..., i, c) of the map is row e - R + i of
    the memref. The last row of a sequence that ends at row e is i = R - 1, and all
    rows behind it are outside.

    With `bounded` the map has one dimension more, behind the first, that says where
    the rows of a batch, or of a page, end: with R rows, element (b, e, ..., i, c) is
    row e - R + i of b. The last of its first e rows is i = R - 1, and all rows behind
    it are outside.

    With `by_row` the two dimensions before the last are exchanged, also where one of
    them is what `packed` says: of (..., heads, rows, columns) the map has (..., rows,
    heads, columns).

    Undefined behaviour: an address or a stride other than the innermost that
    is no multiple of 16 bytes; a stride of 2^40 bytes or more; an extent of 0.

    Example:

    ```mlir
    func.func @encode(%k: memref<1x8x?x128xf16>) -> !attn.tensor_map<1x1x128x64xf16, swizzle = 128> {
      %map = attn.encode_tensor_map %k : memref<1x8x?x128xf16> -> !attn.tensor_map<1x1x128x64xf16, swizzle = 128>
      return %map : !attn.tensor_map<1x1x128x64xf16, swizzle = 128>
    }
    ```
  }];
  let arguments = (ins
    Arg<AnyStridedMemRef, "the tensor in global memory">:$source,
    Described<UnitAttr, "the batch is a dimension that says where a sequence ends">:$packed,
    Described<UnitAttr, "one dimension more says where the rows of a batch end">:$bounded,
    Described<UnitAttr, "heads stand inside of rows">:$by_row);
  let results = (outs Res<Attn_TensorMapType, "the map">:$result);
  let assemblyFormat = "(`packed` $packed^)? (`bounded` $bounded^)? (`by_row` $by_row^)? $source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Attn_TmaPrefetchOp : Attn_Op<"tma.prefetch", [AttnRequiresSM<90>, Attn_BulkCopyOpInterface,
    MemoryEffects<[MemWrite<Attn_BarrierState>]>]> {
  let summary = "brings a tensor map near";
  let description = [{
    A hint (PTX ISA, prefetch.tensormap).

    Example:

    ```mlir
    func.func @prefetch(%map: !attn.tensor_map<1x1x128x64xf16, swizzle = 128>) {
      attn.tma.prefetch %map : !attn.tensor_map<1x1x128x64xf16, swizzle = 128>
      return
    }
    ```
  }];
  let arguments = (ins Arg<Attn_TensorMapType, "the map">:$map);
  let assemblyFormat = "$map attr-dict `:` type($map)";
}

def Attn_TmaLoadOp : Attn_Op<"tma.load", [DeclareOpInterfaceMethods<Attn_ArchOpInterface>, AttnAsync<"kBulkLoads">,
    AttrSizedOperandSegments, Attn_BulkCopyOpInterface,
    DeclareOpInterfaceMethods<Attn_ChannelUserOpInterface,
      ["getUsedHandle", "getFilledBytes", "setFillBarrier", "isFilledAtLeader", "setFilledAtLeader", "getFillTargets"]>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "starts a copy of a box of a tensor to shared memory";
  let description = [{
    The executing thread starts a copy of the elements from `coords` (in the
    tensor's order of dimensions) to the whole of `dest`, as many boxes side by
    side along the last dimension as fill it (PTX ISA,
    cp.async.bulk.tensor). Elements outside the tensor become zeros.

    Completion is counted in bytes by the slot of a channel whose token is
    given, or, below `attn-lower-channels`, by barrier `index` of `barriers`.

    With `multicast = n` in a cluster of n CTAs `dest` has n times the map's rows.
    The CTA of rank r copies the r-th part of the rows, `r * rows` further on in
    the tensor, to the r-th part of `dest` in all CTAs, and its bytes count in
    each of them at the barrier that lies where `barriers` lies here (PTX ISA,
    multicast::cluster). Coordinates are the same in all CTAs, which all load. With
    `rank_bits = b` these are the n CTAs whose ranks agree in all bits but those of b,
    and r is the number that the bits of b make up.

    With `leader` the bytes count in the first CTA of each pair of CTAs, of ranks 2n
    and 2n + 1, that gets them, at the barrier that lies there where `barriers` lies
    here (PTX ISA, cta_group::2).

    With `stacked = n` `dest` has n times the map's rows too, all from here: the
    r-th part of the rows is the box that starts r times the box's extent further
    along the dimension before the last. With n lists of coordinates, one behind the
    other, the r-th part is the box at the r-th of them.

    With `spare` box r is one of that map instead, at the same coordinates, if the
    r-th of its conditions holds; with `multicast` each CTA states the condition of its
    own part of the rows. The address of a map has to be one that may be read
    if a box has no element inside of the map: that of a `bounded` one is not.

    Undefined behaviour: touching `dest` before it is complete; a barrier
    that does not expect the bytes; a load into a CTA that has exited, or whose
    slot is in use.

    Example:

    ```mlir
    func.func @load(%map: !attn.tensor_map<1x1x128x64xf16, swizzle = 128>, %b: i32, %h: i32, %row: i32,
                    %dest: !attn.buffer<128x128xf16, #attn.swizzled<span = 128>, shared>, %t: !attn.token) {
      %zero = arith.constant 0 : i32
      attn.tma.load %map[%b, %h, %row, %zero], %dest token %t : !attn.tensor_map<1x1x128x64xf16, swizzle = 128>, !attn.buffer<128x128xf16, #attn.swizzled<span = 128>, shared>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_TensorMapType, "the map">:$map,
    Arg<Variadic<I32>, "first element, one index for each dimension; of each of the stacked boxes, or of all">:$coords,
    Arg<Attn_BufferType, "destination">:$dest,
    Arg<Optional<Attn_TokenType>, "the slot's token">:$token,
    Arg<Optional<Attn_MBarriersType>, "the barriers">:$barriers,
    Arg<Optional<I32>, "which barrier">:$index,
    Arg<Optional<Attn_TensorMapType>, "the map of boxes that have no element in the first one">:$spare,
    Arg<Variadic<I1>, "which boxes these are, one condition for each">:$outside,
    Described<OptionalAttr<I64Attr>, "CTAs of the cluster that get all parts of the rows, 2 to 16">:$multicast,
    Described<OptionalAttr<I64Attr>, "boxes one below the other, 2 to 256">:$stacked,
    Described<UnitAttr, "counts its bytes in the first CTA of a pair">:$leader,
    Described<OptionalAttr<I64Attr>, "bits of the CTAs' ranks that 'multicast' is about, a number from 1 to 7; all without it">:$rank_bits);
  let assemblyFormat = [{
    $map `[` $coords `]` `,` $dest (`token` $token^)?
    (`barrier` $barriers^ `[` $index `]` `:` type($barriers))?
    (`spare` $spare^ `[` $outside `]` `:` type($spare))? attr-dict
    `:` type($map) `,` type($dest)
  }];
  let hasVerifier = 1;
  // One that is not about pairs or other CTAs than all of a cluster.
  let builders = [OpBuilder<(ins "::mlir::Value":$map,
    "::mlir::ValueRange":$coords, "::mlir::Value":$dest, "::mlir::Value":$token,
    "::mlir::Value":$barriers, "::mlir::Value":$index, "::mlir::Value":$spare,
    "::mlir::ValueRange":$outside, "::mlir::IntegerAttr":$multicast,
    "::mlir::IntegerAttr":$stacked), [{
      build($_builder, $_state, map, coords, dest, token, barriers, index, spare,
            outside, multicast, stacked, /*leader=*/::mlir::UnitAttr(),
            /*rank_bits=*/::mlir::IntegerAttr());
    }]>];
  let extraClassDeclaration = [{
    ::mlir::Value getCopiedBuffer() { return getDest(); }
    bool isBulkLoad() { return true; }
    ::mlir::OperandRange getBoxStart() { return getCoords(); }
    int64_t getStackedBoxes() { return getStacked().value_or(1); }
    /// True if each of the stacked boxes has coordinates of its own.
    bool areBoxesApart();
    bool canMulticast() { return true; }
    bool canFillAtLeader() { return !getMulticast() || (getRankBits() && *getRankBits() % 2 == 0); }
    ::std::optional<int64_t> getMulticastCTAs() { return getMulticast(); }
    void setMulticastCTAs(int64_t ctas, ::mlir::IntegerAttr bits) {
      setMulticast(ctas);
      setRankBitsAttr(bits);
    }
    uint32_t getMulticastBits() { return getRankBits().value_or(~uint32_t(0)); }
    ::std::optional<int64_t> getFilledCTAs() { return getMulticast().value_or(1); }
    ::std::pair<::mlir::Value, ::mlir::Value> getFillBarrier() {
      return {getBarriers(), getIndex()};
    }
  }];
}

def Attn_TmaGatherOp : Attn_Op<"tma.gather", [AttnRequiresSM<100>, AttnAsync<"kBulkLoads">,
    AttrSizedOperandSegments, Attn_BulkCopyOpInterface,
    DeclareOpInterfaceMethods<Attn_ChannelUserOpInterface,
      ["getUsedHandle", "getFilledBytes", "setFillBarrier"]>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "starts a copy of rows that lie apart to shared memory";
  let description = [{
    The executing thread starts copies of rows of a tensor of two dimensions to the
    whole of `dest`, four rows of one box of columns an instruction (PTX ISA,
    cp.async.bulk.tensor with tile::gather4). Row `i` of `dest` has the columns from
    `column` on of the row of the tensor that element `from + i` of `rows`, a buffer in
    shared memory, names. A row that the tensor does not have, such as -1, becomes
    zeros, and so do columns that it does not have.

    The map has a box of one row. Completion is counted in bytes as of `attn.tma.load`.

    Undefined behaviour: touching `dest` before it is complete; a barrier that does not
    expect the bytes; `from` that is no multiple of 4, or from which on `rows` has fewer
    elements than `dest` has rows; writing `rows` while the op reads them.

    Example:

    ```mlir
    func.func @gather(%map: !attn.tensor_map<1x64xf16, swizzle = 128>, %column: i32,
                      %rows: !attn.buffer<128xi32, #attn.rows, shared>,
                      %dest: !attn.buffer<64x128xf16, #attn.swizzled<span = 128>, shared>, %t: !attn.token) {
      %from = arith.constant 64 : i32
      attn.tma.gather %map[%rows[%from], %column], %dest token %t : !attn.tensor_map<1x64xf16, swizzle = 128>, !attn.buffer<128xi32, #attn.rows, shared>, !attn.buffer<64x128xf16, #attn.swizzled<span = 128>, shared>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_TensorMapType, "the map">:$map,
    Arg<Attn_BufferType, "numbers of rows, i32">:$rows,
    Arg<I32, "the first of these">:$from,
    Arg<I32, "first column">:$column,
    Arg<Attn_BufferType, "destination">:$dest,
    Arg<Optional<Attn_TokenType>, "the slot's token">:$token,
    Arg<Optional<Attn_MBarriersType>, "the barriers">:$barriers,
    Arg<Optional<I32>, "which barrier">:$index);
  let assemblyFormat = [{
    $map `[` $rows `[` $from `]` `,` $column `]` `,` $dest (`token` $token^)?
    (`barrier` $barriers^ `[` $index `]` `:` type($barriers))? attr-dict
    `:` type($map) `,` type($rows) `,` type($dest)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Value getCopiedBuffer() { return getDest(); }
    bool isBulkLoad() { return true; }
    ::std::optional<int64_t> getFilledCTAs() { return 1; }
    ::std::pair<::mlir::Value, ::mlir::Value> getFillBarrier() {
      return {getBarriers(), getIndex()};
    }
  }];
}

def Attn_TmaStoreOp : Attn_Op<"tma.store", [AttnRequiresSM<90>, AttnAsync<"kBulkStores">,
    Attn_BulkCopyOpInterface,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "starts a copy of a buffer to a box of a tensor";
  let description = [{
    The executing thread starts a copy of `source` to the elements from
    `coords`; elements outside the tensor are dropped. It belongs to the
    thread's current bulk group (PTX ISA, cp.async.bulk.tensor with
    bulk_group).

    With `warpgroups = n`, in an `attn.elect each_warpgroup` of a partition of n
    warpgroups, `source` has n times the map's rows. The thread of warpgroup w
    copies the w-th part of the rows, `w * rows` further on in the tensor.
    Coordinates are the same in all of them.

    Undefined behaviour: generic writes to `source` that are not ordered before
    it by `attn.fence.proxy_async` and a barrier; writing `source` again before
    an `attn.tma.wait`.

    Example:

    ```mlir
    func.func @store(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, %b: i32, %h: i32, %row: i32,
                     %source: !attn.buffer<64x128xf16, #attn.swizzled<span = 128>, shared>) {
      %zero = arith.constant 0 : i32
      attn.tma.store %source, %map[%b, %h, %row, %zero] : !attn.buffer<64x128xf16, #attn.swizzled<span = 128>, shared>, !attn.tensor_map<1x1x64x64xf16, swizzle = 128>
      attn.tma.commit
      attn.tma.wait {pending = 0, read}
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_BufferType, "source">:$source,
    Arg<Attn_TensorMapType, "the map">:$map,
    Arg<Variadic<I32>, "first element, one index for each dimension">:$coords,
    Described<OptionalAttr<I64Attr>, "that store a part of the rows each">:$warpgroups);
  let assemblyFormat = "$source `,` $map `[` $coords `]` attr-dict `:` type($source) `,` type($map)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    bool touchesOwnRows(::mlir::OpOperand &) { return getWarpgroups().has_value(); }
    ::mlir::Value getCopiedBuffer() { return getSource(); }
    ::mlir::OperandRange getBoxStart() { return getCoords(); }
  }];
}

def Attn_TmaCommitOp : Attn_Op<"tma.commit", [AttnRequiresSM<90>, AttnAsync<"kBulkStores">,
    MemoryEffects<[MemWrite<Attn_BarrierState>]>]> {
  let summary = "closes a bulk group";
  let description = [{
    The stores that the executing thread started since its last commit become
    one group (PTX ISA, cp.async.bulk.commit_group).

    Example: see `attn.tma.store`.
  }];
  let assemblyFormat = "attr-dict";
  let extraClassDeclaration = [{
    bool closesGroup() { return true; }
  }];
}

def Attn_TmaWaitOp : Attn_Op<"tma.wait", [AttnRequiresSM<90>, AttnAsync<"kBulkStores">,
    MemoryEffects<[MemRead<Attn_BarrierState>, MemWrite<Attn_BarrierState>]>]> {
  let summary = "waits for bulk groups";
  let description = [{
    The executing thread waits until at most `pending` of its groups are
    incomplete; with `read`, until at most so many still read their sources (PTX
    ISA, cp.async.bulk.wait_group).

    Example: see `attn.tma.store`.
  }];
  let arguments = (ins Described<I64Attr, "the youngest groups, which may stay incomplete">:$pending, Described<UnitAttr, "until the sources are read, not until all is written">:$read);
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::std::optional<int64_t> getAwaitedGroups() { return getPending(); }
  }];
}

} // let opDocGroup

#endif // ATTN_DIALECT_ATTN_IR_OPS_TMAOPS_TD
