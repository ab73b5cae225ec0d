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

    All partitions of a kernel that loop over the same tiles meet them in the same
    order. `dynamic` has each partition that loops be a role of `channel`, whose
    slots are the elements of `ring`: the first role takes tiles from the counter,
    in one thread of the CTA or of the cluster, and hands their indices to the
    others, which all take part in one loop each. Where the first role's partition
    loops in one thread and there is no cluster, that thread knows the index; else
    the partition has one more role, by which its threads read it, and the first
    one signals by `tx`. The counter has to hold 0 when the kernel starts, and
    holds 0 again at its end: `count` additions are made in all, of which the last
    one wraps around.

    Canonical form: a loop over no tiles, other than a `dynamic` one, is its
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
    Arg<Optional<Attn_ChannelType>, "dynamic: hands indices over">:$channel,
    Arg<Optional<Attn_BufferType>, "dynamic: the indices">:$ring,
    Arg<Variadic<AnyType>, "initial carried values">:$inits);
  let results = (outs Res<Variadic<AnyType>, "carried values after the last tile">:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $count `scheduler` `` $scheduler
    (`counter` $counter^ `channel` $channel `ring` $ring
     `:` type($counter) `,` type($channel) `,` type($ring))?
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

def Attn_IssueLoopOp : Attn_Op<"issue_loop", [Attn_ChannelUserOpInterface,
    RecursiveMemoryEffects, AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "the loop that issues statements in an order";
  let description = [{
    Runs statements, one region each, in steps 0, 1, 2, ...: in step t a statement
    runs its iteration t - `skew`, if it has that one, each behind the one before.
    `of` says by the number of an operand how many iterations it has. So a product may trail another one by a step,
    and statements of two tiles whose numbers of blocks differ share one loop. A
    thread that starts asynchronous work runs it.

    Statements work on slots of channels, which the loop acquires and releases as
    `role`. A slot is acquired in each step in which a statement that uses it runs,
    in front of the first of them, and released behind the last: statements of one
    step share it. Slots that one channel serves are different positions of it, in
    the order of their acquires; `slots` says by the number of an operand which
    channel serves which slot. The operands behind `from` are the channels' cursors
    at first, the results those behind the last step.

    A statement's arguments are its iteration and, for each slot that it uses, the
    slot's index and token. The token is for what is started with it (`attn.tma.load`):
    the loop releases it.

    A statement that uses a `part` of a slot waits for that part alone, of those in
    which the role before hands the slot on; one that uses the whole slot waits for
    all of them. The slot is released as a whole.

    With `holding` a slot is released one step later: behind the statement that
    `behind` names, which stands in front of all that use the slot, that of the step
    before is, in the first step the one whose token is given. The last result is the
    token of the slot that is held behind the last step. All statements of such a loop
    run in the same steps.

    With `rising` the numbers of trips do not decrease from one operand to the next.

    With `left` the loop is one of several that stand behind each other, and statements
    of one run in front of what is left of the loop before: of each statement of skew 1
    the last iteration is left to the next loop, which has it in step 0. `left(%m)` are
    the trips of the loop before, 0 if nothing is left of it; a loop without trips runs
    what is left and no more. `values(%x) left(%y)` are what statements know of their
    iterations, of this loop and of the one before: arguments behind those for the slots.
    Skews are 0 or 1.

    A slot that a statement `ends` is acquired and released with its last iteration
    alone, behind it, so that whoever waits for it learns that all of them are there.

    In such a loop no token in front of it is given for what is held: the first step
    acquires the slot, and the last one releases it. A slot that is `spanning` from one
    statement to another, both of skew 0, is acquired in front of the first iteration of
    the one and released behind the last iteration of the other; if that is in step 0,
    behind all of the step. Loops that hold or span something have one number of trips.

    `attn-expand-pipeline` makes a loop of each run of steps in which the same
    statements run, so that no step asks which ones do.

    Undefined behaviour: with `rising` trips that decrease; negative trips; `left` of
    other trips or values than those of the loop before.

    Example:

    ```mlir
    func.func @order(%kv: !attn.channel<3>, %t: !attn.channel<1>, %c: !attn.cursor, %d: !attn.cursor, %n: i32) {
      // Step 0 runs qk, each further one pv of the block before and qk, the last one pv.
      %r:2 = attn.issue_loop as "mma" trips(%n) slots ["v" = 0, "k" = 0, "t" = 1] of %kv, %t from %c, %d : !attn.channel<3>, !attn.channel<1>
      statement "pv" of 0 skew 1 uses ["v", "t"] {
      ^bb0(%i: i32, %v: i32, %v_token: !attn.token, %s: i32, %s_token: !attn.token):
      }
      statement "qk" of 0 skew 0 uses ["k", "t"] {
      ^bb0(%i: i32, %k: i32, %k_token: !attn.token, %s: i32, %s_token: !attn.token):
      }
      return
    }

    func.func @held(%kv: !attn.channel<4>, %c: !attn.cursor, %first: !attn.token, %n: i32) -> !attn.token {
      // A step hands the keys of the step before back behind pv.
      %r:2 = attn.issue_loop as "mma" trips(%n) slots ["v" = 0, "k" = 0] of %kv from %c holding "k" behind "pv" = %first : !attn.channel<4>
      statement "pv" of 0 skew 0 uses ["v"] {
      ^bb0(%i: i32, %v: i32, %v_token: !attn.token):
      }
      statement "qk" of 0 skew 0 uses ["k"] {
      ^bb0(%i: i32, %k: i32, %k_token: !attn.token):
      }
      return %r#1 : !attn.token
    }

    // The first qk of a tile stands behind the last pv of the tile before, which
    // says that its results are there.
    func.func @tiles(%kv: !attn.channel<3>, %t: !attn.channel<1>, %o: !attn.channel<1>, %q: !attn.channel<1>, %c: !attn.cursor, %d: !attn.cursor, %e: !attn.cursor, %f: !attn.cursor, %n: i32, %m: i32, %x: i32, %y: i32) {
      %r:4 = attn.issue_loop as "mma" trips(%n) left(%m) values(%x) left(%y) : i32 slots ["v" = 0, "k" = 0, "t" = 1, "o" = 2, "q" = 3] of %kv, %t, %o, %q from %c, %d, %e, %f spanning "q" from "qk" to "qk" : !attn.channel<3>, !attn.channel<1>, !attn.channel<1>, !attn.channel<1>
      statement "pv" of 0 skew 1 uses ["v", "t"] ends ["o"] {
      ^bb0(%i: i32, %v: i32, %v_token: !attn.token, %s: i32, %s_token: !attn.token, %first: i32):
      }
      statement "qk" of 0 skew 0 uses ["k", "t"] {
      ^bb0(%i: i32, %k: i32, %k_token: !attn.token, %s: i32, %s_token: !attn.token, %first: i32):
      }
      return
    }
    ```
  }];
  let arguments = (ins
    Described<StrAttr, "who acquires and releases, as the channels name it">:$role,
    Arg<Variadic<I32>, "numbers of iterations">:$trips,
    Arg<Variadic<I32>, "those of the loop before, of which the last ones are left">:$left_trips,
    Arg<Variadic<AnyType>, "what statements know of their iterations">:$values,
    Arg<Variadic<AnyType>, "the same of those that are left">:$left_values,
    Arg<Variadic<Attn_ChannelType>, "what serves the slots">:$channels,
    Arg<Variadic<Attn_CursorType>, "the role's position in each channel">:$cursors,
    Arg<Optional<Attn_TokenType>, "of the slot that the first step releases">:$held,
    Described<StrArrayAttr, "names of the slots">:$slots,
    Described<DenseI64ArrayAttr, "the channel of each slot, by its number">:$slot_channels,
    Described<StrArrayAttr, "of the statements, in the order of a step">:$names,
    Described<DenseI64ArrayAttr, "the operand that says how many iterations each statement has, by its number">:$counts,
    Described<DenseI64ArrayAttr, "by how many steps each statement trails">:$skews,
    Described<ArrayAttr, "the names of the slots that each statement uses">:$uses,
    Described<OptionalAttr<ArrayAttr>, "the part of each of these slots, empty for all of it">:$parts,
    Described<OptionalAttr<ArrayAttr>, "the names of the slots that each statement ends">:$ends,
    Described<UnitAttr, "trips do not decrease from one operand to the next">:$rising,
    Described<OptionalAttr<StrAttr>, "the slot that is released a step later">:$holding,
    Described<OptionalAttr<StrAttr>, "the statement behind which it is released">:$behind,
    Described<OptionalAttr<StrArrayAttr>, "the slots that span iterations">:$spanning,
    Described<OptionalAttr<StrArrayAttr>, "in front of whose first iteration each of them is acquired">:$opening,
    Described<OptionalAttr<StrArrayAttr>, "behind whose last iteration each of them is released">:$closing);
  let results = (outs Res<Variadic<AnyTypeOf<[Attn_CursorType, Attn_TokenType]>>,
    "positions behind the last step, and the token of the slot that is still held">:$results);
  let regions = (region VariadicRegion<SizedRegion<1>>:$bodies);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::attn::ChannelUse getChannelUse() { return ::mlir::attn::ChannelUse::Later; }
    ::mlir::Value getUsedChannel() { return getChannels().empty() ? ::mlir::Value() : getChannels().front(); }
    ::llvm::StringRef getUsedRole() { return getRole(); }
    /// The numbers of the slots that a statement uses, in the order of the
    /// arguments of its region.
    ::llvm::SmallVector<unsigned> getUsedSlots(unsigned statement);
    /// The part of each of them, empty for the whole slot.
    ::llvm::SmallVector<::llvm::StringRef> getUsedParts(unsigned statement);
    /// The numbers of the slots that a statement ends.
    ::llvm::SmallVector<unsigned> getEndedSlots(unsigned statement);
    /// True if last iterations are left to the next loop.
    bool leavesLast() { return !getLeftTrips().empty(); }
    /// A slot that spans the iterations from one statement to another, by their
    /// numbers.
    struct Span { unsigned slot, opening, closing; };
    ::llvm::SmallVector<Span> getSpans();
    /// The numbers of a slot and of a statement; none if the loop holds none.
    std::optional<unsigned> getHeldSlot();
    std::optional<unsigned> getReleasingStatement();
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
