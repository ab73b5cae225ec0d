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
#include "attn/Support/Suggest.h"
#include "attn/Target/Boards.h"
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
    {Capability::PackedExp, "packed-exp", "sm_103a"},
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

/// What each generation adds to the one before it [PTX].
struct Generations {
  using C = Capability;
  CapabilitySet sm80 = CapabilitySet() | C::Base;
  CapabilitySet sm89 = sm80 | C::Fp8;
  CapabilitySet sm90 = sm89 | C::StMatrix | C::Cluster | C::Tma | C::Bf16Arith;
  CapabilitySet sm90a = sm90 | C::Wgmma | C::SetMaxNReg;
  CapabilitySet sm100 =
      sm90 | C::F32x2 | C::MinMax3 | C::Vector256 | C::ClusterLaunchControl;
  CapabilitySet sm100f = sm100 | C::SetMaxNReg | C::ReduxF32 | C::Fp4 |
                         C::Matrix8 | C::TmaPair | C::Tcgen05;
  CapabilitySet sm100a = sm100f | C::Tcgen05Shift | C::Tcgen05I8;
  CapabilitySet sm103a =
      sm100f | C::Tcgen05Shift | C::Tcgen05LdRed | C::PackedExp;
};

static TargetRow makeA100(const Generations &capabilities) {
  TargetRow row;
  row.chip = "sm_80";
  row.computeCapability = row.instructionCapability = 80;
  row.minPTX = 70;
  row.defaultPTX = 80;
  row.capabilities = capabilities.sm80;
  row.sharedBytesPerSM = 164 * 1024;
  row.sharedBytesPerCTA = 163 * 1024;
  row.sharedBytesReserved = 1024;
  row.registersPerSM = 65536;
  row.registersPerThread = 255;
  row.registerAllocationUnit = 8;
  row.maxThreadsPerCTA = 1024;
  row.maxThreadsPerSM = 2048;
  row.maxWarpsPerSM = 64;
  row.maxCTAsPerSM = 32;
  row.maxClusterSize = 1;
  row.tmemColumns = 0;
  row.namedBarriers = 16;
  // 312 TFLOP/s on 108 SMs at 1410 MHz [WP].
  row.tensorFlopF16 = 2048;
  row.tensorFlopFp8 = 0;
  row.mmaSyncFlopF16 = 2048;
  row.mmaSyncFlopFp8 = 0;
  row.expPerClock = 16;
  row.fmaPerClock = 64;
  row.issuePerClock = 4;
  row.sharedBytesPerClock = 128;
  // 5120 bytes per clock for the whole chip [WP].
  row.l2BytesPerClock = 47;
  row.picojoulePerFlop = 0.55;
  row.picojoulePerLaneInstruction = 25;
  row.picojoulePerL2Byte = 23;
  return row;
}

static TargetRow makeA40(const TargetRow &a100) {
  TargetRow row = a100;
  row.chip = "sm_86";
  row.computeCapability = row.instructionCapability = 86;
  row.minPTX = 71;
  row.sharedBytesPerSM = 100 * 1024;
  row.sharedBytesPerCTA = 99 * 1024;
  row.maxThreadsPerSM = 1536;
  row.maxWarpsPerSM = 48;
  row.maxCTAsPerSM = 16;
  // 149.7 TFLOP/s on 84 SMs at 1740 MHz [WP]; GeForce boards of this chip
  // reach half of it with float32 accumulation.
  row.tensorFlopF16 = 1024;
  row.mmaSyncFlopF16 = 1024;
  row.fmaPerClock = 128;
  row.l2BytesPerClock = 32; // [E]
  return row;
}

static TargetRow makeL40S(const TargetRow &a40,
                          const Generations &capabilities) {
  TargetRow row = a40;
  row.chip = "sm_89";
  row.computeCapability = row.instructionCapability = 89;
  row.minPTX = 78;
  row.defaultPTX = 84; // mma.sync on fp8 needs it
  row.capabilities = capabilities.sm89;
  row.maxCTAsPerSM = 24;
  // 362 and 733 TFLOP/s on 142 SMs at 2520 MHz [WP].
  row.tensorFlopFp8 = row.mmaSyncFlopFp8 = 2048;
  return row;
}

static TargetRow makeH100(const TargetRow &a100,
                          const Generations &capabilities) {
  TargetRow row = a100;
  row.chip = "sm_90a";
  row.computeCapability = row.instructionCapability = 90;
  row.minPTX = 80;
  row.defaultPTX = 86; // mbarrier and TMA forms on .shared::cta need it
  row.capabilities = capabilities.sm90a;
  row.sharedBytesPerSM = 228 * 1024;
  row.sharedBytesPerCTA = 227 * 1024;
  row.maxClusterSize = 8;
  // wgmma of any N takes N/2 cycles for a 64 x N x 16 product on a quarter of
  // the SM [M]; 989 TFLOP/s on 132 SMs at 1830 MHz [WP].
  row.tensorFlopF16 = 4096;
  row.tensorFlopFp8 = 8192;
  // m16n8k16 takes 6.8 cycles on one of four schedulers [M].
  row.mmaSyncFlopF16 = 2409;
  row.fmaPerClock = 128;
  // 5120 bytes per clock for the whole chip, as on A100 [E]; kernels that used
  // 30 were seen [M].
  row.l2BytesPerClock = 39;
  return row;
}

