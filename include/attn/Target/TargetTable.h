//===- TargetTable.h - Facts about the chips we compile for -----*- C++ -*-===//
//
// One row for each target. Every number that depends on the chip is here and
// nowhere else: capabilities, capacities, throughputs, energy weights, and what
// LLVM and ptxas must be told. Which instruction form needs which capability
// is the business of FormTable.h. docs/HowTo/add-target.md is the recipe for a
// new row.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TARGET_TARGETTABLE_H
#define ATTN_TARGET_TARGETTABLE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <bitset>
#include <cstdint>
#include <string>

namespace mlir::attn {

/// What a chip can do. An instruction form names the one capability it needs;
/// a target row lists those that its chip has.
enum class Capability : unsigned {
  /// What every target here has: the whole of sm_80, among others mma.sync on
  /// 16-bit types, cp.async, ldmatrix, redux.sync on integers, mbarriers
  /// without transaction counts.
  Base,
  /// fp8 conversions and mma.sync on fp8 (sm_89).
  Fp8,
  /// stmatrix (sm_90).
  StMatrix,
  /// Thread block clusters, distributed shared memory, griddepcontrol,
  /// elect.sync, cluster-scope fences (sm_90).
  Cluster,
  /// TMA, bulk copies, mbarrier transaction counts, try_wait (sm_90).
  Tma,
  /// 16-bit brain float arithmetic beyond fma, min and max, packed or not, and
  /// ex2 on it (sm_90).
  Bf16Arith,
  /// wgmma (sm_90a only).
  Wgmma,
  /// setmaxnreg (sm_90a, sm_100a and relatives).
  SetMaxNReg,
  /// Two float32 operations in one instruction (sm_100).
  F32x2,
  /// min and max with three float32 inputs (sm_100).
  MinMax3,
  /// 32-byte vector loads and stores (sm_100).
  Vector256,
  /// Cluster launch control (sm_100).
  ClusterLaunchControl,
  /// redux.sync on float32 (sm_100a and relatives).
  ReduxF32,
  /// fp4 and fp6 conversions (sm_100a and relatives).
  Fp4,
  /// ldmatrix and stmatrix on 8-bit and narrower elements (sm_100a and
  /// relatives).
  Matrix8,
  /// TMA with cta_group::2 and gather or scatter of four rows (sm_100a and
  /// relatives).
  TmaPair,
  /// Tensor memory and tcgen05 (sm_100a and relatives).
  Tcgen05,
  /// tcgen05.shift (a-targets only, not in the family target).
  Tcgen05Shift,
  /// tcgen05.mma with kind::i8 (sm_100a only).
  Tcgen05I8,
  /// tcgen05.ld with a reduction (sm_103a).
  Tcgen05LdRed,
  /// Exponentials of two halves in one instruction of the machine (sm_103a).
  /// The PTX is there on all chips, where ptxas makes two of it.
  PackedExp,
};
inline constexpr unsigned numCapabilities =
    static_cast<unsigned>(Capability::PackedExp) + 1;

/// The identifier of `capability` as used in tables and documents, such as
/// "tcgen05".
llvm::StringRef getCapabilityName(Capability capability);

/// The chips that have `capability` in words, for diagnostics: "sm_90",
/// "sm_100a, sm_100f or sm_103a". A name without suffix means that chip and
/// all later ones.
llvm::StringRef getCapabilityChips(Capability capability);

/// One target. All rates are for one SM and one SM clock unless said otherwise.
struct TargetRow {
  /// What `ptxas -arch` and `-mcpu` take, for example "sm_90a".
  llvm::StringRef chip;
  /// Compute capability times ten, without suffix: 90 for sm_90a.
  unsigned computeCapability = 0;
  /// The compute capability times ten whose instructions kernels for the chip
  /// use: 89 for sm_120, for which nothing of its own is emitted.
  unsigned instructionCapability = 0;
  /// Least PTX ISA version times ten that knows the chip: 86 for PTX 8.6. LLVM
  /// aborts below it.
  unsigned minPTX = 0;
  /// PTX ISA version times ten that we emit unless told otherwise.
  unsigned defaultPTX = 0;
  /// Capabilities as a bit set indexed by Capability.
  std::bitset<numCapabilities> capabilities;

  // Capacities.

