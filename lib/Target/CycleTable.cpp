//===- CycleTable.cpp - Numbers of the cycle model ------------------------===//
//
// Sources beyond those of TargetTable.cpp:
//   [MB]  SemiAnalysisAI/microbench-blackwell on GitHub: tcgen05.mma by shape
//         (umma_latency, umma_throughput) and copies (tma2d_latency) on a B200.
//   [CF]  NVIDIA/cudnn-frontend on GitHub, pull request 1178: exponentials and
//         float lanes of sm_100.
//   [SA]  counted in what ptxas 13.0 makes of one instruction.
//
//===----------------------------------------------------------------------===//

#include "attn/Target/CycleTable.h"
#include <vector>

using namespace mlir::attn;

namespace {

struct NumberInfo {
  CycleNumber number;
  llvm::StringLiteral key;
  llvm::StringLiteral title;
};

} // namespace

using N = CycleNumber;

static constexpr NumberInfo infos[] = {
    {N::IssueLanes, "issue", "Warp instructions issued a cycle"},
    {N::ScheduleWindow, "schedule_window",
     "Instructions by which ptxas moves others up"},
    {N::AluLanes, "alu_lanes",
     "Lanes a cycle of integers, comparisons, maxima and packs"},
    {N::FmaLanes, "fma_lanes", "Lanes a cycle of float arithmetic"},
    {N::ImadLanes, "imad_lanes", "Lanes a cycle of integer multiply-adds"},
    {N::ExpLanes, "exp_lanes", "Lanes a cycle of special functions"},
    {N::DoubleLanes, "double_lanes", "Lanes a cycle of float64"},
    {N::PackedFactor, "packed_factor",
     "Cycles of the float unit for f32x2, by those of f32"},
    {N::PackedExpInstructions, "packed_exp_instructions",
     "Special-function instructions for ex2 of f16x2 and bf16x2"},
    {N::ExponentAdd, "exponent_add",
     "Float cycles of a warp for the shift and add of a polynomial "
     "exponential"},
    {N::TensorFlop, "tensor_flop", "Tensor FLOP a cycle, 16 bits"},
    {N::TensorFlopFp8, "tensor_flop_fp8", "Tensor FLOP a cycle, fp8"},
    {N::MmaSyncFlop, "mma_sync_flop", "Tensor FLOP a cycle, mma.sync"},
    {N::TensorLatency, "tensor_latency",
     "Cycles from tcgen05.mma to the wake-up of who waits for its commit, "
     "beyond its own and those of A in shared memory"},
    {N::PairLatency, "pair_latency", "The same of a pair, M = 256"},
    {N::HalfPairLatency, "half_pair_latency", "The same of a pair, M = 128"},
    {N::PairOperands, "pair_operands",
     "Shared-memory cycles that a pair adds to each product, M = 256"},
    {N::HalfPairOperands, "half_pair_operands", "The same of a pair, M = 128"},
    {N::PairInterval, "pair_interval", "Least cycles of a pair's product"},
    {N::TensorDepth, "tensor_depth",
     "Products in flight before the thread that issues them waits"},
    {N::TmemBytes, "tmem_bytes",
     "Bytes a cycle of each quarter of tensor memory"},
    {N::TmemLatency, "tmem_latency", "Latency of tcgen05.ld"},
    {N::TmemStoreShare, "tmem_store_share",
     "Latency of tcgen05.st by that of tcgen05.ld"},
    {N::SharedBytes, "shared_bytes", "Shared memory bytes a cycle"},
    {N::OperandsShare, "operands_share",
     "Operands of tcgen05.mma take these bytes (1) or not (0)"},
    {N::FillsShare, "fills_share",
     "Bulk copies take these bytes (1) or not (0)"},
    {N::L2Bytes, "l2_bytes", "L2 bytes a cycle"},
    {N::LatencyFactor, "latency_factor", "Factor on the latencies below"},
    {N::AluLatency, "alu_latency", "Latency of integers and comparisons"},
    {N::FmaLatency, "fma_latency", "Latency of float arithmetic"},
    {N::ExpLatency, "exp_latency", "Latency of special functions"},
    {N::DoubleLatency, "double_latency", "Latency of float64"},
    {N::MmaLatency, "mma_latency", "Latency of mma.sync and wgmma"},
    {N::SharedLatency, "shared_latency", "Latency of shared memory"},
    {N::ShuffleLatency, "shuffle_latency", "Latency of shuffles"},
    {N::LocalLatency, "local_latency", "Latency of local memory"},
    {N::L2Latency, "l2_latency", "Latency of global memory in L2"},
    {N::CopyLatency, "copy_latency", "Latency of bulk copies"},
    {N::BarrierLatency, "barrier_latency",
     "Cycles from the last signal of a barrier to who waits for it"},
    {N::RemoteLatency, "remote_latency",
     "Cycles that a signal to another SM takes"},
    {N::Launch, "launch", "Cycles of start and exit of a launch"},
};

