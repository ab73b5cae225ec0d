//===- CycleCosts.cpp - What instructions cost ----------------------------===//

#include "CycleCosts.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::StringRef;

using N = CycleNumber;

/// The number behind `prefix`, or 0.
static unsigned numberAfter(StringRef text, StringRef prefix) {
  text = text.drop_front(prefix.size()).ltrim();
  unsigned number = 0;
  text.consumeInteger(0, number);
  return number;
}

/// Groups of asynchronous operations are known by their mnemonics.
static void setGroup(CycleCost &cost, StringRef text) {
  struct Row {
    const char *prefix;
    Group group;
    GroupStep step;
    bool hasCount;
  };
  static const Row rows[] = {
      {"cp.async.commit_group", Group::Copies, GroupStep::Commit, false},
      {"cp.async.wait_group", Group::Copies, GroupStep::Wait, true},
      {"cp.async.wait_all", Group::Copies, GroupStep::Wait, false},
      {"cp.async.bulk.commit_group", Group::Bulk, GroupStep::Commit, false},
      {"cp.async.bulk.wait_group.read", Group::Bulk, GroupStep::Wait, true},
      {"cp.async.bulk.wait_group", Group::Bulk, GroupStep::Wait, true},
      {"cp.async.bulk", Group::None, GroupStep::Add, false},
      {"cp.reduce.async.bulk", Group::None, GroupStep::Add, false},
      {"cp.async.mbarrier", Group::None, GroupStep::Add, false},
      {"cp.async", Group::Copies, GroupStep::Add, false},
      {"wgmma.mma_async", Group::Products, GroupStep::Add, false},
      {"wgmma.commit_group.sync.aligned", Group::Products, GroupStep::Commit,
       false},
      {"wgmma.wait_group.sync.aligned", Group::Products, GroupStep::Wait, true},
      {"tcgen05.ld", Group::TmemLoads, GroupStep::Add, false},
      {"tcgen05.st", Group::TmemStores, GroupStep::Add, false},
      {"tcgen05.wait::ld", Group::TmemLoads, GroupStep::Wait, false},
      {"tcgen05.wait::st", Group::TmemStores, GroupStep::Wait, false},
  };
  for (const Row &row : rows) {
    if (!text.starts_with(row.prefix))
      continue;
    cost.group = row.group;
    cost.step = row.step;
    if (row.step == GroupStep::Wait) {
      cost.waitsForAll = !row.hasCount;
      if (row.hasCount)
        cost.left = numberAfter(text, row.prefix);
    }
    return;
  }
}

static void setMemory(CycleCost &cost, StringRef cls) {
  constexpr uint8_t shared = 1, global = 2;
  if (cls == "ld.shared" || cls == "ldmatrix")
    cost.loads = shared;
  else if (cls == "ld.global")
    cost.loads = global;
  else if (cls == "st.shared" || cls == "stmatrix")
    cost.stores = shared;
  else if (cls == "st.global")
    cost.stores = global;
  else if (cls == "atomic" || cls == "barrier" || cls == "fence" ||
           cls == "mbarrier" || cls == "bulk")
    cost.stores = shared | global;
  else if (cls == "cp.async")
    cost.loads = shared | global;
}

/// Divisions are one instruction of PTX and a routine of the machine.
static void setDivision(CycleCost &cost, StringRef text) {
  if (!text.starts_with("div.") && !text.starts_with("rem."))
    return;
  bool isFloat = text.contains(".f");
  if (isFloat && (text.contains(".full") || text.contains(".approx")))
    return;
  double instructions = isFloat ? 12 : text.contains("64") ? 70 : 20;
  cost.interval = 2 * instructions;
  cost.latency = 5 * instructions;
}

/// FLOP of 16-bit operands that take as long as one of this instruction.
static double getWeight(StringRef text, const CycleNumbers &numbers,
                        bool isSync) {
  if (text.contains(".tf32"))
    return 2;
  bool isNarrow = text.contains(".e4m3") || text.contains(".e5m2") ||
                  text.contains(".s8") || text.contains(".u8");
  if (!isNarrow || (isSync && text.contains(".e")))
    return 1;
  return numbers[N::TensorFlopFp8] && !isSync
             ? numbers[N::TensorFlop] / numbers[N::TensorFlopFp8]
             : 0.5;
}

/// Bytes of tensor memory that a warp moves with tcgen05.ld or st.
static unsigned getTmemBytes(StringRef text) {
  unsigned registers = text.contains(".16x256b.")   ? 4
                       : text.contains(".16x128b.") ? 2
                                                    : 1;
  // A register that packs two columns moves both.
  if (text.contains(".pack::16b") || text.contains(".unpack::16b"))
    registers *= 2;
  StringRef rest = text;
  while (!rest.empty()) {
    StringRef part;
    std::tie(part, rest) = rest.split('.');
    unsigned repeat = 0;
    if (part.consume_front("x") &&
        !part.take_until(llvm::isSpace).getAsInteger(10, repeat))
      return registers * repeat * 32 * 4;
  }
  return registers * 32 * 4;
}