static TargetRow makeB200(const TargetRow &h100,
                          const Generations &capabilities) {
  TargetRow row = h100;
  row.chip = "sm_100a";
  row.computeCapability = row.instructionCapability = 100;
  row.minPTX = 86;
  row.defaultPTX = 88; // block scales and 32-byte vectors need it
  row.capabilities = capabilities.sm100a;
  row.tmemColumns = 512;
  // 2.25 and 4.5 PFLOP/s on 148 SMs at 1850 MHz [WP].
  row.tensorFlopF16 = 8192;
  row.tensorFlopFp8 = 16384;
  row.mmaSyncFlopF16 = 2048; // [E]
  row.l2BytesPerClock = 64;  // [E]
  return row;
}

/// The family target: its PTX runs on sm_100 and sm_103 alike, so it claims
/// only what both have. Rates are those of the slower board.
static TargetRow makeFamily(const TargetRow &b200,
                            const Generations &capabilities) {
  TargetRow row = b200;
  row.chip = "sm_100f";
  row.minPTX = 88;
  row.capabilities = capabilities.sm100f;
  return row;
}

static TargetRow makeB300(const TargetRow &b200,
                          const Generations &capabilities) {
  TargetRow row = b200;
  row.chip = "sm_103a";
  row.computeCapability = row.instructionCapability = 103;
  row.minPTX = 88;
  row.capabilities = capabilities.sm103a;
  // Twice the exponentials of B200 [WP].
  row.expPerClock = 32;
  return row;
}

/// Chips for which kernels of sm_89 are compiled: what else they have [PTX],
/// such as stmatrix, TMA and clusters, nothing here uses, and no board of them
/// has run a kernel of this compiler.
static TargetRow makeRTX5090(const TargetRow &l40s) {
  TargetRow row = l40s;
  row.chip = "sm_120";
  row.computeCapability = 120;
  row.minPTX = row.defaultPTX = 87;
  // 209.5 and 419 TFLOP/s with float32 accumulation on 170 SMs at 2407 MHz,
  // half of what boards for workstations reach [WP].
  row.tensorFlopF16 = 512;
  row.tensorFlopFp8 = 1024;
  row.mmaSyncFlopF16 = 512;
  row.mmaSyncFlopFp8 = 1024;
  return row;
}

static TargetRow makeSpark(const TargetRow &rtx5090) {
  TargetRow row = rtx5090;
  row.chip = "sm_121";
  row.computeCapability = 121;
  row.minPTX = row.defaultPTX = 88;
  return row;
}

static TargetRow makeThor(const TargetRow &l40s) {
  TargetRow row = l40s;
  row.chip = "sm_110";
  row.computeCapability = 110;
  row.minPTX = row.defaultPTX = 90;
  row.sharedBytesPerSM = 228 * 1024;
  row.sharedBytesPerCTA = 227 * 1024;
  // 2070 TFLOP/s of sparse fp4 on 20 SMs at 1575 MHz, a quarter of it with 8
  // bits and an eighth with 16, half of both without sparsity [WP].
  row.tensorFlopF16 = 8192;
  row.tensorFlopFp8 = 16384;
  row.mmaSyncFlopF16 = 2048; // [E]
  row.mmaSyncFlopFp8 = 0;
  return row;
}

/// Replaces what `target` says about its reference board.
static void setBoard(TargetRow &target, const Board &board) {
  target.board = board.title;
  target.smCount = board.smCount;
  target.smCountInPairs = board.smCountInPairs;
  target.smCountInFours = board.smCountInFours;
  target.clockMHz = board.clockMHz;
  target.dramGBPerSecond = board.dramGBPerSecond;
  target.l2Bytes = board.l2Bytes;
  target.powerWatts = board.powerWatts;
}

static std::vector<TargetRow> makeTargets() {
  Generations capabilities;
  TargetRow a100 = makeA100(capabilities);
  TargetRow a40 = makeA40(a100);
  TargetRow l40s = makeL40S(a40, capabilities);
  TargetRow h100 = makeH100(a100, capabilities);
  TargetRow b200 = makeB200(h100, capabilities);
  TargetRow family = makeFamily(b200, capabilities);
  TargetRow b300 = makeB300(b200, capabilities);
  TargetRow rtx5090 = makeRTX5090(l40s);
  std::vector<TargetRow> rows = {
      a100,   a40,  l40s,           h100,    b200,
      family, b300, makeThor(l40s), rtx5090, makeSpark(rtx5090)};
  for (TargetRow &row : rows)
    for (const Board &board : getBoards())
      if (llvm::is_contained(board.defaultOf, row.chip))
        setBoard(row, board);
  return rows;
}

