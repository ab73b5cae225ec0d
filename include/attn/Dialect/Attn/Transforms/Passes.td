//===- Passes.td - Passes on the attn dialect ---------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_PASSES_TD
#define ATTN_DIALECT_ATTN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"
include "attn/Dialect/Attn/Transforms/MaskPasses.td"

def AttnPlanPass : Pass<"attn-plan", "::mlir::ModuleOp"> {
  let summary = "Choose a schedule and its parameters for each attention";
  let description = [{
    Gives each `attn.attention` a `plan` attribute: the schedule and parameters
    that the cost model expects to be fastest on `chip` among those that are
    legal. A plan that is already there is checked and kept. An `attn.combine`
    without one gets the default of the schedule `combine`, the only one for it;
    the options do not concern it.

    Where neither `schedule` nor `set` says what to take, a table of plans that
    were measured comes before the cost model: that of the file `plan-table`,
    then the library's own ([Autotuning](Autotuning.md)). The remark tells the
    table, the estimate and what was measured. A plan of a table that is not
    legal for its problem is an error.

    With `split` the keys of a server's attention (pages or `kv_lengths`), and dense
    ones of at most 16 queries, are cut into runs, which an `attn.combine` merges,
    where estimates ask for it: of a server's batch with even lengths and with
    others. Extents have to be known, and there is no `kv_splits` and no plan yet.

    `partials` is the type of the runs' results where only the launch sees them:
    those of runs that are cut here, and of a problem's own where its
    `attn.combine` is all that reads them. f16 brings scales of rows
    (`out_scales`). `auto` is f16 for the latent form with outputs of 16 bits or less,
    and leaves others f32.

    Example: test/doc/attn-plan.mlir
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"sm_80\"",
           "The target to plan for, a name from the target table.">,
    Option<"board", "board", "std::string", "\"\"",
           "The board to plan for, or native; empty takes the chip's default.">,
    Option<"schedule", "schedule", "std::string", "\"\"",
           "Take this schedule instead of choosing one.">,
    ListOption<"set", "set", "std::string",
           "Fix parameters of the plan, each as name=value.">,
    Option<"planTable", "plan-table", "std::string", "\"\"",
           "A JSON file of measured plans, which are taken for its problems.">,
    Option<"shippedPlans", "shipped-plans", "bool", "true",
           "Take the plans of the library's own table for its problems.">,
    Option<"print", "print", "bool", "false",
           "Print the ten best candidates with their estimates, as a table.">,
    Option<"printAll", "print-all", "bool", "false",
           "Print all candidates with their sums of memory and registers.">,
    Option<"skipPlans", "skip-plans", "unsigned", "0",
           "Leave out so many of the best plans, but never the last one.">,
    Option<"split", "split", "bool", "true",
           "Cut the keys of servers' attentions into runs where it pays.">,
    Option<"partials", "partials", "std::string", "\"auto\"",
           "Element type of the results of runs that the launch merges: f32, f16, bf16, or auto.">
  ];
  let statistics = [Statistic<"numSplit", "split", "Number of attentions whose keys were cut into runs">];
  let dependentDialects = ["::mlir::attn::AttnDialect",
                           "::mlir::memref::MemRefDialect"];
}

def AttnExpandPass : Pass<"attn-expand", "::mlir::ModuleOp"> {
  let summary = "Turn planned attentions into kernels in tile IR";
  let description = [{
    Outlines each planned `attn.attention` into a `gpu.func` in a `gpu.module`
    with an `#attn.target`, whose body the schedule emits in tile IR, and puts a
    `gpu.launch_func` in its place. The kernel carries its launch record in
    `attn.launch`, and the gpu.module its rung in `attn.rung`. An `attn.combine`
    becomes a kernel as well: of partial results that an attention of the same
    function has written to memory of `memref.alloc`, one in the attention's
    gpu.module, the next step of its launch.

    Errors: partial results of which only one is allocated, that are not dense,
    or that something else uses; two kernels of one name in a gpu.module; what
    the schedule refuses.

    Example: test/doc/attn-expand.mlir
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"sm_80\"",
           "The target of the kernels, a name from the target table.">,
    Option<"board", "board", "std::string", "\"\"",
           "The board of the kernels, or native; empty takes the chip's default.">
  ];
  let dependentDialects = [
    "::mlir::attn::AttnDialect", "::mlir::gpu::GPUDialect",
    "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::tensor::TensorDialect", "::mlir::memref::MemRefDialect"];
}

def AttnShardCGAPass : Pass<"attn-shard-cga", "::mlir::ModuleOp"> {
  let summary = "Let the CTAs of a cluster share loads and products";
  let description = [{
    In a kernel whose `known_cluster_size` says that n CTAs are a cluster, the
    loads of a channel's `tx` role that are the same in all CTAs become
    multicasts: each CTA loads a part of the slot's rows for all (`multicast =
    n`), and the tensor map's box shrinks to one n-th of its rows, in the
    kernel's parameter, in its launch record and where the host encodes it. What
    a load leaves out of L2 that way is a remark.

    A load is the same in all CTAs if neither its coordinates nor the loops and
    branches around it depend on which CTA of the cluster runs it
    (`gpu.cluster_block_id`, `gpu.block_id`). Indices of `attn.tile_loop` do not,
    since it deals tiles to clusters; what is loaded from global memory at an
    address that does not depend on it does not either. Loads that differ stay
    with each CTA, with a remark that says why; so do those whose rows are no n
    parts of whole 8 rows, at which a swizzle starts anew, those whose slots are
    handed back by a signal that other CTAs cannot count (`commit`, `tx`), and
    those that share a tensor map with them.

    A load that has `multicast` already is checked and kept.

    On chips that have it, the CTAs of ranks 2n and 2n + 1 make their products
    together where `attn.tcgen05.mma` multiplies rows that differ between them by
    the same columns. Then each CTA holds half of the columns of `b`: its buffer, the
    loads of it and their tensor map are halved, along whichever dimension the
    columns lie; the role that multiplies becomes that of the first CTA
    (`attn.cluster_leader`), and the product `pair`. Loads that more CTAs than the two
    need are multicasts to those of other pairs that hold the same half. Nothing in
    the kernel asks for this: which block a CTA loads is found from how coordinates
    depend on its rank, and is written to buffers as `cga`. So one source is a kernel
    of 1, 2, 4 or 8 CTAs. Blocks, copies, masks and bytes are one table, a remark;
    where products stay with each CTA, a remark names the value that differs, or does
    not.

    Errors: a load with `multicast` that may differ between CTAs; a shared load's
    tensor map that the host does not make with `attn.encode_tensor_map`, or
    that the launch record does not describe; a grid that the cluster does not divide;
    a product with `pair` whose `a` is the same in both CTAs, whose `b` is, or in a
    cluster of another number of CTAs than 2, 4 and 8; a `cga` other than the one found. Errors of
    `attn-lower-channels` in channels are errors here.

    Example: test/doc/attn-shard-cga.mlir
  }];
  let statistics = [
    Statistic<"numShared", "shared",
              "Number of channels whose slots the CTAs of a cluster fill together">,
    Statistic<"numOwn", "own",
              "Number of channels of kernels in clusters whose slots each CTA fills">,
    Statistic<"numPairs", "pairs", "Number of products that pairs of CTAs make together">
  ];
  let dependentDialects = ["::mlir::attn::AttnDialect"];
}

def AttnExpandPipelinePass : Pass<"attn-expand-pipeline", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Expand attn.kv_loop into pipelined loops";
  let description = [{
    Replaces each `attn.kv_loop` by a prologue that starts the first copies, one
    `scf.for` for each phase (`right`, `interior`, `left`, marked with
    `attn.phase`), and a wait for what is left. Blocks run from `end - 1` down
    to `begin`. A phase that cannot exist (no mask with the operand that it is
    for, or equal bounds) gets no loop; an empty one costs a compare.

    `attn.stage` becomes `attn.cp_async` into ring slots. With N >= 2 stages
    copies run N - 1 blocks ahead, and a block needs one barrier. With one stage
    what the block reads before its softmax (K) and what it reads after (V) are
    in separate groups, each copied while the other one is in use: two barriers.
    Barriers are placed later, by `attn-insert-fences`. Only the first block
    executed may lack rows; the others' copies are `in_bounds`.

    The prologue of a loop with `above_wait` goes above an `attn.cp_async.wait`
    before the loop where that is possible.

    `attn.apply_mask` keeps all tests in the phase `right`, the lower bound
    alone in `left`, and vanishes in `interior`, where `attn.map_elements` with `hides`
    vanishes too. `attn.online_softmax` becomes
    reductions, exponentials and arithmetic; one without accumulator takes an
    `attn.rare` without results, on the condition that some factor is not 1, into
    its own rare path. With `whole` each new maximum is rounded up where it is made.

    With `first` the first block of a loop with `qk_ahead` has a product, a softmax
    and a PV of the sizes given, once for each size and under a branch on
    `attn.warpgroup_index` if there are several. The second block stands apart,
    beside that PV, with the masks of the phase `second`, unless it is the one with
    which PV behind starts.

    Errors: rows of a stage that follow from a carried value or an op with
    effects; a ring from inside the loop; a body that is no QK, softmax and PV with
    `qk_ahead`; with `first`, ops between the products that do not take columns one
    by one, or values other than state and probabilities that leave the block.

    Example: test/doc/attn-expand-pipeline.mlir
  }];
  let statistics = [
    Statistic<"numLoops", "loops", "Number of loops over key blocks expanded">,
    Statistic<"numPhases", "phases", "Number of phase loops made">
  ];
  let dependentDialects = ["::mlir::attn::AttnDialect",
    "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def AttnFuseRowMaximaPass : Pass<"attn-fuse-row-maxima", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Take maxima of rows from the loads that bring them";
  let description = [{
    Where the chip's loads from tensor memory can (sm_103a: `tcgen05.ld.red`), an
    `attn.reduce` by `max` or `maximum` of all that an `attn.tmem.load` loads becomes
    the load's second result. Scores that are changed or masked in between keep
    their reduction. Maxima are exact, so that both have the same bits.

    A remark says how many reductions went and how many stayed.

    Example: test/doc/attn-fuse-row-maxima.mlir
  }];
  let statistics = [
    Statistic<"numFused", "fused", "Number of reductions that a load took over">
  ];
}

def AttnSelectEpiloguePass : Pass<"attn-select-epilogue", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Choose how results leave the kernel";
  let description = [{
    Replaces each `attn.store_result` by one of

    - `direct`: `attn.global_store` of the tile as it is;
    - `shuffled`: the same after a conversion to `#attn.runs`, in which each
      lane holds 16 bytes of a row, by exchanges in groups of four lanes;
    - `staged`: `attn.local_store` to a buffer and `attn.copy_out` from there.
      The buffer is `scratch` if it is large enough, else a new one.
    - `tma`: `attn.local_store` to such a buffer and `attn.tma.store` from there
      by one thread of each warpgroup, for the rows of its own warpgroup. It is
      awaited before the next write to the buffer, by the same thread, so that a
      tile's results leave while the next tile is computed.

    What shall be `tma` but has no tensor map is chosen as `auto` is, with a
    remark. `auto` takes `staged` for rows of whole, aligned 16-byte pieces if `scratch`
    is large enough, `shuffled` where a warp has whole 64 bytes of its rows side by
    side, but for elements of 32 bits in runs of the columns, else `direct`. Values
    of rank 1 are always stored directly.

    Errors: a result that cannot be what its `kind` says: `shuffled` for rows of
    other widths, `staged` for a tile of rank 1, `tma` outside of partitions or
    with a map whose boxes are not the tile's rows of one warpgroup.

    Example: test/doc/attn-select-epilogue.mlir
  }];
  let options = [
    Option<"kind", "kind", "std::string", "\"auto\"",
           "Take this kind (direct, shuffled, staged, tma) wherever the op says auto.">,
    Option<"printMap", "print-map", "bool", "false",
           "Print each result's way to global memory as a remark.">
  ];
  let statistics = [
    Statistic<"numDirect", "direct", "Number of results stored directly">,
    Statistic<"numShuffled", "shuffled", "Number of results stored after exchanges between lanes">,
    Statistic<"numStaged", "staged", "Number of results staged through shared memory">,
    Statistic<"numTma", "tma", "Number of results stored by TMA">
  ];
  let dependentDialects = ["::mlir::attn::AttnDialect"];
}

def AttnInferLayoutsPass : Pass<"attn-infer-layouts", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Resolve #attn.auto from the ops that fix layouts";
  let description = [{
    Ops fix the layouts of their tiles or relate them to each other
    (`LayoutOpInterface`): a matrix instruction fixes those of its operands and of
    its accumulator, a reduction says that its rows are those of its source. A
    worklist carries what is fixed along these relations, defs and uses until nothing
    changes; where two layouts meet that differ, the cheaper place gets an
    `attn.convert_layout`. Buffers take the widest swizzle that divides their rows.

    A conversion that moves data between threads is a remark, with `assert-trivial`
    an error, which names both layouts and where they come from.

    Errors: a tile or a buffer that cannot have the layout that it would get; a tile
    whose layout nothing fixes; two layouts between which there is no conversion.

    Example: test/doc/attn-infer-layouts.mlir
  }];
  let options = [
    Option<"assertTrivial", "assert-trivial", "bool", "false",
           "Make a conversion that moves data between threads an error.">
  ];
  let dependentDialects = ["::mlir::attn::AttnDialect"];
}

def AttnMaterializeScratchPass : Pass<"attn-materialize-scratch", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Give conversions and reductions their shared memory";
  let description = [{
    Rewrites each layout conversion that crosses warps into a store to an
    `attn.alloc` of its own and a load in the other layout; conversions inside a
    warp stay. Afterwards no pass creates shared memory: the kernel is marked
    `attn.shared_closed`, and `attn-insert-fences` refuses buffers without an
    offset in a kernel whose shared memory is laid out.

    A full reduction of rows of which two warps have halves of the columns
    (`#attn.tmem_regs` with warps [2, 2]) passes through memory as well: each warp
    stores what it has of a row, and reads both. One `attn.alloc` serves all
    reductions of a partition. With other layouts such a reduction is an error.

    Example: test/doc/attn-materialize-scratch.mlir
  }];
  let statistics = [
    Statistic<"numConversions", "conversions",
              "Number of conversions through shared memory">
  ];
  let dependentDialects = ["::mlir::attn::AttnDialect"];
}

