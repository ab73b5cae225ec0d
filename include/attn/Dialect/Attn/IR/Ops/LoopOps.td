//===- LoopOps.td - The loop over key blocks ----------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_OPS_LOOPOPS_TD
#define ATTN_DIALECT_ATTN_IR_OPS_LOOPOPS_TD

include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "attn/Dialect/Attn/IR/AttnTypes.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "attn/Dialect/Attn/IR/OpGroups.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/LoopLikeInterface.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Dialect/LLVMIR/LLVMOpBase.td"

let opDocGroup = Attn_LoopGroup in {

def Attn_KVLoopOp : Attn_Op<"kv_loop", [
    RecursiveMemoryEffects,
    DeclareOpInterfaceMethods<LoopLikeOpInterface, ["getRegionIterArgs",
      "getYieldedValuesMutable", "getLoopResults", "getLoopLowerBounds",
      "getLoopUpperBounds", "getLoopSteps"]>,
    DeclareOpInterfaceMethods<RegionBranchOpInterface,
      ["getEntrySuccessorOperands"]>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>,
    RangedTypesMatchWith<"carried values keep their types", "inits", "results",
      "$_self">,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "the loop over blocks of keys, before it is pipelined";
  let description = [{
    Runs the body for the blocks `end - 1` down to `begin`, one after the other;
    `block` keys each. The body's arguments are the index of the block's first
    key and the carried values.

    Blocks are told apart by the masks they need (`begin <= full_begin <=
    full_end <= end`):

    - `right`: blocks from `full_end` on may hold keys beyond the end of the
      sequence or right of the band (and left of it, if the band is narrow);
    - `interior`: blocks in [`full_begin`, `full_end`) need no mask;
    - `left`: blocks below `full_begin` may hold keys left of the band.

    `attn-expand-pipeline` makes one loop of each phase and drops the
    `attn.apply_mask` tests that the phase does not need. `attn.stage` in the
    body names what is loaded for a block; the pipeline starts these loads
    ahead, `stages` says how far.

    Stages that share a ring are *slices* of a block: they have its slots in turns,
    each is read before the next one is loaded to its slot, and copies start
    `stages - 1` slices ahead instead of blocks. Stages of other rings with no
    access between them and a slice go with it.

    With `qk_ahead` the product that feeds the softmax of block i + 1 (QK) starts
    before the one that uses the probabilities of block i (PV), and the softmax
    runs while the latter is on its way. The two are products in flight
    (`ProductOpInterface`, such as `attn.wgmma`). Each has a wait of its own, and
    at most one channel slot, acquired before it and released behind its wait.

    With `pv_behind` as well, PV of block i is awaited together with QK of block
    i + 2: it has the whole softmax of block i + 1 to run under, whose
    probabilities take registers of their own. The accumulator is carried in
    flight, and a rare path that changes it waits for it.

    With `rescore`, which needs `qk_ahead` and excludes `pv_behind`, blocks without
    mask whose softmax is `optimistic` give their scores' registers to the
    probabilities. A bet that is lost corrects these; where one of them is
    infinite the scores are multiplied once more, from the slots that QK reads,
    which therefore are released behind the softmax. The loop over such blocks is
    left for that path (`leave_loop` of `attn.rare`). Softmaxes of other scores than a
    product's, and of 8-bit operands, stay as they are.

    `first`, which needs `qk_ahead`, states how many keys of the first block
    executed (the one from `end - 1` on) are multiplied: its first ones, one
    number for all warpgroups of the partition or one for each. All other keys of
    the block have to be masked for all of a warpgroup's rows. The block is loaded,
    acquired and released as any other; a warpgroup with 0 keys multiplies none.
    `second` states in which phase the block executed next is in each execution
    of the loop that has one; without it that block keeps all masks.

    With `above_wait`, which excludes `qk_ahead`, the copies of the first blocks go
    above an `attn.cp_async.wait` in front of the loop, so that they are on their
    way while another copy, as a rule that of Q, is awaited. They stay where they
    are if anything lies between but arithmetic and loads and stores of other memory
    than the rings, or if slices share a ring. The buffers of what is awaited
    cannot share memory with the rings then.

    Canonical form: a loop that is known to have no block is its initial values.

    Example:

    ```mlir
    func.func @loop(%gk: !attn.global<?x64xf16>, %ring: !attn.buffer<2x32x64xf16, #attn.auto, shared>, %n: i32, %x: f32) -> f32 {
      %zero = arith.constant 0 : i32
      %r = attn.kv_loop %zero, %zero, %n, %n block 32 stages 2 iter_args(%x : f32) {
      ^bb0(%key: i32, %acc: f32):
        %k = attn.stage %gk[%key], %ring : !attn.global<?x64xf16>, !attn.buffer<2x32x64xf16, #attn.auto, shared> -> !attn.buffer<32x64xf16, #attn.auto, shared>
        %next = arith.addf %acc, %acc : f32
        attn.yield %next : f32
      }
      return %r : f32
    }
    ```
  }];
  let arguments = (ins
    Arg<I32, "first block">:$begin,
    Arg<I32, "first block without left mask">:$full_begin,
    Arg<I32, "first block with right mask">:$full_end,
    Arg<I32, "one past the last block">:$end,
    Described<I64Attr, "keys of a block">:$block,
    Described<I64Attr, "slots of each ring that attn.stage loads into">:$stages,
    Arg<Variadic<AnyType>, "initial carried values">:$inits,
    Described<OptionalAttr<Attn_KVOrderAttr>, "in which order work is started and awaited">:$order);
  let results = (outs Res<Variadic<AnyType>, "carried values after the last block">:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $begin `,` $full_begin `,` $full_end `,` $end `block` $block `stages` $stages
    `` custom<KVOrder>($order)
    (`iter_args` `(` $inits^ `:` type($inits) `)`)? attr-dict-with-keyword $body
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$begin,
    "::mlir::Value":$fullBegin, "::mlir::Value":$fullEnd, "::mlir::Value":$end,
    "int64_t":$block, "int64_t":$stages, "::mlir::ValueRange":$inits,
    "::llvm::function_ref<void(::mlir::OpBuilder &, ::mlir::Location, ::mlir::Value, ::mlir::ValueRange)>":$bodyBuilder)>];
  let skipDefaultBuilders = 0;
  let hasCanonicalizeMethod = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    // The parts of `order`, which is absent where all are at their defaults.
    ::mlir::attn::KVOrderAttr::Parts getParts() {
      return ::mlir::attn::KVOrderAttr::getParts(getOrderAttr());
    }
    void setParts(const ::mlir::attn::KVOrderAttr::Parts &parts) {
      setOrderAttr(::mlir::attn::KVOrderAttr::get(getContext(), parts));
    }
    bool getQkAhead() { return getParts().qkAhead; }
    bool getPvBehind() { return getParts().pvBehind; }
    bool getRescore() { return getParts().rescore; }
    bool getAboveWait() { return getParts().aboveWait; }
    ::std::optional<uint64_t> getTurns() { return getParts().turns; }
    ::std::optional<::mlir::attn::KVPhase> getSecond() { return getParts().second; }
    /// The keys of the first block that are multiplied; nothing for all.
    ::std::optional<::llvm::ArrayRef<int64_t>> getFirst();
    void setQkAhead(bool value);
    void setPvBehind(bool value);
    void setRescore(bool value);
    void setAboveWait(bool value);
    void setTurns(uint64_t barrier);
    void setFirst(::llvm::ArrayRef<int64_t> keys);
    void setSecond(::mlir::attn::KVPhase phase);
    /// The key index of the block, the body's first argument.
    ::mlir::Value getKey() { return getBody().getArgument(0); }
    ::mlir::Block::BlockArgListType getIterArgs() {
      return getBody().getArguments().drop_front();
    }
  }];
}