static const NumberInfo &getInfo(CycleNumber number) {
  return infos[unsigned(number)];
}

llvm::StringRef mlir::attn::getCycleKey(CycleNumber number) {
  return getInfo(number).key;
}

llvm::StringRef mlir::attn::getCycleTitle(CycleNumber number) {
  return getInfo(number).title;
}

llvm::StringRef mlir::attn::getEvidenceName(Evidence evidence) {
  static constexpr llvm::StringLiteral names[] = {"measured", "published",
                                                  "believed"};
  return names[unsigned(evidence)];
}

static CycleEntry measured(double value, llvm::StringRef source) {
  return {value, Evidence::Measured, source, {}};
}

static CycleEntry published(double value, llvm::StringRef source) {
  return {value, Evidence::Published, source, {}};
}

static CycleEntry believed(double value, llvm::StringRef source,
                           std::initializer_list<double> others) {
  return {value, Evidence::Believed, source, others};
}

static constexpr llvm::StringLiteral absentSource = "not on this chip";

bool CycleEntry::isAbsent() const { return source == absentSource; }

/// What does not exist on the chip.
static CycleEntry absent() {
  return {0, Evidence::Published, absentSource, {}};
}

/// The latencies, in cycles, that were fitted on an H200.
static void addLatencies(CycleTable &table) {
  static constexpr std::pair<CycleNumber, double> fitted[] = {
      {N::AluLatency, 4},      {N::FmaLatency, 4},      {N::ExpLatency, 18},
      {N::DoubleLatency, 8},   {N::MmaLatency, 18},     {N::SharedLatency, 26},
      {N::ShuffleLatency, 22}, {N::LocalLatency, 35},   {N::L2Latency, 420},
      {N::CopyLatency, 650},   {N::BarrierLatency, 20}, {N::Launch, 300}};
  for (auto [number, value] : fitted)
    table[number] = measured(value, "fitted on an H200");
  table[N::LatencyFactor] = measured(1, "fitted on an H200");
  // Distributed shared memory answers in about 180 cycles; a signal goes one
  // way.
  table[N::RemoteLatency] =
      believed(100, "half of a load from another SM", {34, 200});
}

/// What is the same on all chips, and what the target table says.
static CycleTable makeCommon(const TargetRow &target) {
  CycleTable table;
  table[N::IssueLanes] = published(target.issuePerClock, "[TI]");
  table[N::ScheduleWindow] = measured(24, "fitted on an H200");
  table[N::AluLanes] = published(64, "[TI]");
  table[N::FmaLanes] = published(target.fmaPerClock, "[TI]");
  table[N::ImadLanes] = published(64, "[TI]");
  table[N::ExpLanes] = published(target.expPerClock, "[TI]");
  table[N::DoubleLanes] = published(64, "[TI]");
  table[N::PackedFactor] = absent();
  table[N::PackedExpInstructions] = measured(2, "[SA]");
  table[N::ExponentAdd] = absent();
  table[N::TensorFlop] = published(target.tensorFlopF16, "[WP]");
  table[N::TensorFlopFp8] = published(target.tensorFlopFp8, "[WP]");
  table[N::MmaSyncFlop] = published(target.mmaSyncFlopF16, "[WP]");
  for (CycleNumber number :
       {N::TensorLatency, N::PairLatency, N::HalfPairLatency, N::PairOperands,
        N::HalfPairOperands, N::PairInterval, N::TensorDepth, N::TmemBytes,
        N::TmemLatency, N::TmemStoreShare})
    table[number] = absent();
  table[N::SharedBytes] = published(target.sharedBytesPerClock, "[CG]");
  table[N::OperandsShare] = table[N::FillsShare] =
      measured(0, "the attention kernels of the H200 agree without");
  table[N::L2Bytes] = published(target.l2BytesPerClock, "[WP]");
  addLatencies(table);
  return table;
}

/// Chips before Hopper: its latencies.
static void addAmpere(CycleTable &table, bool isSmall) {
  for (unsigned i = unsigned(N::AluLatency); i != numCycleNumbers; ++i)
    if (CycleNumber(i) != N::RemoteLatency)
      table[CycleNumber(i)].evidence = Evidence::Believed;
  table[N::RemoteLatency] = absent();
  table[N::LatencyFactor] =
      believed(1, "the latencies are Hopper's", {0.75, 1.25});
  table[N::OperandsShare] = table[N::FillsShare] = believed(0, "as sm_90", {});
  if (isSmall)
    table[N::L2Bytes] =
        believed(table[N::L2Bytes].value, "nothing is known", {24, 48});
}

static void addHopper(CycleTable &table) {
  table[N::MmaSyncFlop].evidence = table[N::TensorFlop].evidence =
      Evidence::Measured;
  table[N::MmaSyncFlop].source = table[N::TensorFlop].source = "[M]";
  table[N::L2Bytes] =
      believed(table[N::L2Bytes].value, "as sm_80; 30 were seen", {30});
}

