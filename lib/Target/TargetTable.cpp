//===- TargetTable.cpp - Facts about the chips we compile for -------------===//
//
// Sources, named in the rows:
//   [CG]  CUDA C++ Programming Guide 13.0, table "Technical Specifications per
//         Compute Capability", and the tuning guides: all capacities.
//   [PTX] PTX ISA 9.0, "Target ISA Notes" of each instruction: capabilities.
//   [TI]  CUDA C++ Programming Guide, "Throughput of Native Arithmetic
//         Instructions": exp and FMA.
//   [WP]  NVIDIA's architecture white papers and data sheets: tensor peaks,
//         clocks, memory speed, L2. FLOP per clock is the dense peak divided by
//         SM count and boost clock.
//   [M]   measured by us on an H200.
//   [E]   estimate, because nothing is published.
// Energy weights are a fit to three measured kernels on Hopper at its power
// limit [M]. Only the instruction term is well determined; no other chip was
// measured, so all rows hold the same three numbers [E].
//
//===----------------------------------------------------------------------===//

#include "attn/Target/TargetTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir::attn;

namespace {

struct CapabilityInfo {
  Capability capability;
  llvm::StringLiteral name;
  llvm::StringLiteral chips;
};

} // namespace

static constexpr CapabilityInfo capabilityInfos[] = {
    {Capability::Base, "base", "sm_80"},
    {Capability::Fp8, "fp8", "sm_89"},
    {Capability::StMatrix, "stmatrix", "sm_90"},
    {Capability::Cluster, "cluster", "sm_90"},
    {Capability::Tma, "tma", "sm_90"},
    {Capability::Bf16Arith, "bf16-arith", "sm_90"},
    {Capability::Wgmma, "wgmma", "sm_90a"},
    {Capability::SetMaxNReg, "setmaxnreg",
     "sm_90a, sm_100a, sm_100f or sm_103a"},
    {Capability::F32x2, "f32x2", "sm_100"},
    {Capability::MinMax3, "minmax3", "sm_100"},
    {Capability::Vector256, "vector256", "sm_100"},
    {Capability::ClusterLaunchControl, "clusterlaunchcontrol", "sm_100"},
    {Capability::ReduxF32, "redux-f32", "sm_100a, sm_100f or sm_103a"},
    {Capability::Fp4, "fp4", "sm_100a, sm_100f or sm_103a"},
    {Capability::Matrix8, "matrix8", "sm_100a, sm_100f or sm_103a"},
    {Capability::TmaPair, "tma-pair", "sm_100a, sm_100f or sm_103a"},
    {Capability::Tcgen05, "tcgen05", "sm_100a, sm_100f or sm_103a"},
    {Capability::Tcgen05Shift, "tcgen05-shift", "sm_100a or sm_103a"},
    {Capability::Tcgen05I8, "tcgen05-i8", "sm_100a"},
    {Capability::Tcgen05LdRed, "tcgen05-ld-red", "sm_103a"},
};

static const CapabilityInfo &getInfo(Capability capability) {
  return capabilityInfos[static_cast<unsigned>(capability)];
}

llvm::StringRef mlir::attn::getCapabilityName(Capability capability) {
  return getInfo(capability).name;
}

llvm::StringRef mlir::attn::getCapabilityChips(Capability capability) {
  return getInfo(capability).chips;
}

using CapabilitySet = std::bitset<numCapabilities>;

static CapabilitySet operator|(CapabilitySet set, Capability capability) {
  return set.set(static_cast<unsigned>(capability));
}