def Attn_TileLoopOp : Attn_Op<"tile_loop", [Attn_ChannelUserOpInterface,
    RecursiveMemoryEffects, AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<LoopLikeOpInterface, ["getRegionIterArgs",
      "getYieldedValuesMutable", "getLoopResults", "getLoopLowerBounds",
      "getLoopUpperBounds", "getLoopSteps"]>,
    DeclareOpInterfaceMethods<RegionBranchOpInterface,
      ["getEntrySuccessorOperands"]>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>,
    RangedTypesMatchWith<"carried values keep their types", "inits", "results",
      "$_self">,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "the loop over a CTA's tiles";
  let description = [{
    Deals the tiles 0 to `count - 1` to the CTAs of the grid along x, or to its
    clusters, whose CTAs then run the same tiles, and runs the body for those
    that this one gets. The body's arguments are the tile's index and the carried
    values. For C of G CTAs or clusters, the tiles are

    - `single`: C alone, if there is such a tile;
    - `strided`: C, C + G, C + 2 G, ...;
    - `snake`: C, 2 G - 1 - C, 2 G + C, 4 G - 1 - C, ...: rounds in alternating
      directions, which balances tiles that are ordered by their work;
    - `dynamic`: C, then G more than what an atomic addition to `counter`, an i32
      in global memory, returns, until that is no tile: each CTA or cluster takes
      the next tile when it is done with its own.
    - `clc`: C, then the numbers of clusters that have not started and that this
      one takes over (`attn.cluster_request`), until there are none. The grid has
      a CTA or cluster for each tile.

    All partitions of a kernel that loop over the same tiles meet them in the same
    order. `dynamic` has each partition that loops be a role of `channel`, whose
    slots are the elements of `ring`: the first role takes tiles from the counter,
    in one thread of the CTA or of the cluster, and hands their indices to the
    others, which all take part in one loop each. Where the first role's partition
    loops in one thread and there is no cluster, that thread knows the index; else
    the partition has one more role, by which its threads read it, and the first
    one signals by `tx`. The counter has to hold 0 when the kernel starts, and
    holds 0 again at its end: `count` additions are made in all, of which the last
    one wraps around. `clc` has roles in the same way, of which the first one makes
    the requests in front of the body, by `tx`, and the elements of `ring` are
    responses. Each partition has a role that reads them.

    Undefined behaviour: `clc` in a launch with fewer CTAs or clusters than tiles.

    Canonical form: a loop over no tiles, other than one with a channel, is its
    initial values.

    Example:

    ```mlir
    func.func @tiles(%count: i32, %x: f32) -> f32 {
      %r = attn.tile_loop %count scheduler snake iter_args(%x : f32) {
      ^bb0(%tile: i32, %carried: f32):
        %next = arith.addf %carried, %carried : f32
        attn.yield %next : f32
      }
      return %r : f32
    }
    ```
  }];
  let arguments = (ins
    Arg<I32, "number of tiles">:$count,
    Described<Attn_TileSchedulerAttr, "which tiles a CTA or cluster gets, and in which order">:$scheduler,
    Arg<Optional<LLVM_PointerInAddressSpace<1>>, "dynamic: the next tile">:$counter,
    Arg<Optional<Attn_ChannelType>, "dynamic, clc: hands indices over">:$channel,
    Arg<Optional<Attn_BufferType>, "dynamic: the indices; clc: responses">:$ring,
    Arg<Variadic<AnyType>, "initial carried values">:$inits);
  let results = (outs Res<Variadic<AnyType>, "carried values after the last tile">:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $count `scheduler` `` $scheduler
    custom<Dealer>($counter, type($counter), $channel, type($channel), $ring,
                   type($ring))
    (`iter_args` `(` $inits^ `:` type($inits) `)`)? attr-dict-with-keyword $body
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$count,
    "::mlir::attn::TileScheduler":$scheduler, "::mlir::ValueRange":$inits,
    "::llvm::function_ref<void(::mlir::OpBuilder &, ::mlir::Location, ::mlir::Value, ::mlir::ValueRange)>":$bodyBuilder)>];
  let hasCanonicalizeMethod = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::attn::ChannelUse getChannelUse() {
      return getChannel() ? ::mlir::attn::ChannelUse::Later : ::mlir::attn::ChannelUse::None;
    }
    ::mlir::Value getUsedChannel() { return getChannel(); }
    /// The tile's index, the body's first argument.
    ::mlir::Value getTile() { return getBody().getArgument(0); }
    ::mlir::Block::BlockArgListType getIterArgs() {
      return getBody().getArguments().drop_front();
    }
  }];
}