/// Packed instructions, and ex2 of two halves.
static void setPacked(CycleCost &cost, StringRef text,
                      const CycleNumbers &numbers) {
  if (text.contains(".f32x2")) {
    cost.interval *= numbers[N::PackedFactor];
  } else if (text.starts_with("ex2.") && text.contains("f16x2")) {
    unsigned instructions = numbers[N::PackedExpInstructions];
    cost.interval *= instructions;
    // What is made of two halves one by one is put together again.
    cost.issues = instructions > 1 ? instructions + 1 : 1;
  }
}

/// A shift that only an addition reads is one instruction with it, as in the
/// last step of a polynomial exponential: the shift is free.
static void fuseShifts(const Trace &trace, const CycleNumbers &numbers,
                       std::vector<CycleCost> &costs) {
  llvm::DenseMap<uint32_t, unsigned> readers, lastReader;
  for (const auto &[i, inst] : llvm::enumerate(trace.instructions))
    for (uint32_t reg : inst.reads) {
      ++readers[reg];
      lastReader[reg] = i;
    }
  constexpr unsigned exponentBits = 23;
  for (const auto &[i, inst] : llvm::enumerate(trace.instructions)) {
    StringRef text = inst.text;
    if (!text.starts_with("shl.b32") || inst.writes.size() != 1 ||
        readers.lookup(inst.writes[0]) != 1)
      continue;
    unsigned reader = lastReader.lookup(inst.writes[0]);
    if (!StringRef(trace.instructions[reader].text).starts_with("add.") ||
        costs[reader].unit != Unit::Alu)
      continue;
    costs[i] = CycleCost();
    costs[i].isFree = true;
    unsigned amount = 0;
    if (!text.rsplit(',').second.trim(" ;").getAsInteger(10, amount) &&
        amount == exponentBits)
      costs[reader].alsoFma = numbers[N::ExponentAdd];
  }
}

namespace {

/// Costs by the class of an instruction.
class ClassCosts {
public:
  explicit ClassCosts(const CycleNumbers &numbers);
  CycleCost get(const TraceInstruction &inst) const;

private:
  static CycleCost unit(Activity activity, Unit unit, double interval,
                        double latency);
  void addArithmetic();
  void addMemory();
  void addBarriersAndCopies();
  void addProducts();
  /// Cycles of a scheduler's unit for the lanes of a warp.
  double perWarp(CycleNumber lanes) const { return 128.0 / numbers[lanes]; }
  double latency(CycleNumber number) const {
    return numbers[number] * numbers[N::LatencyFactor];
  }

  CycleCost getConversion(StringRef text) const;

  const CycleNumbers &numbers;
  llvm::StringMap<CycleCost> byClass;
};

} // namespace

CycleCost ClassCosts::unit(Activity activity, Unit unit, double interval,
                           double latency) {
  CycleCost cost;
  cost.activity = activity;
  cost.unit = unit;
  cost.interval = interval;
  cost.latency = latency;
  cost.isShared = unit >= Unit::Lsu;
  cost.queue = 8;
  return cost;
}

ClassCosts::ClassCosts(const CycleNumbers &numbers) : numbers(numbers) {
  addArithmetic();
  addMemory();
  addBarriersAndCopies();
  addProducts();
}

void ClassCosts::addArithmetic() {
  CycleCost free;
  free.isFree = true;
  byClass["move"] = byClass["ld.param"] = byClass["other"] = free;
  byClass["alu"] = byClass["compare"] = byClass["vote"] =
      unit(Activity::Compute, Unit::Alu, perWarp(N::AluLanes),
           latency(N::AluLatency));
  byClass["imad"] = unit(Activity::Compute, Unit::Fma, perWarp(N::ImadLanes),
                         latency(N::AluLatency));
  byClass["float"] = byClass["fma"] = byClass["half"] =
      unit(Activity::Compute, Unit::Fma, perWarp(N::FmaLanes),
           latency(N::FmaLatency));
  byClass["double"] = unit(Activity::Compute, Unit::Double,
                           perWarp(N::DoubleLanes), latency(N::DoubleLatency));
  byClass["special"] = byClass["ex2"] =
      unit(Activity::Special, Unit::Special, perWarp(N::ExpLanes),
           latency(N::ExpLatency));
  byClass["convert"] = unit(Activity::Compute, Unit::Special,
                            perWarp(N::ExpLanes), latency(N::ExpLatency));
  byClass["branch"] = CycleCost();
}