def AttnExpandArithmeticPass : Pass<"attn-expand-arithmetic", "::mlir::ModuleOp"> {
  let summary = "Write out the arithmetic that ops stand for";
  let description = [{
    Puts in the place of each op with `ArithmeticOpInterface`, such as
    `attn.tile_place`, `attn.key_blocks` and `attn.softmax_lse`, the arithmetic that it
    stands for. It is the first pass after the tile rung: those that follow see
    arithmetic alone. Roles whose ops are the same get the same arithmetic, of which
    `cse` leaves one copy.

    Example: test/doc/attn-expand-arithmetic.mlir
  }];
  let statistics = [
    Statistic<"numOps", "ops", "Number of ops that were written out">
  ];
  let dependentDialects = ["::mlir::attn::AttnDialect",
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::LLVM::LLVMDialect"];
}

def AttnLowerTileLoopsPass : Pass<"attn-lower-tile-loops", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Turn loops over tiles into loops over rounds";
  let description = [{
    `attn.tile_loop` becomes an `scf.if` (`single`) or an `scf.for` over the
    tiles (`strided`) or rounds (`snake`) of the CTA, or of its cluster if the
    kernel's `known_cluster_size` says that it has one.

    With `dynamic` it becomes an `scf.while` that starts with the tile of the CTA's
    or cluster's rank. Behind the body the channel's first role, in one thread and,
    with clusters, in one CTA (`attn.cluster_leader`), takes the next tile from the
    counter, which therefore is taken when the loads of the one before have been
    started, and puts its index into the ring, by `attn.scalar_store` or, if it
    signals by tx, by `attn.scalar_send`. The other roles find it there.

    With `clc` the same loop has a request in front of the body (`attn.cluster_request`)
    in place of the counter, and behind it each partition reads the response
    (`attn.cluster_response`), with an `attn.fence.proxy_async` in front of handing it
    back. A loop ends with the first response that gives no cluster, and a request comes
    in front of a tile only, so none follows a denial.

    Errors: `dynamic` or `clc` outside of the partition of a role of its channel, or with two
    roles that read in one partition; where the first role's partition loops in all
    of its threads or in a cluster, none that reads; a first role that signals by
    arrive in a cluster, or by tx without one, where hardware has no `st.async`;
    with `clc`, one that signals by arrive, or a partition without a role that reads.

    Example: test/doc/attn-lower-tile-loops.mlir
  }];
  let statistics = [
    Statistic<"numLoops", "loops", "Number of loops over tiles lowered">
  ];
  let dependentDialects = ["::mlir::attn::AttnDialect",
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::scf::SCFDialect"];
}

def AttnLowerChannelsPass : Pass<"attn-lower-channels", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Turn channels into mbarriers";
  let description = [{
    A channel of `depth` slots becomes one array of `depth` mbarriers for each
    role, or `depth` for each of the role's parts, named `channel.role`. A role's
    release signals its own array; an acquire waits for the array of the role
    before it.

    - Counts: `arrive` counts the warps of each of the role's partitions, or 1
      where its releases stand in `attn.elect` (the warpgroups with
      `each_warpgroup`); `tx` and `commit` count 1 for each.
    - Bytes: an acquire of a `tx` role announces the bytes of all loads with its
      token (`attn.mbarrier.expect_tx`); its release is nothing. The release of a
      `commit` role is an `attn.tcgen05.commit`.
    - Phases: a cursor becomes an i32, the slot in bits 0 to 15 and the parity
      to wait for in bit 16; a token becomes the cursor of its acquire. The
      first role starts with parity 1, which an unused mbarrier passes.

    The mbarriers are initialised by one thread before the
    `attn.warp_specialize`, with a barrier behind. A channel of which nobody
    acquires a slot gets none, with a remark.

    If the loads of a `tx` role are `multicast` to n CTAs, which the kernel's
    `known_cluster_size` has to say, a slot is free when it is in all of them:
    the releases of the role before arrive in n CTAs, and n times as many are
    counted. The barrier before the partitions and one at the end of the kernel,
    which keeps each CTA there while others signal to it, are the cluster's.

    Errors: a channel made elsewhere; a role with a partition that is none, or
    without a release in one; acquires and releases outside of the role's
    partitions; cursors and tokens of another channel, role or part; parts that
    are not split or joined as the role asks; a load with the token of an
    `arrive` role; paths on which a token's loads differ in bytes; releases
    that differ in arrivals; loads of a role that differ in `multicast`; a release
    of a `commit` role in another `attn.elect` than a product that uses the slot,
    or in front of it.

    Example: test/doc/attn-lower-channels.mlir
  }];
  let statistics = [
    Statistic<"numChannels", "channels", "Number of channels lowered">,
    Statistic<"numBarriers", "barriers", "Number of mbarriers made">
  ];
  let dependentDialects = ["::mlir::attn::AttnDialect",
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect"];
}

def AttnVerifyTokensPass : Pass<"attn-verify-tokens", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Check that cursors, tokens and accumulators are used once";
  let description = [{
    On each path from where it is made

    - a token is released once, and used by no load afterwards;
    - an accumulator in flight is used once: by a wait, or as the accumulator of
      another `attn.wgmma`;
    - a position is acquired once and advanced from once, in any order; what is
      advanced from has to be acquired.

    Passing a value on to a loop, a branch's result or a next iteration passes on
    what has not been done with it yet. Not seen: positions acquired in the wrong
    order. A loop uses no token, cursor or accumulator that it does not
    make or carry. SSA alone does not keep this: canonicalisation makes selects
    of tokens, which are errors here.

    The pipelines run it after each pass on tiles.

    Example: test/doc/attn-verify-tokens.mlir
  }];
}