llvm::ArrayRef<TargetRow> mlir::attn::getTargets() {
  static const std::vector<TargetRow> targets = makeTargets();
  return targets;
}

/// What people call a chip: boards, generations, numbers.
static constexpr Synonym kChipSynonyms[] = {
    {"A100", "sm_80"},
    {"A800", "sm_80"},
    {"A30", "sm_80"},
    {"Ampere", "sm_80"},
    {"8.0", "sm_80"},
    {"A40", "sm_86"},
    {"A10", "sm_86"},
    {"A10G", "sm_86"},
    {"A6000", "sm_86"},
    {"RTX 3090", "sm_86"},
    {"8.6", "sm_86"},
    {"L40S", "sm_89"},
    {"L40", "sm_89"},
    {"L4", "sm_89"},
    {"RTX 4090", "sm_89"},
    {"Ada", "sm_89"},
    {"8.9", "sm_89"},
    {"H100", "sm_90a"},
    {"H200", "sm_90a"},
    {"H800", "sm_90a"},
    {"H20", "sm_90a"},
    {"GH200", "sm_90a"},
    {"Hopper", "sm_90a"},
    {"9.0", "sm_90a"},
    {"9.0a", "sm_90a"},
    {"compute_90", "sm_90a"},
    {"compute_90a", "sm_90a"},
    {"B200", "sm_100a"},
    {"GB200", "sm_100a"},
    {"Blackwell", "sm_100a"},
    {"10.0", "sm_100a"},
    {"10.0a", "sm_100a"},
    {"B300", "sm_103a"},
    {"GB300", "sm_103a"},
    {"Blackwell Ultra", "sm_103a"},
    {"10.3", "sm_103a"},
    {"10.3a", "sm_103a"},
    {"Thor", "sm_110"},
    {"Jetson Thor", "sm_110"},
    {"11.0", "sm_110"},
    {"RTX 5090", "sm_120"},
    {"RTX 50", "sm_120"},
    {"12.0", "sm_120"},
    {"DGX Spark", "sm_121"},
    {"GB10", "sm_121"},
    {"12.1", "sm_121"},
};

llvm::Expected<const TargetRow &>
mlir::attn::lookupTarget(llvm::StringRef chip) {
  llvm::SmallVector<llvm::StringRef> known;
  for (const TargetRow &row : getTargets()) {
    if (row.chip == chip)
      return row;
    known.push_back(row.chip);
  }
  // What every kernel here is made of came with compute capability 8.0.
  unsigned number = 0;
  bool isOld = chip.starts_with("sm_") &&
               !chip.drop_front(3).getAsInteger(10, number) &&
               number < getTargets().front().computeCapability;
  return llvm::createStringError(
      (isOld ? "chip '" + chip +
                   "' lacks cp.async and mma.sync on bf16, which all kernels "
                   "here need"
             : "unknown chip '" + chip + "'") +
      ", expected one of " + llvm::join(known, ", ") +
      (isOld ? std::string() : suggest(chip, known, kChipSynonyms)));
}

llvm::Expected<TargetRow> mlir::attn::lookupTarget(llvm::StringRef chip,
                                                   llvm::StringRef board) {
  llvm::Expected<const TargetRow &> row = lookupTarget(chip);
  if (!row)
    return row.takeError();
  TargetRow target = *row;
  if (board.empty())
    return target;
  llvm::Expected<const Board &> found = lookupBoard(board);
  if (!found)
    return found.takeError();
  if (!llvm::is_contained(found->chips, chip))
    return llvm::createStringError(
        "expected a board of chip '" + chip + "', got '" + found->name +
        "', which has chip '" + found->chips.front() + "'");
  setBoard(target, *found);
  return target;
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

unsigned TargetRow::getClusteredSMs(unsigned size) const {
  switch (size) {
  case 1:
    return smCount;
  case 2:
    return smCountInPairs;
  case 4:
    return smCountInFours;
  default:
    return 0;
  }
}

std::string TargetRow::getFeatures(unsigned ptx) {
  return "+ptx" + std::to_string(ptx);
}

llvm::StringRef mlir::attn::getDataLayout() {
  return "e-p3:32:32-p4:32:32-p5:32:32-p6:32:32-p7:32:32-i64:64-i128:128-"
         "i256:256-v16:16-v32:32-n16:32:64";
}

llvm::StringRef mlir::attn::getTriple() { return "nvptx64-nvidia-cuda"; }