  /// Bytes of shared memory of an SM that CTAs can use.
  unsigned sharedBytesPerSM = 0;
  /// Most bytes of shared memory of one CTA (opt-in maximum of dynamic shared
  /// memory).
  unsigned sharedBytesPerCTA = 0;
  /// Bytes of shared memory that the system takes for each resident CTA.
  unsigned sharedBytesReserved = 0;
  /// 32-bit registers of an SM.
  unsigned registersPerSM = 0;
  /// Most registers of one thread.
  unsigned registersPerThread = 0;
  /// Registers are given to a warp in multiples of this.
  unsigned registerAllocationUnit = 0;
  unsigned maxThreadsPerCTA = 0;
  unsigned maxThreadsPerSM = 0;
  unsigned maxWarpsPerSM = 0;
  unsigned maxCTAsPerSM = 0;
  /// Largest portable cluster; 1 where there are no clusters.
  unsigned maxClusterSize = 0;
  /// Columns of tensor memory (128 lanes of 32 bits each); 0 without.
  unsigned tmemColumns = 0;
  /// Named barriers of one CTA.
  unsigned namedBarriers = 0;

  // Throughputs.

  /// Dense tensor FLOP (a multiply-add counts 2) with 16-bit operands and
  /// float32 accumulation, by the newest MMA generation of the chip.
  unsigned tensorFlopF16 = 0;
  /// The same with 8-bit floating-point operands; 0 where there is none.
  unsigned tensorFlopFp8 = 0;
  /// Tensor FLOP with 16-bit operands when mma.sync is used: less than
  /// tensorFlopF16 from sm_90 on.
  unsigned mmaSyncFlopF16 = 0;
  /// The same with 8-bit floating-point operands; 0 where there is none, or
  /// where ptxas makes of it conversions to f16 and products of these.
  unsigned mmaSyncFlopFp8 = 0;
  /// Exponentials (ex2.approx.f32).
  unsigned expPerClock = 0;
  /// float32 multiply-adds, counted as instructions times lanes.
  unsigned fmaPerClock = 0;
  /// Warp instructions issued.
  unsigned issuePerClock = 0;
  /// Bytes read from or written to shared memory.
  unsigned sharedBytesPerClock = 0;
  /// Bytes that an SM can get from L2 while all others do so too.
  unsigned l2BytesPerClock = 0;

  // The reference board.

  llvm::StringRef board;
  unsigned smCount = 0;
  /// SMs that CTAs of clusters of 2 and of 4 fill at once, with one CTA on an
  /// SM: a cluster stays inside a part of the chip (GPC), whose number of SMs
  /// need not be a multiple of its size. 0 where it is not known.
  unsigned smCountInPairs = 0;
  unsigned smCountInFours = 0;
  /// SM clock in MHz at which the board's published peaks hold.
  unsigned clockMHz = 0;
  /// Bytes of device memory read in a second, in units of 10^9.
  unsigned dramGBPerSecond = 0;
  /// Bytes of L2 cache.
  uint64_t l2Bytes = 0;
  /// Board power limit in watts.
  unsigned powerWatts = 0;

  // Energy weights of the cost model, in picojoules.

  double picojoulePerFlop = 0;
  double picojoulePerLaneInstruction = 0;
  double picojoulePerL2Byte = 0;

  /// SMs of the reference board that CTAs of clusters of `size` fill at once; 0
  /// where it is not known.
  unsigned getClusteredSMs(unsigned size) const;
  bool has(Capability capability) const {
    return capabilities[static_cast<unsigned>(capability)];
  }
  /// LLVM's feature string for a PTX version times ten: "+ptx80".
  static std::string getFeatures(unsigned ptx);
};

/// All targets, oldest first.
llvm::ArrayRef<TargetRow> getTargets();

/// The row of `chip`, or an error that lists the chips there are.
llvm::Expected<const TargetRow &> lookupTarget(llvm::StringRef chip);

/// Returns the row of `chip` with the numbers of `board`; empty takes the
/// chip's default board. An unknown name and a board of another chip are
/// errors.
llvm::Expected<TargetRow> lookupTarget(llvm::StringRef chip,
                                       llvm::StringRef board);

/// Checks that `ptx` (version times ten) is one that LLVM knows and that knows
/// the chip of `target`.
llvm::Error checkPTXVersion(const TargetRow &target, unsigned ptx);

/// A PTX version times ten as people write it: 80 gives "8.0".
std::string formatPTXVersion(unsigned ptx);

/// Data layout of all targets, with 32-bit pointers to shared, constant, local,
/// tensor and distributed shared memory: what LLVM's NVPTX backend uses after
/// -nvptx-short-ptr. It has to stand on the gpu.module before translation,
/// because alignments are computed there.
llvm::StringRef getDataLayout();

/// Target triple of all targets.
llvm::StringRef getTriple();

} // namespace mlir::attn

#endif // ATTN_TARGET_TARGETTABLE_H