def AttnAllocateSharedPass : Pass<"attn-allocate-shared", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Give each buffer its offset in shared memory";
  let description = [{
    Computes when each `attn.alloc` buffer is live, through views, loops and
    branches, and gives it an `offset` so that buffers that are live at the same
    time share no bytes: first fit, the largest buffer first, at the alignment
    that its swizzle needs (at least 128 bytes). An asynchronous copy keeps its
    buffer live until it is awaited; between its last read and a write of the
    whole buffer a buffer is dead. Offsets that are already there are kept and
    checked. The kernel gets `attn.shared_bytes`.

    All buffers of one `overlay` group get the same offset; it is an error if
    two of them are live at the same time.

    Partitions run at the same time: a buffer that one of them touches is live
    over the whole `attn.warp_specialize`. Mbarriers live to the end of the
    kernel and go behind the buffers, 8 bytes each.

    A kernel that needs more than a CTA of the target can have is an error that
    shows the sum.

    Example: test/doc/attn-allocate-shared.mlir
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"sm_80\"",
           "The target whose limit holds for modules without an #attn.target.">,
    Option<"printMap", "print-map", "bool", "false",
           "Print the map of shared memory as a remark for each kernel.">
  ];
  let statistics = [
    Statistic<"numBuffers", "buffers", "Number of buffers placed">
  ];
  let dependentDialects = ["::mlir::attn::AttnDialect"];
}

