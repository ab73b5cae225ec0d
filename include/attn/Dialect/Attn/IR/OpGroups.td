//===- OpGroups.td - Groups of ops in the reference ---------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_OPGROUPS_TD
#define ATTN_DIALECT_ATTN_IR_OPGROUPS_TD

include "mlir/IR/OpBase.td"

def Attn_ProblemGroup : OpDocGroup {
  let summary = "The problem";
  let description = [{
    Rungs: problem and plan.

    What to compute, in terms of whole tensors. `attn-plan` gives each problem a plan,
    and `attn-expand` puts a launch and a kernel in its place. `attn.yield` ends
    regions at all rungs down to barrier.
  }];
}

def Attn_WorkGroup : OpDocGroup {
  let summary = "Work and places";
  let description = [{
    Rungs: tile; `attn.deal_run`, `attn.plan_work`, `attn.plan_pieces` and `attn.plan_tiles` down to barrier.

    Which tile a CTA computes, where the tile is, which blocks of keys it needs, and
    where its rows begin in memory. All roles of a kernel state the same op and so
    agree. `attn-expand-arithmetic`, the first pass behind the tile rung, writes out
    those that stand for arithmetic.
  }];
}

def Attn_LoopGroup : OpDocGroup {
  let summary = "Loops";
  let description = [{
    Rungs: tile.

    Loops that say what is done for each tile and for each block of keys, and leave to
    passes how rounds are dealt (`attn-lower-tile-loops`) and how loads and products
    overlap (`attn-expand-pipeline`). They become loops of `scf`.
  }];
}

def Attn_TileGroup : OpDocGroup {
  let summary = "Tiles in registers";
  let description = [{
    Rungs: tile and barrier; `attn.apply_mask`, `attn.online_softmax` and what ends a
    softmax at the tile rung only.

    What `arith` and `math` do not say of tiles: `tensor` values whose elements are
    spread over the threads of a partition, as their layout says. `attn-lower-tiles`
    makes each thread's part of them.
  }];
}

def Attn_BufferGroup : OpDocGroup {
  let summary = "Buffers in shared memory";
  let description = [{
    Rungs: tile and barrier.

    Shared memory by name: allocations, views of them, and reads and writes of all
    threads together. `attn-infer-layouts` chooses how elements lie,
    `attn-allocate-shared` where.
  }];
}

def Attn_CopyGroup : OpDocGroup {
  let summary = "Global memory and copies";
  let description = [{
    Rungs: tile and barrier; `attn.cp_async` from `attn-expand-pipeline` on.

    Views of rows in global memory, and the ways in which threads copy them: to
    registers, to shared memory by `cp.async`, and back.
  }];
}

def Attn_TmaGroup : OpDocGroup {
  let summary = "Copies by TMA";
  let description = [{
    Rungs: tile and barrier, sm_90 and later.

    One thread starts a copy of a box that a tensor map describes; an mbarrier counts
    the bytes of a load, a group of stores is awaited.
  }];
}

def Attn_ProductGroup : OpDocGroup {
  let summary = "Products of warps and warpgroups";
  let description = [{
    Rungs: tile and barrier.

    `mma.sync` of a warp, which is there at once, and `wgmma` of a warpgroup, which is
    in flight until it is awaited, with what prepares their operands.
  }];
}

def Attn_TmemGroup : OpDocGroup {
  let summary = "Products and tiles in tensor memory";
  let description = [{
    Rungs: tile and barrier, sm_100a and its family.

    `tcgen05` products that one thread starts, the tensor memory that holds their
    accumulators, and the copies between that and registers.
  }];
}

def Attn_PartitionGroup : OpDocGroup {
  let summary = "Partitions and teams";
  let description = [{
    Rungs: tile and barrier.

    Who runs what: partitions of a CTA's warps with programs of their own, one elected
    thread, the leader of a cluster, and teams, which are warps that each have a tile.
  }];
}

def Attn_ChannelGroup : OpDocGroup {
  let summary = "Channels";
  let description = [{
    Rungs: tile, sm_90 and later.

    How roles hand the slots of a buffer to each other in turn. `attn-check-channels`
    proves that roles agree; `attn-lower-channels` makes mbarriers of them.
  }];
}

def Attn_BarrierGroup : OpDocGroup {
  let summary = "Barriers and fences";
  let description = [{
    Rungs: barrier, and tile in kernels that are written with barriers of their own.

    mbarriers, named barriers, barriers of a cluster, and the fences between the ways in
    which memory is reached. `attn-check-barriers` proves what they order.
  }];
}

#endif // ATTN_DIALECT_ATTN_IR_OPGROUPS_TD
