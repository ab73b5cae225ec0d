//===- CycleCosts.cpp - What instructions cost ----------------------------===//

#include "CycleCosts.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::StringRef;

// Latencies in cycles, as measured for Hopper by others and here
// (docs/CycleModel.md).
static constexpr double aluLatency = 4, fmaLatency = 4, specialLatency = 18,
                        sharedLatency = 26, shuffleLatency = 22,
                        l2Latency = 420, mmaLatency = 18, copyLatency = 650,
                        branchLatency = 0, tensorEngineLatency = 60;

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
static double getWeight(StringRef text, const TargetRow &target, bool isSync) {
  if (text.contains(".tf32"))
    return 2;
  bool isNarrow = text.contains(".e4m3") || text.contains(".e5m2") ||
                  text.contains(".s8") || text.contains(".u8") ||
                  text.contains("kind::f8f6f4") || text.contains("kind::i8");
  if (!isNarrow || (isSync && text.contains(".e")))
    return 1;
  return target.tensorFlopFp8 && !isSync
             ? double(target.tensorFlopF16) / target.tensorFlopFp8
             : 0.5;
}

namespace {

/// Costs by the class of an instruction.
class ClassCosts {
public:
  explicit ClassCosts(const TargetRow &target);
  CycleCost get(const TraceInstruction &inst) const;

private:
  static CycleCost unit(Activity activity, Unit unit, double interval,
                        double latency);
  void addArithmetic(const TargetRow &target);
  void addMemory(const TargetRow &target);
  void addBarriersAndCopies(const TargetRow &target);
  void addProducts(const TargetRow &target);

  CycleCost getConversion(StringRef text) const;

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

ClassCosts::ClassCosts(const TargetRow &target) {
  addArithmetic(target);
  addMemory(target);
  addBarriersAndCopies(target);
  addProducts(target);
}

void ClassCosts::addArithmetic(const TargetRow &target) {
  // Cycles that one scheduler's share of a unit takes for 32 lanes.
  double fma = 128.0 / target.fmaPerClock;
  double special = 128.0 / target.expPerClock;
  CycleCost free;
  free.isFree = true;
  byClass["move"] = byClass["ld.param"] = byClass["other"] = free;
  byClass["alu"] = byClass["compare"] = byClass["vote"] =
      unit(Activity::Compute, Unit::Alu, 2, aluLatency);
  byClass["imad"] = unit(Activity::Compute, Unit::Fma, 2, aluLatency);
  byClass["float"] = byClass["fma"] = byClass["half"] =
      unit(Activity::Compute, Unit::Fma, fma, fmaLatency);
  byClass["double"] = unit(Activity::Compute, Unit::Double, 2, 8);
  byClass["special"] = byClass["ex2"] =
      unit(Activity::Special, Unit::Special, special, specialLatency);
  byClass["convert"] =
      unit(Activity::Compute, Unit::Special, special, specialLatency);
  byClass["branch"] = CycleCost();
  byClass["branch"].latency = branchLatency;
}

void ClassCosts::addMemory(const TargetRow &target) {
  CycleCost shared = unit(Activity::Shared, Unit::Lsu, 0, sharedLatency);
  shared.perTraffic = 128.0 / target.sharedBytesPerClock;
  shared.queue = 32;
  CycleCost global = unit(Activity::Global, Unit::Lsu, 1, l2Latency);
  global.l2PerTraffic = 32.0 / target.l2BytesPerClock;
  global.queue = 64;
  byClass["ld.shared"] = byClass["ldmatrix"] = shared;
  byClass["st.shared"] = byClass["stmatrix"] = shared;
  byClass["shuffle"] = unit(Activity::Shared, Unit::Lsu, 1, shuffleLatency);
  byClass["ld.global"] = byClass["atomic"] = global;
  byClass["st.global"] = global;
  byClass["ld.local"] = byClass["st.local"] =
      unit(Activity::Global, Unit::Lsu, 4, 35);
  byClass["cp.async"] = global;
  byClass["cp.async"].activity = Activity::Copy;
}

void ClassCosts::addBarriersAndCopies(const TargetRow &target) {
  CycleCost issueOnly;
  byClass["barrier"] = byClass["fence"] = issueOnly;
  byClass["mbarrier"] = unit(Activity::Shared, Unit::Lsu, 1, sharedLatency);
  byClass["bulk"] = issueOnly;
  byClass["bulk"].activity = Activity::Copy;
  byClass["bulk"].enginePerUnit = 1.0 / target.l2BytesPerClock;
  byClass["bulk"].engineLatency = copyLatency;
}

void ClassCosts::addProducts(const TargetRow &target) {
  CycleCost mma = unit(Activity::Tensor, Unit::Mma, 0, mmaLatency);
  mma.perFlop = 4.0 / target.mmaSyncFlopF16;
  byClass["mma"] = mma;
  mma.perFlop = 4.0 / target.tensorFlopF16;
  // wgmma queues behind others without holding its warp.
  mma.queue = 0;
  byClass["wgmma"] = mma;
  CycleCost &tcgen05 = byClass["tcgen05"];
  tcgen05.activity = Activity::Tensor;
  tcgen05.engine = Unit::TensorEngine;
  tcgen05.enginePerUnit = 1.0 / target.tensorFlopF16;
  tcgen05.engineLatency = tensorEngineLatency;
  byClass["tmem.ld"] = byClass["tmem.st"] =
      unit(Activity::Shared, Unit::Alu, 8, sharedLatency);
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
mlir::attn::sim::makeCycleCosts(const Trace &trace, const TargetRow &target) {
  ClassCosts classes(target);
  std::vector<CycleCost> costs;
  for (const TraceInstruction &inst : trace.instructions) {
    StringRef text = inst.text;
    CycleCost cost = classes.get(inst);
    if (cost.perFlop)
      cost.perFlop *= getWeight(text, target, inst.cls == "mma");
    if (text.starts_with("tcgen05.mma"))
      cost.enginePerUnit *= getWeight(text, target, false);
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
  return costs;
}