def AttnAllocateTmemPass : Pass<"attn-allocate-tmem", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Give each buffer its columns of tensor memory";
  let description = [{
    Gives each `attn.tmem_alloc` a `column`: first fit, the widest buffer first.
    Buffers share columns only where a `gpu.barrier` at the kernel's top level stands
    behind the last access of the one, which is a load or a store, and before the
    first of the other: nothing else orders accesses through different buffers.
    Partitions run at the same time: what they touch is live over the whole
    `attn.warp_specialize`. Columns that are already there are kept and checked.

    The kernel takes the least power of two of columns from 32 on that holds them,
    by an `attn.tmem.reserve` in front of the first allocation, with four bytes of
    shared memory for the address, and gives them back by an `attn.tmem.dealloc` at
    its end. So the pass comes before `attn-allocate-shared`.

    A kernel that needs more columns than the target has is an error that shows the
    sum. The map is a remark, with the columns that are reserved and not used.

    Example: test/doc/attn-allocate-tmem.mlir
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"sm_100a\"",
           "The target whose limit holds for modules without an #attn.target.">,
    Option<"printMap", "print-map", "bool", "false",
           "Print the map of tensor memory as a remark for each kernel.">
  ];
  let statistics = [
    Statistic<"numBuffers", "buffers", "Number of buffers placed">
  ];
  let dependentDialects = ["::mlir::attn::AttnDialect"];
}