/// Datacentre Blackwell. Nobody here has measured anything on it.
static void addBlackwell(CycleTable &table, bool hasPackedExp) {
  addAmpere(table, /*isSmall=*/false);
  table[N::LatencyFactor] = believed(1, "the latencies are Hopper's", {1.5});
  table[N::BarrierLatency] = believed(20, "Hopper's", {60});
  table[N::CopyLatency] =
      believed(370, "the least of [MB] for 1 to 16 KB; Hopper's is 650", {650});
  table[N::RemoteLatency] =
      believed(100, "half of a load from another SM of Hopper", {34, 200});
  table[N::AluLanes] = believed(64, "as sm_90", {128});
  table[N::FmaLanes].source = "[CF]: 120 to 128";
  table[N::ExpLanes].source = "[CF]";
  table[N::PackedFactor] = published(2, "[CF]");
  table[N::PackedExpInstructions] =
      hasPackedExp ? believed(1, "[SA]; at half of the rate it takes 2", {2})
                   : measured(2, "[SA]");
  // 7.45 lanes for an exponential [CF], of which its three packed instructions
  // explain 6.
  table[N::ExponentAdd] =
      published(1.45, "what [CF] measures beyond the packed instructions");
  table[N::ScheduleWindow] = measured(64, "[SA]: loops of sm_100a");
  table[N::MmaSyncFlop] =
      believed(table[N::MmaSyncFlop].value, "as sm_80", {1024, 4096});
  table[N::TensorFlop].source = "[WP], [MB]";
  table[N::TensorFlopFp8].source = "[WP], [MB]";
  table[N::TensorLatency] = published(104, "[MB]");
  table[N::PairLatency] = published(133, "[MB]");
  table[N::HalfPairLatency] = published(141, "[MB]");
  table[N::PairOperands] = published(2.6, "[MB], fitted to 12 shapes");
  table[N::HalfPairOperands] = published(0.7, "[MB], fitted to 6 shapes");
  table[N::PairInterval] =
      published(17, "[MB], N = 64 with A in tensor memory");
  table[N::TensorDepth] = published(4, "[MB]: so many saturate the pipe");
  table[N::TmemBytes] = believed(128, "32 lanes of 4 bytes", {64});
  table[N::TmemLatency] =
      believed(100, "published figures contradict each other", {30, 400});
  // With the corners of tmem_latency.
  table[N::TmemStoreShare] = believed(0.3, "no figure is published", {});
  table[N::OperandsShare] =
      published(1, "[MB]: N = 64 takes 48 cycles, not 32");
  table[N::FillsShare] = believed(1, "one port for all", {0});
  table[N::L2Bytes] = believed(table[N::L2Bytes].value, "[MB] saw 58", {39});
}

/// The tensor core of sm_103 is taken for that of sm_100, which others
/// measured.
static void addUltra(CycleTable &table) {
  for (unsigned i = unsigned(N::TensorLatency); i <= unsigned(N::TensorDepth);
       ++i)
    table[CycleNumber(i)].source = "[MB], of sm_100";
  table[N::ExpLanes].source = "[WP]";
}

static CycleTable makeTable(const TargetRow &target) {
  CycleTable table = makeCommon(target);
  if (target.has(Capability::Tcgen05))
    addBlackwell(table, target.has(Capability::PackedExp));
  else if (target.has(Capability::Wgmma))
    addHopper(table);
  else
    addAmpere(table, /*isSmall=*/target.chip != "sm_80");
  if (target.has(Capability::Tcgen05LdRed))
    addUltra(table);
  return table;
}

const CycleTable &mlir::attn::getCycleTable(const TargetRow &target) {
  static const std::vector<CycleTable> tables = [] {
    std::vector<CycleTable> made;
    for (const TargetRow &row : getTargets())
      made.push_back(makeTable(row));
    return made;
  }();
  return tables[&target - getTargets().data()];
}

const ModelError *mlir::attn::getModelError(const TargetRow &target) {
  static constexpr ModelError hopper = {0.20, 0.55, "an H200"};
  return target.has(Capability::Wgmma) ? &hopper : nullptr;
}

CycleNumbers CycleTable::getNominal() const {
  CycleNumbers numbers;
  for (unsigned i = 0; i != numCycleNumbers; ++i)
    numbers[CycleNumber(i)] = entries[i].value;
  return numbers;
}

llvm::SmallVector<CycleNumber> CycleTable::getUncertain() const {
  llvm::SmallVector<CycleNumber> found;
  for (unsigned i = 0; i != numCycleNumbers; ++i)
    if (!entries[i].others.empty())
      found.push_back(CycleNumber(i));
  return found;
}

unsigned CycleTable::count(Evidence evidence) const {
  unsigned result = 0;
  for (const CycleEntry &entry : entries)
    result += entry.evidence == evidence;
  return result;
}