static std::vector<TargetRow> makeTargets() {
  using C = Capability;
  // What each generation adds to the one before it [PTX].
  CapabilitySet sm80 = CapabilitySet() | C::Base;
  CapabilitySet sm89 = sm80 | C::Fp8;
  CapabilitySet sm90 = sm89 | C::StMatrix | C::Cluster | C::Tma | C::Bf16Arith;
  CapabilitySet sm90a = sm90 | C::Wgmma | C::SetMaxNReg;
  CapabilitySet sm100 =
      sm90 | C::F32x2 | C::MinMax3 | C::Vector256 | C::ClusterLaunchControl;
  CapabilitySet sm100f = sm100 | C::SetMaxNReg | C::ReduxF32 | C::Fp4 |
                         C::Matrix8 | C::TmaPair | C::Tcgen05;
  CapabilitySet sm100a = sm100f | C::Tcgen05Shift | C::Tcgen05I8;
  CapabilitySet sm103a = sm100f | C::Tcgen05Shift | C::Tcgen05LdRed;

  std::vector<TargetRow> rows;

  TargetRow a100;
  a100.chip = "sm_80";
  a100.computeCapability = 80;
  a100.minPTX = 70;
  a100.defaultPTX = 80;
  a100.capabilities = sm80;
  a100.sharedBytesPerSM = 164 * 1024;
  a100.sharedBytesPerCTA = 163 * 1024;
  a100.sharedBytesReserved = 1024;
  a100.registersPerSM = 65536;
  a100.registersPerThread = 255;
  a100.registerAllocationUnit = 8;
  a100.maxThreadsPerCTA = 1024;
  a100.maxThreadsPerSM = 2048;
  a100.maxWarpsPerSM = 64;
  a100.maxCTAsPerSM = 32;
  a100.maxClusterSize = 1;
  a100.tmemColumns = 0;
  a100.namedBarriers = 16;
  // 312 TFLOP/s on 108 SMs at 1410 MHz [WP].
  a100.tensorFlopF16 = 2048;
  a100.tensorFlopFp8 = 0;
  a100.mmaSyncFlopF16 = 2048;
  a100.expPerClock = 16;
  a100.fmaPerClock = 64;
  a100.issuePerClock = 4;
  a100.sharedBytesPerClock = 128;
  // 5120 bytes per clock for the whole chip [WP].
  a100.l2BytesPerClock = 47;
  a100.board = "A100 SXM 80 GB";
  a100.smCount = 108;
  a100.clockMHz = 1410;
  a100.dramGBPerSecond = 2039;
  a100.l2Bytes = uint64_t(40) << 20;
  a100.powerWatts = 400;
  a100.picojoulePerFlop = 0.55;
  a100.picojoulePerLaneInstruction = 25;
  a100.picojoulePerL2Byte = 23;
  rows.push_back(a100);

  TargetRow a40 = a100;
  a40.chip = "sm_86";
  a40.computeCapability = 86;
  a40.minPTX = 71;
  a40.sharedBytesPerSM = 100 * 1024;
  a40.sharedBytesPerCTA = 99 * 1024;
  a40.maxThreadsPerSM = 1536;
  a40.maxWarpsPerSM = 48;
  a40.maxCTAsPerSM = 16;
  // 149.7 TFLOP/s on 84 SMs at 1740 MHz [WP]; GeForce boards of this chip
  // reach half of it with float32 accumulation.
  a40.tensorFlopF16 = 1024;
  a40.mmaSyncFlopF16 = 1024;
  a40.fmaPerClock = 128;
  a40.l2BytesPerClock = 32; // [E]
  a40.board = "A40";
  a40.smCount = 84;
  a40.clockMHz = 1740;
  a40.dramGBPerSecond = 696;
  a40.l2Bytes = uint64_t(6) << 20;
  a40.powerWatts = 300;
  rows.push_back(a40);

  TargetRow l40s = a40;
  l40s.chip = "sm_89";
  l40s.computeCapability = 89;
  l40s.minPTX = 78;
  l40s.defaultPTX = 84; // mma.sync on fp8 needs it
  l40s.capabilities = sm89;
  l40s.maxCTAsPerSM = 24;
  // 362 and 733 TFLOP/s on 142 SMs at 2520 MHz [WP].
  l40s.tensorFlopFp8 = 2048;
  l40s.board = "L40S";
  l40s.smCount = 142;
  l40s.clockMHz = 2520;
  l40s.dramGBPerSecond = 864;
  l40s.l2Bytes = uint64_t(96) << 20;
  l40s.powerWatts = 350;
  rows.push_back(l40s);

  TargetRow h100 = a100;
  h100.chip = "sm_90a";
  h100.computeCapability = 90;
  h100.minPTX = 80;
  h100.defaultPTX = 86; // mbarrier and TMA forms on .shared::cta need it
  h100.capabilities = sm90a;
  h100.sharedBytesPerSM = 228 * 1024;
  h100.sharedBytesPerCTA = 227 * 1024;
  h100.maxClusterSize = 8;
  // wgmma of any N takes N/2 cycles for a 64 x N x 16 product on a quarter of
  // the SM [M]; 989 TFLOP/s on 132 SMs at 1830 MHz [WP].
  h100.tensorFlopF16 = 4096;
  h100.tensorFlopFp8 = 8192;
  // m16n8k16 takes 6.8 cycles on one of four schedulers [M].
  h100.mmaSyncFlopF16 = 2409;
  h100.fmaPerClock = 128;
  // 5120 bytes per clock for the whole chip, as on A100 [E]; kernels that used
  // 30 were seen [M].
  h100.l2BytesPerClock = 39;
  h100.board = "H100 SXM";
  h100.smCount = 132;
  h100.clockMHz = 1830;
  h100.dramGBPerSecond = 3352;
  h100.l2Bytes = uint64_t(50) << 20;
  h100.powerWatts = 700;
  rows.push_back(h100);

  TargetRow b200 = h100;
  b200.chip = "sm_100a";
  b200.computeCapability = 100;
  b200.minPTX = 86;
  b200.defaultPTX = 88; // block scales and 32-byte vectors need it
  b200.capabilities = sm100a;
  b200.tmemColumns = 512;
  // 2.25 and 4.5 PFLOP/s on 148 SMs at 1850 MHz [WP].
  b200.tensorFlopF16 = 8192;
  b200.tensorFlopFp8 = 16384;
  b200.mmaSyncFlopF16 = 2048; // [E]
  b200.l2BytesPerClock = 64;  // [E]
  b200.board = "B200";
  b200.smCount = 148;
  b200.clockMHz = 1850;
  b200.dramGBPerSecond = 8000;
  b200.l2Bytes = uint64_t(126) << 20;
  b200.powerWatts = 1000;

  // The family target: its PTX runs on sm_100 and sm_103 alike, so it claims
  // only what both have. Rates are those of the slower board.
  TargetRow family = b200;
  family.chip = "sm_100f";
  family.minPTX = 88;
  family.capabilities = sm100f;
  rows.push_back(b200);
  rows.push_back(family);

  TargetRow b300 = b200;
  b300.chip = "sm_103a";
  b300.computeCapability = 103;
  b300.minPTX = 88;
  b300.capabilities = sm103a;
  // Twice the exponentials of B200 [WP].
  b300.expPerClock = 32;
  b300.board = "B300";
  b300.clockMHz = 1920;
  b300.powerWatts = 1400;
  rows.push_back(b300);
  return rows;
}

