//===- CheckPasses.td - Passes that prove -------------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_CHECKPASSES_TD
#define ATTN_DIALECT_ATTN_TRANSFORMS_CHECKPASSES_TD

include "mlir/Pass/PassBase.td"

def AttnCheckBarriersPass : Pass<"attn-check-barriers", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Prove that a kernel's synchronisation is right, or show where it is not";
  let description = [{
    Runs all warps of a cluster and the engines that work for them once, in a
    fixed order, on what the barrier rung states of them: mbarriers, bytes,
    phases, barriers, fences, copies, products, offsets. Values of tiles play no
    part. From what each warp knows of the others' events at each step it follows
    for every other order too (docs/BarrierCheck.md) that

    - each signal counts in the phase that it is meant for, each phase gets what it
      expects, no wait misses its phase or takes another one, and nobody is stuck;
    - no two accesses to the same bytes, one of them a write, are without order,
      the fences between generic and asynchronous ones included;
    - accesses to the same cells of tensor memory are ordered by waits for loads,
      stores and products and by the fences around signals;
    - what is loaded from bytes that another CTA writes has been used, by an instruction
      that stays in its place, in front of a signal of default scope that lets it do so;
    - a result is used after its product is complete, an mbarrier between its
      initialisation and its invalidation, tensor memory while it is taken, and a
      CTA exits when nothing is on its way to it.

    Where the states in which a tile starts are all seen, the kernel is *proved*, for any
    number of tiles in any order; up to a limit it is *checked up to* that many. A remark says
    which, with the assumptions that the proof rests on (docs/Simulator.md). The first thing
    that is wrong is an error at the op that is, with notes at those to be ordered with.

    What the analysis does not know (an op of unknown effects on shared memory, a condition or
    slot that is computed from memory) is a warning, and with `require-proof` an error. If only
    the launch gives it, as an extent or a length, `launch-remark` makes it a remark.

    With `superfluous`, a remark stands at each op that only orders (a wait, a barrier of warps,
    a fence) and without which the kernel is proved as well, each by itself: two of them may stand
    for each other.

    Example: test/doc/attn-check-barriers.mlir
  }];
  let options = [
    Option<"profile", "profile", "std::string", "\"isa\"",
      "What orders count: isa, those of the PTX manual, or hw, also those that shipped kernels rely on.">,
    Option<"clusterScope", "cluster-scope", "bool", "false",
      "Signals between CTAs name the cluster as their scope, as attn-lower-tiles has the same option make them.">,
    Option<"requireProof", "require-proof", "bool", "false",
      "Anything but a proof is an error.">,
    Option<"launchRemark", "launch-remark", "bool", "false",
      "Say by a remark, not by a warning, that it depends on what only the launch gives.">,
    Option<"superfluous", "superfluous", "bool", "false",
      "Say by a remark at which synchronising ops the kernel is proved without them, which takes a check of each.">,
    Option<"witness", "witness", "std::string", "\"\"",
      "File to write what is wrong to, with the order of warps that shows it.">,
    Option<"skeleton", "skeleton", "std::string", "\"\"",
      "File to write what each warp of a proved kernel does to, for attn-sim --skeleton.">,
    Option<"limit", "limit", "int64_t", "4000000",
      "Steps of warps after which the check ends with what it has seen.">
  ];
  let statistics = [
    Statistic<"numProved", "proved", "Number of kernels proved">,
    Statistic<"numBounded", "bounded", "Number of kernels checked up to a limit">,
    Statistic<"numSuperfluous", "superfluous", "Number of ops without which kernels are proved too">,
    Statistic<"numUnsupported", "unsupported", "Number of kernels with what the check does not know">,
    Statistic<"numOfLaunch", "of-launch", "Number of those that depend on what only the launch gives">
  ];
}

def AttnCheckChannelsPass : Pass<"attn-check-channels", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Show how a kernel uses channels wrongly, in their words";
  let description = [{
    Three checks of what `attn-expand-pipeline` leaves behind, where the order of acquires and
    releases stands and channels, roles and slots still have their names. What is wrong with
    them is an error here, before it becomes one of mbarriers in `attn-check-barriers`
    (docs/BarrierCheck.md).

    - *licence*: each access to a slot goes through the index of an acquire whose token is held;
      what an engine reads of it is awaited before it is released; slots of one buffer are found
      at positions of one channel; a load goes into the slot of its token. A buffer without
      slots is touched while a token of the same channel is held everywhere.
    - *balance*: all roles of a channel acquire as many slots per tile, whatever lengths and
      masks are. What differs is printed as both expressions with the smallest numbers found.
    - *order*: partitions that run one against the other, for tiles of different trip counts, get
      to their end with these depths. Those that do not are named with channel, role, position
      and slot.

    Before `attn-expand-pipeline` order does not exist, which is an error. What the check cannot
    follow is a remark: the proof comes on the barrier rung. Kernels without channels pass.

    Example: test/doc/attn-check-channels.mlir
  }];
  let statistics = [
    Statistic<"numChecked", "checked", "Number of kernels whose channels are used right">,
    Statistic<"numWrong", "wrong", "Number of kernels whose channels are not">,
    Statistic<"numUnsupported", "unsupported", "Number of kernels not checked to their end">
  ];
}

#endif // ATTN_DIALECT_ATTN_TRANSFORMS_CHECKPASSES_TD
