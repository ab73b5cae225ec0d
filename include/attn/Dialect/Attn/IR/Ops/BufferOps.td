//===- BufferOps.td - Buffers in shared memory --------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_OPS_BUFFEROPS_TD
#define ATTN_DIALECT_ATTN_IR_OPS_BUFFEROPS_TD

include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "attn/Dialect/Attn/IR/AttnTypes.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "attn/Dialect/Attn/IR/OpGroups.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ViewLikeInterface.td"
include "mlir/IR/OpAsmInterface.td"

let opDocGroup = Attn_BufferGroup in {

def Attn_AllocOp : Attn_Op<"alloc", [
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "allocates a buffer in shared memory";
  let description = [{
    Allocates uninitialised memory that lives from here to its last use (through
    any view). `attn-allocate-shared` sets `offset`, the byte offset from the
    start of dynamic shared memory; buffers whose lifetimes do not overlap may
    share bytes. `overlay = "group"` declares that this buffer may take the
    bytes of another one of the same group as soon as that one is dead.

    Undefined behaviour: reading an element that was never written.

    Example:

    ```mlir
    func.func @ring() {
      %k = attn.alloc {name = "k"} : !attn.buffer<2x64x128xf16, #attn.swizzled<span = 128>, shared>
      return
    }
    ```
  }];
  let arguments = (ins
    Described<OptionalAttr<StrAttr>, "what it is for, in messages and printed IR">:$name,
    Described<OptionalAttr<I64Attr>, "bytes from the start of dynamic shared memory, set by attn-allocate-shared">:$offset,
    Described<OptionalAttr<StrAttr>, "buffers of one group may take the bytes of those that are dead">:$overlay,
    Described<OptionalAttr<Attn_CGAAttr>, "which block of a value of the cluster a slot holds">:$cga);
  let results = (outs Res<Attn_BufferType, "the buffer", [MemAlloc]>:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
  // A buffer of one CTA.
  let builders = [OpBuilder<(ins "::mlir::Type":$type,
    "::mlir::StringAttr":$name, "::mlir::IntegerAttr":$offset,
    "::mlir::StringAttr":$overlay), [{
      build($_builder, $_state, type, name, offset, overlay,
            ::mlir::attn::CGAAttr());
    }]>];
}

def Attn_SlotOp : Attn_Op<"slot", [Pure,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>,
    DeclareOpInterfaceMethods<ViewLikeOpInterface>]> {
  let summary = "one slot of a ring";
  let description = [{
    The slot `index` of a buffer with a leading ring dimension. `distance` says
    how many steps of the enclosing loop ahead of its current iteration the slot
    is used: in one iteration, two slots of a ring whose distances differ modulo
    the ring's depth are different slots, and distance d of one iteration is
    distance d - 1 of the next. Without it the index says so where it is a loop's
    counter or a carried value plus a constant, modulo the depth: `(i + 1) % 3`,
    or a carried slot that starts over behind the last one.

    Undefined behaviour: an index outside the ring.

    Example:

    ```mlir
    func.func @slot(%ring: !attn.buffer<2x64x128xf16, #attn.auto, shared>, %i: i32) {
      %s = attn.slot %ring[%i] {distance = 1} : !attn.buffer<2x64x128xf16, #attn.auto, shared> -> !attn.buffer<64x128xf16, #attn.auto, shared>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_BufferType, "a buffer of rank 3">:$source,
    Arg<I32, "slot, 0 <= index < depth">:$index,
    Described<OptionalAttr<I64Attr>, "steps ahead of the enclosing loop's iteration">:$distance);
  let results = (outs Res<Attn_BufferType, "the slot">:$result);
  let assemblyFormat = [{
    $source `[` $index `]` attr-dict `:` type($source) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Attn_TransposeOp : Attn_Op<"transpose", [Pure, DeclareOpInterfaceMethods<ViewLikeOpInterface>]> {
  let summary = "a buffer seen with its two dimensions exchanged";
  let description = [{
    A view: no data moves. The layout is `#attn.transposed` of the source's, or
    `#attn.auto` if that is not chosen yet.

    Folds: the transpose of a transpose is the buffer.

    Example:

    ```mlir
    func.func @kt(%k: !attn.buffer<64x128xf16, #attn.swizzled<span = 128>, shared>) {
      %kt = attn.transpose %k : !attn.buffer<64x128xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<128x64xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>
      return
    }
    ```
  }];
  let arguments = (ins Arg<Attn_BufferType, "a buffer of rank 2">:$source);
  let results = (outs Res<Attn_BufferType, "the transposed view">:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Attn_ReinterpretOp : Attn_Op<"reinterpret", [Pure, DeclareOpInterfaceMethods<ViewLikeOpInterface>]> {
  let summary = "the bytes of a buffer under another type";
  let description = [{
    A view of the same bytes with another shape, element type or layout. The
    verifier checks that the result needs no more bytes than the source has
    (once both layouts are chosen).

    In a cluster whose CTAs multiply together `cga` says which block of a value a
    slot of the view holds: slots that have keys and values by turns hold other
    blocks under each type.

    Folds: a view of the buffer's own type is the buffer, unless it has a `cga`, a
    view of a view without one is a view of the buffer behind both.

    Undefined behaviour: reading bytes that were written under another type
    whose layout puts other elements there.

    Example:

    ```mlir
    func.func @o_over_q(%q: !attn.buffer<128x128xf16, #attn.swizzled<span = 128>, shared>) {
      %o = attn.reinterpret %q : !attn.buffer<128x128xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<128x64xf16, #attn.swizzled<span = 128>, shared>
      return
    }
    func.func @values_over_keys(%k: !attn.buffer<2x64x128xf16, #attn.swizzled<span = 128>, shared>) {
      %v = attn.reinterpret %k {cga = #attn.cga<[[0, 1]]>} : !attn.buffer<2x64x128xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<2x128x64xf16, #attn.swizzled<span = 128>, shared>
      return
    }
    ```
  }];
  let arguments = (ins Arg<Attn_BufferType, "a buffer">:$source,
    Described<OptionalAttr<Attn_CGAAttr>, "which block of a value of the cluster a slot of the view holds">:$cga);
  let results = (outs Res<Attn_BufferType, "the view">:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$source), [{
      build($_builder, $_state, type, source, ::mlir::attn::CGAAttr());
    }]>];
}

def Attn_LocalLoadOp : Attn_Op<"local_load"> {
  let summary = "shared memory to a register tile";
  let description = [{
    Reads the whole buffer (rank 1 or 2). The instruction follows from the two
    layouts: `ldmatrix`, or plain vector loads. With `column` it reads that column
    of plain rows, a number of each row, to a tile of rank 1.

    Undefined behaviour: reading while another warp may write without a barrier
    between; `attn-insert-fences` places the barriers.

    Example:

    ```mlir
    func.func @load(%b: !attn.buffer<128x64xf16, #attn.auto, shared>) -> tensor<128x64xf16, #attn.auto> {
      %t = attn.local_load %b : !attn.buffer<128x64xf16, #attn.auto, shared> -> tensor<128x64xf16, #attn.auto>
      return %t : tensor<128x64xf16, #attn.auto>
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_BufferType, "source", [MemRead]>:$source,
    Described<OptionalAttr<I64Attr>, "the column that is read; without one the whole buffer">:$column);
  let results = (outs Res<AnyRankedTensor, "the tile">:$result);
  let assemblyFormat = [{
    $source (`column` `(` $column^ `)`)? attr-dict `:` type($source) `->` type($result)
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$source), [{
      build($_builder, $_state, result, source, ::mlir::IntegerAttr());
    }]>];
  let hasVerifier = 1;
}

def Attn_LocalStoreOp : Attn_Op<"local_store"> {
  let summary = "a register tile to shared memory";
  let description = [{
    Writes the whole buffer (rank 1 or 2). Where several threads hold copies of
    an element, one of them writes.

    Undefined behaviour: writing while another warp may read or write without a
    barrier between; `attn-insert-fences` places the barriers.

    Example:

    ```mlir
    func.func @store(%t: tensor<128x64xf16, #attn.auto>, %b: !attn.buffer<128x64xf16, #attn.auto, shared>) {
      attn.local_store %t, %b : tensor<128x64xf16, #attn.auto>, !attn.buffer<128x64xf16, #attn.auto, shared>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<AnyRankedTensor, "the tile">:$value,
    Arg<Attn_BufferType, "destination", [MemWrite]>:$dest);
  let assemblyFormat = "$value `,` $dest attr-dict `:` type($value) `,` type($dest)";
  let hasVerifier = 1;
}

def Attn_LocalSendOp : Attn_Op<"local_send", [AttnRequiresSM<90>, AttnAsync<"kSends">,
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<Attn_ChannelUserOpInterface,
      ["getUsedHandle", "getFilledBytes", "setFillBarrier"]>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "starts a store of a register tile to the other CTA";
  let description = [{
    The warps of a partition start stores of a tile (PTX ISA, st.async) to where
    `dest` lies in the other CTA of their cluster of two, which sends its tile here
    by the same op. Who waits for the bytes may read them: no barrier is needed.
    The bytes are counted by the slot of a channel whose token is given, or, below
    `attn-lower-channels`, by barrier `which` of `barriers`; either is that of the
    other CTA. The slot may be acquired by all warps: one thread announces the
    bytes. Of threads that hold copies of an element one sends it. Elements of 16
    bits go in pairs, two neighbours of a row that a thread holds.

    Undefined behaviour: touching the buffer before it is complete, or sending
    while a thread of the other CTA may read it; a barrier that does not expect the
    bytes; a store into a CTA that has exited.

    Example:

    ```mlir
    func.func @exchange(%t: tensor<64x32xf32, #attn.auto>, %b: !attn.buffer<64x32xf32, #attn.auto, shared>, %token: !attn.token) {
      attn.local_send %t, %b token %token : tensor<64x32xf32, #attn.auto>, !attn.buffer<64x32xf32, #attn.auto, shared>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<AnyRankedTensor, "the tile, of elements of 32 or 16 bits">:$value,
    Arg<Attn_BufferType, "the destination, as it lies in the other CTA">:$dest,
    Arg<Optional<Attn_TokenType>, "the slot's token">:$token,
    Arg<Optional<Attn_MBarriersType>, "the barriers">:$barriers,
    Arg<Optional<I32>, "which barrier">:$which);
  let assemblyFormat = [{
    $value `,` $dest (`token` $token^)?
    (`barrier` $barriers^ `[` $which `]` `:` type($barriers))? attr-dict
    `:` type($value) `,` type($dest)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// CTAs of a cluster that exchange tiles.
    static constexpr int64_t kCTAs = 2;
    ::std::pair<::mlir::Value, ::mlir::Value> getFillBarrier() {
      return {getBarriers(), getWhich()};
    }
    ::std::optional<int64_t> getFilledCTAs() { return kCTAs; }
    bool isExchange() { return true; }
  }];
}

def Attn_ScalarLoadOp : Attn_Op<"scalar_load",
    [DeclareOpInterfaceMethods<Attn_ElementOpInterface>]> {
  let summary = "one element of shared memory";
  let description = [{
    All executing threads read element `index` of a buffer of rank 1. The result
    is the same in all of them.

    Undefined behaviour: an index outside the buffer; threads of a warp that
    have different indices; reading what another thread may write at the same
    time. Channels order one before the other.

    Example:

    ```mlir
    func.func @hand_over(%b: !attn.buffer<2xi32, #attn.rows, shared>, %i: i32) -> i32 {
      %x = attn.scalar_load %b[%i] : !attn.buffer<2xi32, #attn.rows, shared>
      return %x : i32
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_BufferType, "a buffer of rank 1 of i32", [MemRead]>:$source,
    Arg<I32, "which element">:$index);
  let results = (outs Res<I32, "the element">:$result);
  let assemblyFormat = "$source `[` $index `]` attr-dict `:` type($source)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Value getHeardInteger() { return getResult(); }
  }];
}

def Attn_ScalarStoreOp : Attn_Op<"scalar_store",
    [DeclareOpInterfaceMethods<Attn_ElementOpInterface>]> {
  let summary = "writes one element of shared memory";
  let description = [{
    The one thread of the `attn.elect` that it stands in writes element `index`
    of a buffer of rank 1.

    Undefined behaviour: an index outside the buffer; writing what another
    thread may access at the same time. Channels order one before the other.

    Example:

    ```mlir
    func.func @hand_over(%x: i32, %b: !attn.buffer<2xi32, #attn.rows, shared>, %i: i32) {
      attn.elect {
        attn.scalar_store %x, %b[%i] : !attn.buffer<2xi32, #attn.rows, shared>
      }
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<I32, "the value">:$value,
    Arg<Attn_BufferType, "a buffer of rank 1 of i32", [MemWrite]>:$dest,
    Arg<I32, "which element">:$index);
  let assemblyFormat = "$value `,` $dest `[` $index `]` attr-dict `:` type($dest)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Value getToldInteger() { return getValue(); }
  }];
}

def Attn_ScalarSendOp : Attn_Op<"scalar_send", [AttnRequiresSM<90>, AttnAsync<"kSends">,
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<Attn_ChannelUserOpInterface,
      ["getUsedHandle", "getFilledBytes", "setFillBarrier"]>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "starts a store of one element of shared memory";
  let description = [{
    The one thread of the `attn.elect` that it stands in starts a store to element
    `index` of a buffer of rank 1 (PTX ISA, st.async). Who waits for its 4 bytes
    may read it: no barrier is needed, also where threads of the same partition
    do. The bytes are counted by the slot of a channel whose token is given, or,
    below `attn-lower-channels`, by barrier `which` of `barriers`.

    With `ctas = n` the element is written in each of the n CTAs of the thread's
    cluster, and its bytes count in each of them at the barrier that lies where
    `barriers` lies here. `attn-lower-channels` sets it for a role of the
    cluster's leader.

    Undefined behaviour: an index outside the buffer; touching the element before
    it is complete, or while another thread may read it; a barrier that does not
    expect the bytes; a store into a CTA that has exited.

    Example:

    ```mlir
    func.func @hand_over(%x: i32, %b: !attn.buffer<2xi32, #attn.rows, shared>, %i: i32, %t: !attn.token) {
      attn.elect {
        attn.scalar_send %x, %b[%i] token %t : !attn.buffer<2xi32, #attn.rows, shared>
      }
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<I32, "the value">:$value,
    Arg<Attn_BufferType, "a buffer of rank 1 of i32">:$dest,
    Arg<I32, "which element">:$index,
    Arg<Optional<Attn_TokenType>, "the slot's token">:$token,
    Arg<Optional<Attn_MBarriersType>, "the barriers">:$barriers,
    Arg<Optional<I32>, "which barrier">:$which,
    Described<OptionalAttr<I64Attr>, "CTAs of the cluster that get the element, 2 to 16; without it this one alone">:$ctas);
  let assemblyFormat = [{
    $value `,` $dest `[` $index `]` (`token` $token^)?
    (`barrier` $barriers^ `[` $which `]` `:` type($barriers))? attr-dict
    `:` type($dest)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::std::pair<::mlir::Value, ::mlir::Value> getFillBarrier() {
      return {getBarriers(), getWhich()};
    }
    ::mlir::attn::SignalMask getFillTargets() {
      return ::mlir::attn::SignalMask::get(getCtas(), false, std::nullopt);
    }
    ::std::pair<::mlir::Value, ::mlir::Value> getFilledElement() {
      return {getIndex(), getValue()};
    }
  }];
}

def Attn_ClusterRequestOp : Attn_Op<"cluster_request", [AttnRequiresSM<100>,
    AttnAsync<"kClusterRequests">, AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<Attn_ChannelUserOpInterface,
      ["getUsedHandle", "getFilledBytes", "setFillBarrier"]>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "asks to take over a cluster that has not started";
  let description = [{
    The one thread of the `attn.elect` that it stands in asks for a cluster of the
    launch that has not started, which then never does (PTX ISA,
    clusterlaunchcontrol.try_cancel). The response comes as element `index` of a
    buffer of rank 1, written through the async proxy. Who waits for its 16 bytes
    may read it (`attn.cluster_response`). They are counted by the slot of a
    channel whose token is given, or, below `attn-lower-channels`, by barrier
    `which` of `barriers`.

    With `ctas = n` all n CTAs of the thread's cluster get the response, and its
    bytes count in each of them at the barrier that lies where `barriers` lies
    here. `attn-lower-channels` sets it for a role of the cluster's leader.

    Undefined behaviour: an index outside the buffer; touching the element before
    it is complete, or while another thread may read it; a barrier that does not
    expect the bytes; a request after one whose response said that there are no
    clusters.

    Example:

    ```mlir
    func.func @ask(%b: !attn.buffer<2xi128, #attn.rows, shared>, %i: i32, %t: !attn.token) {
      attn.elect {
        attn.cluster_request %b[%i] token %t : !attn.buffer<2xi128, #attn.rows, shared>
      }
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_BufferType, "a buffer of rank 1 of i128">:$dest,
    Arg<I32, "which element">:$index,
    Arg<Optional<Attn_TokenType>, "the slot's token">:$token,
    Arg<Optional<Attn_MBarriersType>, "the barriers">:$barriers,
    Arg<Optional<I32>, "which barrier">:$which,
    Described<OptionalAttr<I64Attr>, "CTAs of the cluster that get the response, 2 to 16: all that it has; without it this one alone">:$ctas);
  let assemblyFormat = [{
    $dest `[` $index `]` (`token` $token^)?
    (`barrier` $barriers^ `[` $which `]` `:` type($barriers))? attr-dict
    `:` type($dest)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::std::pair<::mlir::Value, ::mlir::Value> getFillBarrier() {
      return {getBarriers(), getWhich()};
    }
    ::mlir::attn::SignalMask getFillTargets() {
      return ::mlir::attn::SignalMask::get(getCtas(), false, std::nullopt);
    }
    ::std::pair<::mlir::Value, ::mlir::Value> getFilledElement() {
      return {getIndex(), ::mlir::Value()};
    }
    bool takesTile() { return true; }
  }];
}

def Attn_ClusterResponseOp : Attn_Op<"cluster_response", [AttnRequiresSM<100>,
    DeclareOpInterfaceMethods<Attn_ElementOpInterface>]> {
  let summary = "the cluster that a response gives";
  let description = [{
    All executing threads read element `index` of a buffer of rank 1, the response
    to an `attn.cluster_request` (PTX ISA, clusterlaunchcontrol.query_cancel). The
    result is the number along x of the cluster that was taken over, or `none` if
    there was none, the same in all of them. Another request may write to the
    element once the threads have gone through an `attn.fence.proxy_async`.

    Undefined behaviour: an index outside the buffer; an element that is no
    response; threads of a warp that have different indices.

    Example:

    ```mlir
    func.func @next(%b: !attn.buffer<2xi128, #attn.rows, shared>, %i: i32, %count: i32) -> i32 {
      %x = attn.cluster_response %b[%i] none %count : !attn.buffer<2xi128, #attn.rows, shared>
      return %x : i32
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_BufferType, "a buffer of rank 1 of i128", [MemRead]>:$source,
    Arg<I32, "which element">:$index,
    Arg<I32, "the result where no cluster was taken over">:$none);
  let results = (outs Res<I32, "the number of the cluster">:$result);
  let assemblyFormat = [{
    $source `[` $index `]` `none` $none attr-dict `:` type($source)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Value getHeardInteger() { return getResult(); }
  }];
}

} // let opDocGroup

#endif // ATTN_DIALECT_ATTN_IR_OPS_BUFFEROPS_TD