llvm::ArrayRef<TargetRow> mlir::attn::getTargets() {
  static const std::vector<TargetRow> targets = makeTargets();
  return targets;
}

llvm::Expected<const TargetRow &>
mlir::attn::lookupTarget(llvm::StringRef chip) {
  for (const TargetRow &row : getTargets())
    if (row.chip == chip)
      return row;
  std::string known = llvm::join(
      llvm::map_range(getTargets(),
                      [](const TargetRow &row) { return row.chip.str(); }),
      ", ");
  return llvm::createStringError("unknown chip '" + chip +
                                 "', expected one of " + known);
}

std::string mlir::attn::formatPTXVersion(unsigned ptx) {
  return std::to_string(ptx / 10) + "." + std::to_string(ptx % 10);
}

llvm::Error mlir::attn::checkPTXVersion(const TargetRow &target, unsigned ptx) {
  // The versions from 7.0 on that LLVM 22 has a feature for.
  static constexpr unsigned known[] = {70, 71, 72, 73, 74, 75, 76, 77, 78, 80,
                                       81, 82, 83, 84, 85, 86, 87, 88, 90};
  if (!llvm::is_contained(known, ptx))
    return llvm::createStringError("unknown PTX version " +
                                   formatPTXVersion(ptx) +
                                   ", expected 7.0 to 7.8, 8.0 to 8.8 or 9.0");
  if (ptx < target.minPTX)
    return llvm::createStringError("chip '" + target.chip + "' needs PTX " +
                                   formatPTXVersion(target.minPTX) +
                                   " or later, got PTX " +
                                   formatPTXVersion(ptx));
  return llvm::Error::success();
}

std::string TargetRow::getFeatures(unsigned ptx) {
  return "+ptx" + std::to_string(ptx);
}

llvm::StringRef mlir::attn::getDataLayout() {
  return "e-p3:32:32-p4:32:32-p5:32:32-p6:32:32-p7:32:32-i64:64-i128:128-"
         "i256:256-v16:16-v32:32-n16:32:64";
}

llvm::StringRef mlir::attn::getTriple() { return "nvptx64-nvidia-cuda"; }
