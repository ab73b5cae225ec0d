//===- WarpSpecializeOps.td - Partitions of a CTA -----------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_OPS_WARPSPECIALIZEOPS_TD
#define ATTN_DIALECT_ATTN_IR_OPS_WARPSPECIALIZEOPS_TD

include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "attn/Dialect/Attn/IR/AttnTypes.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "attn/Dialect/Attn/IR/OpGroups.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

let opDocGroup = Attn_PartitionGroup in {

def Attn_WarpSpecializeOp : Attn_Op<"warp_specialize", [DeclareOpInterfaceMethods<Attn_ArchOpInterface>,
    Attn_TakesWholeWarps,
    RecursiveMemoryEffects, NoRegionArguments,
    DeclareOpInterfaceMethods<RegionBranchOpInterface>,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "gives each group of warps a program of its own";
  let description = [{
    The warps of the CTA, in order, are dealt to the partitions; each partition
    runs its region, concurrently with the others. It is whole warpgroups, or
    warps of one warpgroup that it shares with others.

    `registers` is the number of registers that each thread of a partition asks
    for (PTX ISA, setmaxnreg, which acts on whole warpgroups: all partitions of
    a warpgroup ask for the same, and all warps together are whole warpgroups);
    the sum over all threads fits the register file. Partitions that all ask for
    the same, or one that has the CTA for itself, keep what the kernel starts with:
    they run on chips before sm_90 too, and their warps may be any number.

    A partition with `tiles [rows, columns]` has register tiles of its own, which
    its warps hold in a grid of that many rows and columns; one without has
    none. Values from above are captured if they are the same in all threads of
    a warp: scalars, buffers, channels, views, but no tiles. A kernel has at
    most one, at the top level of its body.

    Undefined behaviour: a barrier of the CTA inside.

    Example:

    ```mlir
    gpu.module @kernels {
      gpu.func @kernel() kernel {
        attn.warp_specialize
        partition "consumer" warps 4 tiles [4, 1] registers 240 {
        }
        partition "mma" warps 1 registers 24 {
        }
        partition "load" warps 3 registers 24 {
        }
        gpu.return
      }
    }
    ```
  }];
  let arguments = (ins
    Described<StrArrayAttr, "of the partitions">:$names,
    Described<DenseI64ArrayAttr, "of each partition">:$warps,
    Described<DenseI64ArrayAttr, "rows and columns of each partition's grid of warps; 0 and 0 without register tiles">:$tiles,
    Described<DenseI64ArrayAttr, "that each thread of a partition asks for, 24 to 256, a multiple of 8">:$registers);
  let regions = (region VariadicRegion<SizedRegion<1>>:$partitions);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// True if some partitions ask for other numbers of registers than others,
    /// so that threads give back some or get more.
    bool movesRegisters();
    /// The index of the partition called `name`, or nothing.
    std::optional<unsigned> findPartition(::llvm::StringRef name);
    /// The first warp of a partition.
    int64_t getFirstWarp(unsigned partition);
    /// Warps of all partitions.
    int64_t getTotalWarps();
    /// The (rows, columns) grid of warps in which a partition holds register
    /// tiles, or nothing if it holds none.
    std::optional<std::pair<int64_t, int64_t>> getTileGrid(unsigned partition);
  }];
}

def Attn_ElectOp : Attn_Op<"elect", [RecursiveMemoryEffects, NoRegionArguments,
    DeclareOpInterfaceMethods<RegionBranchOpInterface>,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "runs a region in one thread";
  let description = [{
    One thread of the partition's (else the CTA's) first warp runs the region;
    the others go on without waiting. With `each_warpgroup` one thread of the
    first warp of each warpgroup does, each time the same. No op that all threads of
    a warp come to together may stand in it: barriers, votes, tiles in registers.

    Canonical form: an empty region is not there.

    Example:

    ```mlir
    func.func @one(%full: !attn.mbarriers<2>, %i: i32) {
      attn.elect {
        attn.mbarrier.expect_tx %full[%i] {bytes = 1024} : !attn.mbarriers<2>
      }
      return
    }
    ```
  }];
  let arguments = (ins Described<UnitAttr, "one thread of each warpgroup">:$each_warpgroup);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    (`each_warpgroup` $each_warpgroup^)? attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def Attn_ClusterLeaderOp : Attn_Op<"cluster_leader", [AttnRequiresSM<90>,
    RecursiveMemoryEffects, NoRegionArguments,
    DeclareOpInterfaceMethods<RegionBranchOpInterface>,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "runs a region in one CTA of a cluster";
  let description = [{
    The first CTA of the cluster, its leader, runs the region; the others go on
    without waiting. With `bits b` it is the first one of those whose ranks agree in
    all bits but those of b: with 1 that of each pair of CTAs. Without clusters each CTA is its own leader. A role of a
    channel whose acquires and releases all stand here is the leader's: it hands a
    slot of all CTAs on when all CTAs have handed it back.

    Canonical form: an empty region is not there.

    Example:

    ```mlir
    func.func @deal(%c: !attn.channel<2>, %p: !attn.cursor, %x: i32, %b: !attn.buffer<2xi32, #attn.rows, shared>) {
      attn.elect {
        attn.cluster_leader {
          %i, %t = attn.channel.acquire %c[%p] as "producer" : !attn.channel<2>
          attn.scalar_send %x, %b[%i] token %t : !attn.buffer<2xi32, #attn.rows, shared>
          attn.channel.release %c, %t as "producer" : !attn.channel<2>
        }
      }
      return
    }
    ```
  }];
  let arguments = (ins Described<OptionalAttr<I64Attr>, "bits of the CTAs' ranks that are clear in a leader's, a number from 1 to 7; all without it">:$rank_bits);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "(`bits` $rank_bits^)? attr-dict-with-keyword $body";
  // In the cluster's first CTA.
  let builders = [OpBuilder<(ins), [{
      build($_builder, $_state, ::mlir::IntegerAttr());
    }]>];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

} // let opDocGroup

#endif // ATTN_DIALECT_ATTN_IR_OPS_WARPSPECIALIZEOPS_TD