def AttnInsertFencesPass : Pass<"attn-insert-fences", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Insert the barriers that shared memory needs";
  let description = [{
    Finds accesses to the same bytes of shared memory by different threads, at
    least one a write, without a barrier between them, through loops and
    branches, and inserts `gpu.barrier` until there are none. Buffers that
    overlap in memory count as the same bytes; slots of a ring are told apart by
    constant indices, by `distance`, or by how their indices follow from a loop's
    counter or a carried value (`attn.slot`).

    Each barrier goes to the latest place that separates a pair, loops before
    what enters them, and none of them can be left out. Barriers that are
    already there are counted in.

    Reading or writing a buffer with an `attn.cp_async` on its way that no
    `attn.cp_async.wait` has covered is an error: no barrier helps. So is writing
    what an `attn.wgmma` or an `attn.tma.store` still reads.

    Partitions of an `attn.warp_specialize` are ordered by channels, and what TMA
    loads by mbarriers; the pass looks at each partition alone and inserts
    `attn.named_barrier` of its threads there, with an id from 1 to 15 of its
    own; where each warpgroup touches only its own rows (`attn.wgmma`'s first
    operand, `attn.local_store` of an accumulator's rows, `attn.tma.store` with
    `warpgroups`), each warpgroup has a barrier of its own (`each_warpgroup`), so
    that they do not wait for each other. Votes of a warpgroup (`attn.rare` with
    `each_warpgroup`) get the ids of such barriers. A `gpu.barrier` in a partition
    is an error. The whole op counts as one access of all that it touches to what
    comes before and after it.

    Where TMA or wgmma touches bytes that were accessed otherwise,
    `attn.fence.proxy_async` goes before the first barrier, arrival or
    asynchronous access behind the other access.

    Loads and stores of tensor memory get what orders them with other threads:
    `attn.tmem.store_wait` and `attn.tcgen05.fence before` in front of a signal that
    they come before, and `attn.tcgen05.fence after` in front of the first access
    behind a wait. A signal, or a store to the same columns, in front of the
    `attn.tmem.wait` of a load is an error.

    A partition by itself does not show what the others' signals order. With `leave-out-proved`
    a barrier in a partition or an `attn.tma.wait` without which the kernel is proved too
    (attn-check-barriers) is taken out, which a remark says, but for barriers that are executed
    for each block. Where only threads of one warp need the barrier, `nvvm.bar.warp.sync` takes
    its place. One that stays because a proof would take too many steps has a remark too.

    This ends the barrier rung: a gpu.module that says to be at the tile rung
    (`attn.rung`) says to be at this one then.

    Example: test/doc/attn-insert-fences.mlir
  }];
  let options = [
    Option<"leaveOutProved", "leave-out-proved", "bool", "false",
      "Take out barriers and waits for stores that the other partitions' signals make superfluous.">
  ];
  let statistics = [
    Statistic<"numBarriers", "barriers", "Number of barriers inserted">,
    Statistic<"numSuperfluous", "superfluous", "Number of barriers and waits taken out by proof">,
    Statistic<"numProxyFences", "proxy-fences", "Number of proxy fences inserted">,
    Statistic<"numStoreWaits", "store-waits", "Number of waits for stores to tensor memory inserted">,
    Statistic<"numTensorFences", "tensor-fences", "Number of fences of tensor memory inserted">
  ];
  let dependentDialects = ["::mlir::attn::AttnDialect",
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::NVVM::NVVMDialect"];
}