void ClassCosts::addMemory() {
  CycleCost shared =
      unit(Activity::Shared, Unit::Lsu, 0, latency(N::SharedLatency));
  shared.perTraffic = 128.0 / numbers[N::SharedBytes];
  shared.queue = 32;
  CycleCost global =
      unit(Activity::Global, Unit::Lsu, 1, latency(N::L2Latency));
  global.l2PerTraffic = 32.0 / numbers[N::L2Bytes];
  global.queue = 64;
  byClass["ld.shared"] = byClass["ldmatrix"] = shared;
  byClass["st.shared"] = byClass["stmatrix"] = shared;
  byClass["shuffle"] =
      unit(Activity::Shared, Unit::Lsu, 1, latency(N::ShuffleLatency));
  byClass["ld.global"] = byClass["atomic"] = global;
  byClass["st.global"] = global;
  byClass["ld.local"] = byClass["st.local"] =
      unit(Activity::Global, Unit::Lsu, 4, latency(N::LocalLatency));
  byClass["cp.async"] = global;
  byClass["cp.async"].activity = Activity::Copy;
}

void ClassCosts::addBarriersAndCopies() {
  CycleCost issueOnly;
  byClass["barrier"] = byClass["fence"] = issueOnly;
  byClass["mbarrier"] =
      unit(Activity::Shared, Unit::Lsu, 1, latency(N::SharedLatency));
  byClass["bulk"] = issueOnly;
  byClass["bulk"].activity = Activity::Copy;
}

void ClassCosts::addProducts() {
  CycleCost mma = unit(Activity::Tensor, Unit::Mma, 0, latency(N::MmaLatency));
  mma.perFlop = 4.0 / numbers[N::MmaSyncFlop];
  byClass["mma"] = mma;
  mma.perFlop = 4.0 / numbers[N::TensorFlop];
  // wgmma queues behind others without holding its warp.
  mma.queue = 0;
  byClass["wgmma"] = mma;
  byClass["tcgen05"].activity = Activity::Tensor;
  CycleCost tmem = unit(Activity::Shared, Unit::Tmem, 0, 0);
  tmem.queue = 0;
  tmem.latency = numbers[N::TmemLatency];
  byClass["tmem.ld"] = tmem;
  tmem.latency = numbers[N::TmemLatency] * numbers[N::TmemStoreShare];
  byClass["tmem.st"] = tmem;
}

/// Packing two floats and widening bf16 or integers is arithmetic.
CycleCost ClassCosts::getConversion(StringRef text) const {
  bool isInteger = !text.contains(".f");
  bool isPack = text.contains("x2") || text.contains(".bf16");
  if (text.starts_with("cvt.u64.u32") || text.starts_with("cvta"))
    return byClass.lookup("move");
  return byClass.lookup(isInteger || isPack ? "alu" : "convert");
}

CycleCost ClassCosts::get(const TraceInstruction &inst) const {
  if (inst.cls == "convert")
    return getConversion(inst.text);
  auto it = byClass.find(inst.cls);
  return it == byClass.end() ? byClass.lookup("alu") : it->second;
}

std::vector<CycleCost>
mlir::attn::sim::makeCycleCosts(const Trace &trace,
                                const CycleNumbers &numbers) {
  ClassCosts classes(numbers);
  std::vector<CycleCost> costs;
  for (const TraceInstruction &inst : trace.instructions) {
    StringRef text = inst.text;
    CycleCost cost = classes.get(inst);
    // Maxima are the integer unit's; the figures of the chips without tensor
    // memory rest on the float unit for them.
    if (numbers[N::TmemBytes] && cost.unit == Unit::Fma &&
        (text.starts_with("max.") || text.starts_with("min.")))
      cost = classes.get({0, inst.text, "compare", {}, {}});
    if (cost.perFlop)
      cost.perFlop *= getWeight(text, numbers, inst.cls == "mma");
    if (cost.unit == Unit::Tmem) {
      cost.tmemBytes = getTmemBytes(text);
      cost.interval = cost.tmemBytes / numbers[N::TmemBytes];
    }
    setPacked(cost, text, numbers);
    setMemory(cost, inst.cls);
    if (inst.cls == "st.global")
      cost.l2PerTraffic *= 2;
    setDivision(cost, text);
    setGroup(cost, text);
    if (cost.group != Group::None && cost.step != GroupStep::Add) {
      CycleCost plain;
      plain.group = cost.group;
      plain.step = cost.step;
      plain.left = cost.left;
      plain.waitsForAll = cost.waitsForAll;
      cost = plain;
    }
    costs.push_back(cost);
  }
  // Counted in what ptxas makes for chips with tensor memory, to which the
  // other chips' figures are not fitted.
  if (numbers[N::TmemBytes])
    fuseShifts(trace, numbers, costs);
  return costs;
}
