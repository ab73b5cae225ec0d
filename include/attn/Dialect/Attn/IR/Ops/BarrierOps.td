//===- BarrierOps.td - mbarriers and fences -----------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_OPS_BARRIEROPS_TD
#define ATTN_DIALECT_ATTN_IR_OPS_BARRIEROPS_TD

include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "attn/Dialect/Attn/IR/AttnTypes.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "attn/Dialect/Attn/IR/OpGroups.td"
include "attn/Dialect/Attn/IR/Ops/CopyOps.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Dialect/LLVMIR/LLVMOpBase.td"

/// The state of the mbarriers of a CTA.
def Attn_BarrierState : Resource<"::mlir::attn::BarrierState">;

let opDocGroup = Attn_BarrierGroup in {

def Attn_MBarrierAllocOp : Attn_Op<"mbarrier.alloc", [AttnRequiresSM<80>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "allocates mbarriers in shared memory";
  let description = [{
    Memory for an array of mbarriers, which live to the end of the kernel.
    `attn-allocate-shared` sets `offset`, in bytes from the start of dynamic
    shared memory.

    Undefined behaviour: any use before `attn.mbarrier.init`.

    Example:

    ```mlir
    func.func @alloc() {
      %full = attn.mbarrier.alloc {name = "k.full"} : !attn.mbarriers<2>
      return
    }
    ```
  }];
  let arguments = (ins Described<OptionalAttr<StrAttr>, "what they are for, in messages and printed IR">:$name, Described<OptionalAttr<I64Attr>, "bytes from the start of dynamic shared memory, set by attn-allocate-shared">:$offset,
    Described<OptionalAttr<Attn_CGAAttr>, "which CTAs of a cluster have barriers of their own, and which have one together">:$cga);
  let results = (outs Res<Attn_MBarriersType, "the barriers", [MemAlloc]>:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Attn_MBarrierInitOp : Attn_Op<"mbarrier.init", [AttnRequiresSM<80>,
    MemoryEffects<[MemWrite<Attn_BarrierState>]>]> {
  let summary = "initialises all mbarriers of an array";
  let description = [{
    Phase 0 begins; each phase is complete after `count` arrivals and all bytes
    that were announced for it (PTX ISA, mbarrier.init). One thread of the CTA
    executes it. Other threads and the async proxy see it after
    `attn.mbarrier.fence_init` and a barrier.

    Undefined behaviour: initialising a barrier that is in use.

    Example:

    ```mlir
    func.func @init(%full: !attn.mbarriers<2>) {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<2>
      attn.mbarrier.fence_init
      gpu.barrier
      return
    }
    ```
  }];
  let arguments = (ins Arg<Attn_MBarriersType, "the barriers">:$barriers, Described<I64Attr, "arrivals of a phase, 1 to 2^20 - 1">:$count);
  let assemblyFormat = "$barriers attr-dict `:` type($barriers)";
  let hasVerifier = 1;
}

def Attn_MBarrierFenceInitOp : Attn_Op<"mbarrier.fence_init", [AttnRequiresSM<80>,
    MemoryEffects<[MemRead<Attn_BarrierState>, MemWrite<Attn_BarrierState>]>]> {
  let summary = "publishes initialised mbarriers to the cluster";
  let description = [{
    Orders this thread's initialisations before what follows it in the cluster,
    the async proxy included (PTX ISA, fence.mbarrier_init.release.cluster and
    fence.proxy.async). Chips before sm_90 have neither clusters nor that proxy,
    and no instruction: the barrier behind it orders what the CTA does.

    Example: see `attn.mbarrier.init`.
  }];
  let assemblyFormat = "attr-dict";
}

def Attn_MBarrierInvalOp : Attn_Op<"mbarrier.inval", [AttnRequiresSM<80>,
    MemoryEffects<[MemWrite<Attn_BarrierState>]>]> {
  let summary = "ends the use of all mbarriers of an array";
  let description = [{
    The barriers are none any more, and their bytes may be used for something
    else, or be initialised anew (PTX ISA, mbarrier.inval). One thread of the CTA
    executes it. Kernels whose barriers live to their end need none.

    Undefined behaviour: a barrier that is not initialised; one that another
    thread still waits at, or that a signal may still come to: an arrival or the
    bytes of a copy, from other CTAs of the cluster too.

    Example:

    ```mlir
    func.func @inval(%full: !attn.mbarriers<2>) {
      attn.cluster_barrier
      attn.elect {
        attn.mbarrier.inval %full : !attn.mbarriers<2>
      }
      return
    }
    ```
  }];
  let arguments = (ins Arg<Attn_MBarriersType, "the barriers">:$barriers);
  let assemblyFormat = "$barriers attr-dict `:` type($barriers)";
}

def Attn_MBarrierExpectTxOp : Attn_Op<"mbarrier.expect_tx", [AttnRequiresSM<90>,
    MemoryEffects<[MemWrite<Attn_BarrierState>]>]> {
  let summary = "arrives and announces bytes";
  let description = [{
    The executing thread arrives at barrier `index` and announces that `bytes`
    more bytes will be copied in this phase (PTX ISA,
    mbarrier.arrive.expect_tx). With `ctas = n` it does so at that barrier in each
    of the n CTAs of its cluster. With `leader` it does so in the cluster's first CTA
    alone, for the bytes of all CTAs; in others nothing happens. With `rank_bits = b`
    these are the CTAs whose ranks agree with that of this CTA in all bits but those
    of b, and the first one of them. With 0 bytes it arrives only.

    Undefined behaviour: an index outside the array; more arrivals than the
    phase has; 2^20 or more bytes pending.

    Example:

    ```mlir
    func.func @expect(%full: !attn.mbarriers<2>, %i: i32) {
      attn.mbarrier.expect_tx %full[%i] {bytes = 32768} : !attn.mbarriers<2>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_MBarriersType, "the barriers">:$barriers,
    Arg<I32, "which one">:$index,
    Described<I64Attr, "announced for this phase, from 0 on">:$bytes,
    Described<OptionalAttr<I64Attr>, "CTAs of the cluster at whose barriers it happens, 2 to 16; without it this one alone">:$ctas,
    Described<UnitAttr, "in the cluster's first CTA only">:$leader,
    Described<OptionalAttr<I64Attr>, "bits of the CTAs' ranks that 'ctas' or 'leader' are about, a number from 1 to 7; all without it">:$rank_bits);
  let assemblyFormat = "$barriers `[` $index `]` attr-dict `:` type($barriers)";
  let hasVerifier = 1;
}

def Attn_MBarrierArriveOp : Attn_Op<"mbarrier.arrive", [DeclareOpInterfaceMethods<Attn_ArchOpInterface>,
    MemoryEffects<[MemRead<Attn_BarrierState>, MemWrite<Attn_BarrierState>]>]> {
  let summary = "one lane of each warp arrives";
  let description = [{
    One lane of each executing warp arrives at barrier `index`, with release
    semantics, after all lanes of the warp came here (PTX ISA, mbarrier.arrive).
    With `ctas = n` it arrives at that barrier in each of the n CTAs of its
    cluster, with `leader` in the cluster's first CTA only. With `rank_bits = b`
    these are the CTAs whose ranks agree with that of this CTA in all bits but those
    of b, and the first one of them.

    Undefined behaviour: an index outside the array; more arrivals than the
    phase has.

    Example:

    ```mlir
    func.func @arrive(%empty: !attn.mbarriers<2>, %i: i32) {
      attn.mbarrier.arrive %empty[%i] : !attn.mbarriers<2>
      // At the leader of each pair of CTAs.
      attn.mbarrier.arrive %empty[%i] {leader, rank_bits = 1} : !attn.mbarriers<2>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_MBarriersType, "the barriers">:$barriers,
    Arg<I32, "which one">:$index,
    Described<OptionalAttr<I64Attr>, "CTAs of the cluster at whose barriers it arrives, 2 to 16; without it this one alone">:$ctas,
    Described<UnitAttr, "at the barrier of the cluster's first CTA">:$leader,
    Described<OptionalAttr<I64Attr>, "bits of the CTAs' ranks that 'ctas' or 'leader' are about, a number from 1 to 7; all without it">:$rank_bits);
  let assemblyFormat = "$barriers `[` $index `]` attr-dict `:` type($barriers)";
  let hasVerifier = 1;
}

def Attn_CpAsyncArriveOp : Attn_Op<"cp_async.arrive", [AttnRequiresSM<80>,
    DeclareOpInterfaceMethods<Attn_CommitOpInterface, ["countCommitArrivals"]>,
    Attn_TakesWholeWarps,
    MemoryEffects<[MemRead<Attn_AsyncGroups>, MemWrite<Attn_AsyncGroups>,
                   MemRead<Attn_BarrierState>, MemWrite<Attn_BarrierState>]>]> {
  let summary = "arrives when each thread's copies are complete";
  let description = [{
    Barrier `index` gets an arrival of each executing thread when all copies that
    this thread has started before are complete, in groups or not (PTX ISA,
    cp.async.mbarrier.arrive.noinc). No thread waits. Whoever waits for the phase
    sees the copies, and nothing else that the threads did.

    Undefined behaviour: an index outside the array; more arrivals than the
    phase has.

    Example:

    ```mlir
    func.func @hand_over(%g: !attn.global<?x128xf16>, %row: i32, %b: !attn.buffer<64x128xf16, #attn.auto, shared>, %full: !attn.mbarriers<2>, %i: i32) {
      attn.cp_async %g[%row], %b : !attn.global<?x128xf16>, !attn.buffer<64x128xf16, #attn.auto, shared>
      attn.cp_async.arrive %full[%i] : !attn.mbarriers<2>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_MBarriersType, "the barriers">:$barriers,
    Arg<I32, "which one">:$index);
  let assemblyFormat = "$barriers `[` $index `]` attr-dict `:` type($barriers)";
}

def Attn_MBarrierWaitOp : Attn_Op<"mbarrier.wait", [DeclareOpInterfaceMethods<Attn_ArchOpInterface>,
    MemoryEffects<[MemRead<Attn_BarrierState>, MemWrite<Attn_BarrierState>]>]> {
  let summary = "waits until a phase of an mbarrier is complete";
  let description = [{
    Each executing thread waits until the phase with parity `parity` (0 or 1)
    of barrier `index` is complete, with acquire semantics (PTX ISA,
    mbarrier.try_wait.parity in a loop, or mbarrier.test_wait.parity before
    sm_90). Parity 1 passes a barrier that was only
    initialised. With `cluster` it acquires what other CTAs of the cluster
    released.

    Undefined behaviour: an index outside the array. A phase that completes
    twice before the wait is seen leaves the thread waiting.

    Example:

    ```mlir
    func.func @wait(%full: !attn.mbarriers<2>, %i: i32, %parity: i32) {
      attn.mbarrier.wait %full[%i] parity %parity : !attn.mbarriers<2>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_MBarriersType, "the barriers">:$barriers,
    Arg<I32, "which one">:$index,
    Arg<I32, "0 or 1">:$parity,
    Described<UnitAttr, "acquires what other CTAs of the cluster released">:$cluster);
  let assemblyFormat = "$barriers `[` $index `]` `parity` $parity attr-dict `:` type($barriers)";
}

def Attn_FenceProxyOp : Attn_Op<"fence.proxy_async", [AttnRequiresSM<90>,
    MemoryEffects<[MemRead<Attn_BarrierState>, MemWrite<Attn_BarrierState>]>]> {
  let summary = "orders generic accesses before asynchronous ones";
  let description = [{
    This thread's accesses to shared memory through the generic proxy come before
    accesses through the async proxy (TMA, wgmma) that are ordered behind the
    fence (PTX ISA, fence.proxy.async.shared::cta).

    Example:

    ```mlir
    func.func @fence() {
      attn.fence.proxy_async
      return
    }
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Attn_NamedBarrierOp : Attn_Op<"named_barrier", [AttnRequiresSM<80>,
    Attn_TakesWholeWarps,
    MemoryEffects<[MemRead<Attn_BarrierState>, MemWrite<Attn_BarrierState>]>]> {
  let summary = "a barrier of some of a CTA's warps";
  let description = [{
    Waits until `threads` threads have come to barrier `id` and orders their
    accesses to shared memory (PTX ISA, barrier.sync). `attn-insert-fences`
    allots ids from 1 on that are not in use; barrier 0 is the CTA's.

    With `each_warpgroup` the warpgroups of a partition do not wait for each
    other: each has a barrier of its 128 threads, the first one `id`, the next
    one `id + 1`, and so on.

    Undefined behaviour: two barriers with the same id at the same time.

    Example:

    ```mlir
    func.func @warpgroup(%id: i32) {
      attn.named_barrier %id {threads = 128}
      return
    }
    ```
  }];
  let arguments = (ins Arg<I32, "1 to 15">:$id, Described<I64Attr, "that come to it, a multiple of 32">:$threads,
    Described<UnitAttr, "each warpgroup of the partition has one of its own, from id on">:$each_warpgroup);
  let assemblyFormat = "$id attr-dict";
  let hasVerifier = 1;
}

class Attn_TurnOp<string mnemonic> : Attn_Op<"turn." # mnemonic,
    [AttnRequiresSM<90>, Attn_TakesWholeWarps,
    MemoryEffects<[MemRead<Attn_BarrierState>, MemWrite<Attn_BarrierState>]>]> {
  let arguments = (ins Described<I64Attr, "the first warpgroup's named barrier, 1 to 15">:$id);
  let assemblyFormat = "$id attr-dict";
  let hasVerifier = 1;
}

def Attn_TurnStartOp : Attn_TurnOp<"start"> {
  let summary = "gives the first turn to the first warpgroup";
  let description = [{
    Warpgroups of a partition that start products at the same time share the
    tensor cores and get their results at the same time, so that none computes a
    softmax under the products of another. Turns keep them apart: see
    `attn.turn.take`. `start` comes once, before the first of them.

    Named barriers `id`, `id + 1`, ... are used, one for each warpgroup (PTX ISA,
    barrier.cta.sync and barrier.cta.arrive). Nothing is emitted for a partition of
    one warpgroup. One turn is left over at the end of the kernel.

    Undefined behaviour: a barrier of the same number elsewhere; warps of a
    warpgroup that do not execute it together.

    Example: see `attn.turn.take`.
  }];
}

def Attn_TurnTakeOp : Attn_TurnOp<"take"> {
  let summary = "waits for this warpgroup's turn";
  let description = [{
    Waits until the warpgroup before has passed the turn on. Turns go around:
    each warpgroup takes and passes equally often.

    Undefined behaviour: warpgroups of a partition that take different numbers of
    turns, which wait for each other for ever; and that of `attn.turn.start`.

    Example:

    ```mlir
    func.func @turns() attributes {attn.warps = array<i64: 8, 1>} {
      attn.turn.start 1
      attn.turn.take 1
      attn.turn.pass 1
      return
    }
    ```
  }];
}

def Attn_TurnPassOp : Attn_TurnOp<"pass"> {
  let summary = "gives the turn to the next warpgroup";
  let description = [{
    The warpgroup behind this one, or the first one behind the last, may go on
    from its `attn.turn.take`. Does not wait.

    Undefined behaviour: that of `attn.turn.start`.

    Example: see `attn.turn.take`.
  }];
}

def Attn_ClusterBarrierOp : Attn_Op<"cluster_barrier", [AttnRequiresSM<90>,
    Attn_TakesWholeWarps,
    MemoryEffects<[MemRead<Attn_BarrierState>, MemWrite<Attn_BarrierState>]>]> {
  let summary = "a barrier of all threads of a cluster";
  let description = [{
    Waits until all threads of the cluster have come, and orders their accesses
    to shared memory (PTX ISA, barrier.cluster.arrive.release and
    barrier.cluster.wait.acquire).

    Undefined behaviour: one that not all threads of the cluster come to.

    Example:

    ```mlir
    func.func @cluster() {
      attn.cluster_barrier
      return
    }
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Attn_TileArriveOp : Attn_Op<"tile_arrive", [AttnRequiresSM<80>,
    Attn_TakesWholeWarps,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "says that a CTA is done with its part of a tile";
  let description = [{
    `count` CTAs of a launch compute parts of one tile, each of which comes here
    once, with all of its threads, behind its last store to global memory. The
    result is the same in all threads of a CTA: true in the one that comes last,
    which goes on with what all others have stored; false in the others, which
    wait for nobody.

    `counter`, an i32 in global memory that is the tile's own, has to hold 0 when
    the launch starts and holds 0 again when the last CTA has come.

    Memory order: what any thread of a CTA did before is released at the scope of
    the device, and in the CTA that comes last it happens before all that its
    threads do behind the op (one acquire and release of `counter` between two
    barriers of the CTA).

    Undefined behaviour: threads of a CTA that do not come to it; fewer or more
    than `count` CTAs; asynchronous stores that nobody has waited for.

    Example:

    ```mlir
    func.func @last(%counter: !llvm.ptr<1>, %count: i32) -> i1 {
      %last = attn.tile_arrive %counter of %count
      return %last : i1
    }
    ```
  }];
  let arguments = (ins
    Arg<LLVM_PointerInAddressSpace<1>, "the tile's counter", [MemRead, MemWrite]>:$counter,
    Arg<I32, "CTAs that have a part of the tile, at least 1">:$count);
  let results = (outs Res<I1, "whether this CTA is the last one">:$last);
  let assemblyFormat = "$counter `of` $count attr-dict";
}

} // let opDocGroup

#endif // ATTN_DIALECT_ATTN_IR_OPS_BARRIEROPS_TD