def AttnLowerTilesPass : Pass<"attn-lower-tiles", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Turn tiles into the scalars of one thread";
  let description = [{
    Each register tile becomes as many scalars as a thread holds of it; copies,
    matrix instructions, barriers and reductions become instructions of one
    thread. Partitions become blocks to which a `cf.switch` over the warp leads;
    each warpgroup sets its registers unless they are those that the kernel
    starts with: 65536 divided by its threads and `nvvm.minctasm`, rounded down
    to 8, or `nvvm.maxnreg`. A warpgroup that several partitions share has a
    second switch behind that. Tensor maps become pointers to parameters.

    Signals between CTAs of a cluster get the scope of the CTA, and what they
    order rests on what hardware was seen to do
    ([A4](Simulator.md#profiles)). `cluster-scope` gives them the one that the PTX
    manual asks for, for which ptxas 13.0 puts a memory barrier of the whole GPU
    in front of each arrival and invalidates L1 behind each wait.

    Example: test/doc/attn-lower-tiles.mlir
  }];
  let options = [
    Option<"clusterScope", "cluster-scope", "bool", "false",
           "Name the cluster as the scope of signals between its CTAs.">
  ];
  let dependentDialects = ["::mlir::attn::AttnDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::scf::SCFDialect",
    "::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect"];
}

include "attn/Dialect/Attn/Transforms/CheckPasses.td"
include "attn/Dialect/Attn/Transforms/InstrumentPasses.td"
include "attn/Dialect/Attn/Transforms/ThreadPasses.td"
include "attn/Dialect/Attn/Transforms/InspectionPasses.td"

#endif // ATTN_DIALECT_ATTN_TRANSFORMS_PASSES_TD