def Attn_StageOp : Attn_Op<"stage", [HasParent<"KVLoopOp">]> {
  let summary = "a block's rows, in a slot of a ring";
  let description = [{
    Rows `row` onwards of `source`, loaded into a slot of `ring` (whose depth is
    the loop's number of stages), ready to be read. Several stages of a ring are
    slices of the block, which have its slots in turns: what a slice gave is not
    touched behind the next stage. Rows that do not exist and
    columns beyond the source's are zeros. The source may follow from the key, too,
    as for a tile at another column of a matrix: a view that begins there.
    `attn-expand-pipeline` turns it into
    asynchronous copies that start `stages - 1` blocks, or slices, ahead.

    Example: see `attn.kv_loop`.
  }];
  let arguments = (ins
    Arg<Attn_GlobalType, "rows in global memory", [MemRead]>:$source,
    Arg<I32, "first row">:$row,
    Arg<Attn_BufferType, "the ring", [MemWrite]>:$ring);
  let results = (outs Res<Attn_BufferType, "the slot">:$result);
  let assemblyFormat = [{
    $source `[` $row `]` `,` $ring attr-dict
    `:` type($source) `,` type($ring) `->` type($result)
  }];
  let hasVerifier = 1;
}

} // let opDocGroup

#endif // ATTN_DIALECT_ATTN_IR_OPS_LOOPOPS_TD
