//===- Instrument.cpp - The pass attn-instrument --------------------------===//
//
// What is kept and what is checked stands in docs/Instrument.md. Words of
// shared memory lie behind the kernel's own bytes:
//
//   0               given up: no wait of this CTA waits any more
//   2 + 2 b         signals of barrier b, the number of the op of the last one
//   then            for each partition and array of barriers that it uses, for
//                   each of its warps and each barrier of the array: the phases
//                   waited for, and the signals sent
//
//===----------------------------------------------------------------------===//

#include "Words.h"
#include "attn/Analysis/SharedAccess.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Target/TargetTable.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNINSTRUMENTPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::instrument;
using arith::CmpIPredicate;

namespace {

struct Options {
  bool checks;
  int64_t timeout, delay, seed;
};

/// Which ops of the module can fail how; a record of `attn_reports` each.
class Sites {
public:
  /// The number of the record.
  int64_t add(StringRef check, Operation *op, MBarrierAllocOp barrier,
              StringRef partition, StringRef buffer = "");
  int64_t size() const { return entries.size(); }
  std::string toText() const {
    return llvm::formatv("{0}", llvm::json::Value(llvm::json::Array(entries)));
  }

private:
  llvm::json::Array entries;
};

/// An array of barriers.
struct Barriers {
  int64_t first = 0;
  int64_t slots = 1;
  /// Signals of a phase; 0 where some are not counted.
  int64_t count = 0;
};

/// The warps that run an op.
struct Team {
  WarpSpecializeOp op;
  unsigned index = 0;
  int64_t firstWarp = 0, warps = 0;
  StringRef name;
};

class Instrumenter {
public:
  Instrumenter(gpu::GPUFuncOp kernel, const Options &options, Sites &sites)
      : kernel(kernel), options(options), sites(sites) {}

  /// Puts in all checks of the kernel.
  LogicalResult run();
  /// Bytes that they take behind those of the kernel.
  int64_t getBytes() const { return 4 * words; }

private:
  LogicalResult collectBarriers();
  void collectUses();
  Team findTeam(Operation *op);
  bool isAlone(Operation *op) { return op->getParentOfType<ElectOp>() != nullptr; }
  void clearWords();

  void instrument(MBarrierWaitOp op);
  void instrument(MBarrierArriveOp op);
  void instrument(MBarrierExpectTxOp op);
  void instrumentWrite(TmaLoadOp op);
  void instrumentRead(Operation *op, AllocOp alloc, SlotOp slot);
  void signal(Operation *op, Value barriers, Value index,
              std::optional<int64_t> ctas, bool leader);
  /// Waits with a limit; true at the end where it saw the phase.
  void waitWithLimit(MBarrierWaitOp op, Words &w, ImplicitLocOpBuilder &b,
                     Value phase);
  void giveUp(ImplicitLocOpBuilder &b, Words &w, int64_t record,
              ArrayRef<Value> words);
  void pause(Words &w, ImplicitLocOpBuilder &b, int64_t site, Value count);
  /// Calls `body` in the lane that counts for its warp.
  void inOneLane(ImplicitLocOpBuilder &b, Words &w, Operation *op,
                 function_ref<void()> body);
  void reportIf(ImplicitLocOpBuilder &b, Words &w, Value condition,
                int64_t record, Value slot, Value expected, Value seen,
                Value other);

  MBarrierAllocOp allocOf(Value barriers) {
    return barriers.getDefiningOp<MBarrierAllocOp>();
  }
  /// Address of the signals of a barrier, which the last op lies behind.
  Value signalsOf(Words &w, MBarrierAllocOp barriers, Value index) {
    int64_t first = 2 + 2 * arrays[barriers].first;
    return w.add(w.sharedAddress(start + 4 * first), w.multiply(index, 8));
  }
  /// Address of the phases that the warp has waited for; its signals lie
  /// behind.
  Value ownOf(Words &w, const Team &team, MBarrierAllocOp barriers,
              Value index);
  Value divide(ImplicitLocOpBuilder &b, Words &w, Value signals,
               int64_t count) {
    return count == 1 ? signals
                      : arith::DivUIOp::create(b, signals, w.constant(count))
                            .getResult();
  }

  gpu::GPUFuncOp kernel;
  const Options &options;
  Sites &sites;
  int64_t start = 0, words = 2;
  llvm::MapVector<MBarrierAllocOp, Barriers> arrays;
  llvm::MapVector<std::pair<Region *, Operation *>, int64_t> ownWords;
  /// By buffer the barriers that the copies into it signal, null for several.
  DenseMap<AllocOp, MBarrierAllocOp> published;
  /// What the warps of a partition do all of them, each for itself.
  DenseSet<std::pair<Region *, Operation *>> waited, signalled;
};

} // namespace

//===----------------------------------------------------------------------===//
// Sites
//===----------------------------------------------------------------------===//

/// `file:line:column`, or what there is.
static std::string describe(Location loc) {
  std::string text;
  if (auto file = loc->findInstanceOf<FileLineColLoc>())
    return llvm::formatv("{0}:{1}:{2}", file.getFilename().getValue(),
                         file.getLine(), file.getColumn());
  return "";
}

static StringRef nameOf(MBarrierAllocOp op) {
  return op.getName().value_or("mbarriers");
}

int64_t Sites::add(StringRef check, Operation *op, MBarrierAllocOp barrier,
                   StringRef partition, StringRef buffer) {
  auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
  llvm::json::Object entry{{"check", check},
                           {"op", op->getName().getStringRef()},
                           {"location", describe(op->getLoc())},
                           {"kernel", kernel.getName()},
                           {"barrier", nameOf(barrier)},
                           {"slots", barrier.getType().getCount()},
                           {"partition", partition}};
  if (!buffer.empty())
    entry["buffer"] = buffer;
  entries.push_back(std::move(entry));
  return entries.size() - 1;
}

//===----------------------------------------------------------------------===//
// What the kernel has
//===----------------------------------------------------------------------===//

LogicalResult Instrumenter::collectBarriers() {
  int64_t total = 0;
  kernel.walk([&](MBarrierAllocOp op) {
    Barriers &array = arrays[op];
    array.first = total;
    array.slots = op.getType().getCount();
    total += array.slots;
  });
  LogicalResult result = success();
  kernel.walk([&](Operation *op) {
    for (Value operand : op->getOperands()) {
      if (!isa<MBarriersType>(operand.getType()))
        continue;
      MBarrierAllocOp alloc = allocOf(operand);
      if (!alloc) {
        result = op->emitOpError("cannot be checked as it runs: expected "
                                 "barriers of an 'attn.mbarrier.alloc' of the "
                                 "kernel");
        continue;
      }
      Barriers &array = arrays[alloc];
      if (auto init = dyn_cast<MBarrierInitOp>(op)) {
        // Several counts are none.
        array.count = array.count == 0 ? init.getCount() : -1;
      } else if (!isa<MBarrierInvalOp, MBarrierWaitOp, MBarrierArriveOp,
                      MBarrierExpectTxOp, TmaLoadOp>(op)) {
        array.count = -1;
      }
    }
  });
  for (auto &[op, array] : arrays)
    array.count = std::max<int64_t>(array.count, 0);
  words += 2 * total;
  return result;
}

void Instrumenter::collectUses() {
  auto note = [&](auto &set, Operation *op, Value barriers) {
    Team team = findTeam(op);
    if (!isAlone(op))
      set.insert({team.op ? &team.op.getPartitions()[team.index] : nullptr,
                  allocOf(barriers).getOperation()});
  };
  kernel.walk([&](Operation *op) {
    if (auto wait = dyn_cast<MBarrierWaitOp>(op))
      note(waited, op, wait.getBarriers());
    if (auto arrive = dyn_cast<MBarrierArriveOp>(op))
      note(signalled, op, arrive.getBarriers());
    auto copy = dyn_cast<TmaLoadOp>(op);
    if (!copy || !copy.getBarriers())
      return;
    AllocOp alloc = findAlloc(copy.getDest());
    MBarrierAllocOp barriers = allocOf(copy.getBarriers());
    if (auto [it, isNew] = published.try_emplace(alloc, barriers);
        !isNew && it->second != barriers)
      it->second = {};
  });
}

Team Instrumenter::findTeam(Operation *op) {
  Team team;
  for (Operation *place = op; place != kernel; place = place->getParentOp()) {
    auto partitions = dyn_cast<WarpSpecializeOp>(place->getParentOp());
    if (!partitions)
      continue;
    team.op = partitions;
    team.index = place->getParentRegion()->getRegionNumber();
    team.firstWarp = partitions.getFirstWarp(team.index);
    team.warps = partitions.getWarps()[team.index];
    team.name = cast<StringAttr>(partitions.getNames()[team.index]).getValue();
    return team;
  }
  for (auto partitions : kernel.getOps<WarpSpecializeOp>())
    team.warps = partitions.getTotalWarps();
  if (team.warps == 0)
    if (auto grid = getWarpGrid(kernel); succeeded(grid))
      team.warps = grid->first * grid->second;
  return team;
}

Value Instrumenter::ownOf(Words &w, const Team &team, MBarrierAllocOp barriers,
                          Value index) {
  WarpSpecializeOp op = team.op;
  std::pair<Region *, Operation *> key(
      op ? &op.getPartitions()[team.index] : nullptr, barriers);
  int64_t slots = arrays[barriers].slots;
  auto [it, isNew] = ownWords.try_emplace(key, words);
  if (isNew)
    words += 2 * slots * team.warps;
  Value address =
      w.sharedAddress(start + 4 * it->second - 8 * slots * team.firstWarp);
  address = w.add(address, w.multiply(w.warp(), 8 * slots));
  return w.add(address, w.multiply(index, 8));
}

//===----------------------------------------------------------------------===//
// Parts of checks
//===----------------------------------------------------------------------===//

void Instrumenter::inOneLane(ImplicitLocOpBuilder &b, Words &w, Operation *op,
                             function_ref<void()> body) {
  if (isAlone(op))
    return body();
  auto branch = scf::IfOp::create(b, w.isFirstLane(), /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    body();
  }
  // Matrix instructions want all lanes at one place.
  NVVM::SyncWarpOp::create(b, w.constant(-1));
}

void Instrumenter::reportIf(ImplicitLocOpBuilder &b, Words &w, Value condition,
                            int64_t record, Value slot, Value expected,
                            Value seen, Value other) {
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  w.report(record, {w.cta(), w.warp(), slot, expected, seen, other});
}

/// Steps of a random generator that mix what comes in (those of MurmurHash3's
/// end, which are in the public domain).
static Value mix(ImplicitLocOpBuilder &b, Words &w, Value value) {
  auto fold = [&](int64_t bits) {
    value = arith::XOrIOp::create(
        b, value, arith::ShRUIOp::create(b, value, w.constant(bits)));
  };
  fold(16);
  value = arith::MulIOp::create(b, value, w.constant(int32_t(0x85ebca6b)));
  fold(13);
  value = arith::MulIOp::create(b, value, w.constant(int32_t(0xc2b2ae35)));
  fold(16);
  return value;
}

void Instrumenter::pause(Words &w, ImplicitLocOpBuilder &b, int64_t site,
                         Value count) {
  if (options.delay == 0)
    return;
  Value seed = w.add(w.loadSeed(), w.constant(int32_t(options.seed)));
  seed = mix(b, w, w.add(seed, w.multiply(w.cta(), 64)));
  seed = mix(b, w, w.add(seed, w.multiply(w.warp(), 4096)));
  seed = mix(b, w, w.add(seed, w.add(count, w.constant(site << 20))));
  // Half of the pauses are none.
  Value isPause = w.compare(CmpIPredicate::slt, seed, w.constant(0));
  auto branch = scf::IfOp::create(b, isPause, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value bits = arith::ShRUIOp::create(b, seed, w.constant(4));
  w.sleep(arith::RemUIOp::create(b, bits, w.constant(options.delay + 1)));
}

//===----------------------------------------------------------------------===//
// Waits
//===----------------------------------------------------------------------===//

/// Waits after which a CTA that has given up ends: loops that go on until a
/// word says so would never.
static constexpr int64_t kWaitsBehind = 1 << 20;
/// Pauses in which all others that wait see that one of them gave up.
static constexpr int64_t kPauses = 32, kPauseNanoseconds = 200000;

void Instrumenter::giveUp(ImplicitLocOpBuilder &b, Words &w, int64_t record,
                          ArrayRef<Value> values) {
  w.report(record, values);
  auto loop = scf::ForOp::create(b, w.constant(0), w.constant(kPauses),
                                 w.constant(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  w.sleep(w.constant(kPauseNanoseconds));
}

void Instrumenter::waitWithLimit(MBarrierWaitOp op, Words &w,
                                 ImplicitLocOpBuilder &b, Value phase) {
  Team team = findTeam(op);
  MBarrierAllocOp alloc = allocOf(op.getBarriers());
  int64_t record = sites.add("hang", op, alloc, team.name);
  Value flag = w.sharedAddress(start);
  Value address = w.add(w.sharedAddress(alloc.getOffset().value_or(0)),
                        w.multiply(op.getIndex(), 8));
  Value pointer = LLVM::IntToPtrOp::create(
      b, LLVM::LLVMPointerType::get(b.getContext(), 3), address);
  Type i64 = b.getI64Type();
  Value none = arith::ConstantIntOp::create(b, 0, 64);
  auto loop = scf::WhileOp::create(b, TypeRange(i64), ValueRange(none));
  OpBuilder::InsertionGuard guard(b);
  Block *before = b.createBlock(&loop.getBefore(), {}, TypeRange(i64),
                                {op.getLoc()});
  Value done = NVVM::MBarrierTryWaitOp::create(
      b, b.getI1Type(), pointer, op.getParity(), /*ticks=*/Value(),
      NVVM::MemScopeKind::CTA);
  Value isTrue = arith::ConstantIntOp::create(b, 1, 1);
  Value started = before->getArgument(0);
  auto branch = scf::IfOp::create(
      b, TypeRange{b.getI1Type(), i64},
      arith::XOrIOp::create(b, done, isTrue).getResult(),
      /*addThenBlock=*/true, /*addElseBlock=*/true);
  b.setInsertionPointToStart(branch.elseBlock());
  Value isFalse = arith::ConstantIntOp::create(b, 0, 1);
  scf::YieldOp::create(b, ValueRange{isFalse, started});

  // Not yet complete.
  b.setInsertionPointToStart(branch.thenBlock());
  Value now = w.now();
  Value isFirst = arith::CmpIOp::create(b, CmpIPredicate::eq, started, none);
  Value since = arith::SelectOp::create(b, isFirst, now, started);
  Value waited = arith::SubIOp::create(b, now, since);
  Value isLate = arith::CmpIOp::create(
      b, CmpIPredicate::ugt, waited,
      arith::ConstantIntOp::create(b, options.timeout * 1000, 64));
  Value wasGiven =
      w.compare(CmpIPredicate::ne, w.load(flag), w.constant(0));
  Value stops = arith::OrIOp::create(b, isLate, wasGiven);
  Value isBehind = w.both(wasGiven, isFirst);
  Value isWitness =
      w.both(stops, arith::XOrIOp::create(
                        b, isBehind, arith::ConstantIntOp::create(b, 1, 1)));
  auto witness = scf::IfOp::create(b, isWitness, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(witness.thenBlock());
    Value signals = signalsOf(w, alloc, op.getIndex());
    w.fetchAdd(flag, w.constant(1));
    auto report = [&] {
      giveUp(b, w, record,
             {w.cta(), w.warp(), op.getIndex(), phase, w.load(signals),
              w.load(w.add(signals, w.constant(4)))});
    };
    inOneLane(b, w, op, report);
    b.setInsertionPointToStart(witness.elseBlock());
    auto behind = scf::IfOp::create(b, isBehind, /*withElseRegion=*/false);
    b.setInsertionPointToStart(behind.thenBlock());
    Value count = w.fetchAdd(flag, w.constant(1));
    Value ends = w.compare(CmpIPredicate::ugt, count, w.constant(kWaitsBehind));
    auto last = scf::IfOp::create(b, ends, /*withElseRegion=*/false);
    b.setInsertionPointToStart(last.thenBlock());
    w.exit();
  }
  Value again = arith::XOrIOp::create(b, stops,
                                      arith::ConstantIntOp::create(b, 1, 1));
  scf::YieldOp::create(b, ValueRange{again, since});
  b.setInsertionPointAfter(branch);
  scf::ConditionOp::create(b, branch.getResult(0),
                           ValueRange{branch.getResult(1)});
  Block *after =
      b.createBlock(&loop.getAfter(), {}, TypeRange(i64), {op.getLoc()});
  scf::YieldOp::create(b, after->getArguments());
}

void Instrumenter::instrument(MBarrierWaitOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Words w(b, kernel);
  Team team = findTeam(op);
  MBarrierAllocOp alloc = allocOf(op.getBarriers());
  const Barriers array = arrays[alloc];
  bool isCounted = options.checks && array.count != 0;
  Value index = op.getIndex();
  Value own = ownOf(w, team, alloc, index);
  // Phases waited for have numbers 0, 1, ...: the one of this parity that is
  // the last one waited for, or comes behind it.
  Value before = w.load(own);
  Value steps = w.add(w.add(before, op.getParity()), w.constant(1));
  Value phases =
      w.add(before, arith::AndIOp::create(b, steps, w.constant(1)));
  int64_t site = sites.size();
  Value signals = signalsOf(w, alloc, index);
  Value phase = w.add(phases, w.constant(-1));
  if (isCounted) {
    int64_t record = sites.add("early wait", op, alloc, team.name);
    Value complete = divide(b, w, w.load(signals), array.count);
    inOneLane(b, w, op, [&] {
      Value isEarly = w.compare(CmpIPredicate::slt,
                                w.add(complete, w.constant(1)), phases);
      reportIf(b, w, isEarly, record, index, phase, complete,
               w.load(w.add(signals, w.constant(4))));
    });
  }
  if (options.timeout != 0)
    waitWithLimit(op, w, b, phase);
  else
    b.setInsertionPointAfter(op);
  int64_t slip =
      isCounted ? sites.add("slip", op, alloc, team.name) : 0;
  inOneLane(b, w, op, [&] {
    w.store(own, phases);
    if (!isCounted)
      return;
    Value complete = divide(b, w, w.load(signals), array.count);
    Value slipped = w.compare(CmpIPredicate::sgt, complete, phases);
    reportIf(b, w, slipped, slip, index, phase, complete,
             w.load(w.add(signals, w.constant(4))));
  });
  pause(w, b, site, phases);
  if (options.timeout != 0)
    op.erase();
}

//===----------------------------------------------------------------------===//
// Signals
//===----------------------------------------------------------------------===//

void Instrumenter::signal(Operation *op, Value barriers, Value index,
                          std::optional<int64_t> ctas, bool leader) {
  ImplicitLocOpBuilder b(op->getLoc(), op);
  Words w(b, kernel);
  Team team = findTeam(op);
  MBarrierAllocOp alloc = allocOf(barriers);
  const Barriers array = arrays[alloc];
  int64_t record =
      sites.add("signal in the wrong phase", op, alloc, team.name);
  Value own = w.add(ownOf(w, team, alloc, index), w.constant(4));
  Value sent = w.load(own);
  pause(w, b, record, sent);
  if (!options.checks)
    return;
  inOneLane(b, w, op, [&] {
    w.store(own, w.add(sent, w.constant(1)));
    bool isRemote = ctas || leader;
    for (int64_t rank = 0; rank < ctas.value_or(1); ++rank) {
      Value signals = signalsOf(w, alloc, index), last;
      if (isRemote)
        signals = w.inCTA(signals, w.constant(rank));
      Value count = w.fetchAdd(signals, w.constant(1), isRemote);
      if (isRemote) {
        last = w.constant(0);
      } else {
        Value place = w.add(signals, w.constant(4));
        last = w.load(place);
        w.store(place, w.constant(record + 1));
      }
      if (array.count == 0)
        continue;
      Value phase = divide(b, w, count, array.count);
      reportIf(b, w, w.compare(CmpIPredicate::ne, phase, sent), record, index,
               sent, phase, last);
    }
  });
}

void Instrumenter::instrument(MBarrierArriveOp op) {
  signal(op, op.getBarriers(), op.getIndex(), op.getCtas(), op.getLeader());
}

void Instrumenter::instrument(MBarrierExpectTxOp op) {
  signal(op, op.getBarriers(), op.getIndex(), op.getCtas(), false);
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

/// The other barriers of a channel: `k.producer` and `k.consumer`, or whatever
/// two names there are with one dot.
static MBarrierAllocOp findPartner(gpu::GPUFuncOp kernel,
                                   MBarrierAllocOp barriers) {
  StringRef channel = nameOf(barriers).rsplit('.').first;
  SmallVector<MBarrierAllocOp> found;
  kernel.walk([&](MBarrierAllocOp other) {
    auto [prefix, suffix] = nameOf(other).rsplit('.');
    if (other != barriers && prefix == channel && !suffix.empty() &&
        other.getType() == barriers.getType())
      found.push_back(other);
  });
  return found.size() == 1 ? found.front() : MBarrierAllocOp();
}

void Instrumenter::instrumentWrite(TmaLoadOp op) {
  AllocOp alloc = findAlloc(op.getDest());
  SlotOp slot = op.getDest().getDefiningOp<SlotOp>();
  MBarrierAllocOp full = published.lookup(alloc);
  MBarrierAllocOp empty = full ? findPartner(kernel, full) : MBarrierAllocOp();
  if (!slot || !empty ||
      slot.getSource().getType().getNumSlots() != arrays[full].slots)
    return;
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Words w(b, kernel);
  Team team = findTeam(op);
  StringRef buffer = getBufferName(alloc);
  int64_t wrong =
      sites.add("signal of another slot", op, full, team.name, buffer);
  int64_t taken =
      sites.add("write to a slot in use", op, empty, team.name, buffer);
  Value index = op.getIndex();
  Value sent = w.load(
      w.add(ownOf(w, team, full, index), w.constant(4)));
  Value waited = w.load(ownOf(w, team, empty, slot.getIndex()));
  Value last = w.load(
      w.add(signalsOf(w, empty, slot.getIndex()), w.constant(4)));
  inOneLane(b, w, op, [&] {
    reportIf(b, w, w.compare(CmpIPredicate::ne, index, slot.getIndex()), wrong,
             slot.getIndex(), slot.getIndex(), index, w.constant(0));
    Value needed = w.add(sent, w.constant(-1));
    reportIf(b, w, w.compare(CmpIPredicate::slt, waited, needed), taken,
             slot.getIndex(), w.add(needed, w.constant(-1)),
             w.add(waited, w.constant(-1)), last);
  });
}

void Instrumenter::instrumentRead(Operation *op, AllocOp alloc, SlotOp slot) {
  MBarrierAllocOp full = published.lookup(alloc);
  Team team = findTeam(op);
  Region *region =
      team.op ? &team.op.getPartitions()[team.index] : nullptr;
  if (!full || isAlone(op) || arrays[full].count == 0 ||
      !waited.contains({region, full.getOperation()}) ||
      slot.getSource().getType().getNumSlots() != arrays[full].slots)
    return;
  ImplicitLocOpBuilder b(op->getLoc(), op);
  Words w(b, kernel);
  StringRef buffer = getBufferName(alloc);
  Value index = slot.getIndex();
  int64_t early =
      sites.add("read of a slot not waited for", op, full, team.name, buffer);
  Value signals = signalsOf(w, full, index);
  Value seen = w.load(ownOf(w, team, full, index));
  Value last = w.load(w.add(signals, w.constant(4)));
  Value written = divide(b, w, w.load(signals), arrays[full].count);
  MBarrierAllocOp empty = findPartner(kernel, full);
  bool isReleased = empty && arrays[empty].count != 0 &&
                    signalled.contains({region, empty.getOperation()});
  Value released;
  int64_t late = 0;
  if (isReleased) {
    late = sites.add("read of a slot given back", op, empty, team.name, buffer);
    released = w.load(w.add(ownOf(w, team, empty, index), w.constant(4)));
  }
  inOneLane(b, w, op, [&] {
    reportIf(b, w, w.compare(CmpIPredicate::ne, seen, written), early, index,
             w.add(written, w.constant(-1)), w.add(seen, w.constant(-1)), last);
    if (isReleased)
      reportIf(b, w, w.compare(CmpIPredicate::sge, released, seen), late, index,
               w.add(seen, w.constant(-1)), released, w.constant(0));
  });
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

void Instrumenter::clearWords() {
  ImplicitLocOpBuilder b(kernel.getLoc(), kernel.getContext());
  b.setInsertionPointToStart(&kernel.getBody().front());
  Words w(b, kernel);
  Value thread = arith::IndexCastOp::create(
      b, b.getI32Type(), gpu::ThreadIdOp::create(b, gpu::Dimension::x));
  Value threads = arith::IndexCastOp::create(
      b, b.getI32Type(), gpu::BlockDimOp::create(b, gpu::Dimension::x));
  auto loop = scf::ForOp::create(b, thread, w.constant(words), threads);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value place = w.multiply(loop.getInductionVar(), 4);
    w.store(w.add(w.sharedAddress(start), place), w.constant(0));
  }
  gpu::BarrierOp::create(b);
}

LogicalResult Instrumenter::run() {
  auto bytes =
      kernel->getAttrOfType<IntegerAttr>(AttnDialect::kSharedBytesAttr);
  kernel.walk([&](AllocOp op) {
    if (!bytes && op.getOffset())
      start = std::max<int64_t>(
          start, *op.getOffset() + llvm::cantFail(getAllocBytes(op)));
  });
  kernel.walk([&](MBarrierAllocOp op) {
    if (!bytes && op.getOffset())
      start = std::max<int64_t>(start,
                                *op.getOffset() + 8 * op.getType().getCount());
  });
  if (bytes)
    start = bytes.getInt();
  start = llvm::alignTo(start, 8);
  if (failed(collectBarriers()))
    return failure();
  collectUses();
  SmallVector<Operation *> ops;
  kernel.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops) {
    if (auto wait = dyn_cast<MBarrierWaitOp>(op)) {
      instrument(wait);
      continue;
    }
    if (auto arrive = dyn_cast<MBarrierArriveOp>(op))
      instrument(arrive);
    if (auto expect = dyn_cast<MBarrierExpectTxOp>(op))
      instrument(expect);
    if (!options.checks)
      continue;
    if (auto copy = dyn_cast<TmaLoadOp>(op)) {
      if (copy.getBarriers())
        instrumentWrite(copy);
      continue;
    }
    FailureOr<SmallVector<SharedAccess, 2>> accesses = getSharedAccesses(op);
    if (failed(accesses))
      return failure();
    for (const SharedAccess &access : *accesses)
      if (access.slot && !access.isWrite)
        instrumentRead(op, access.alloc, access.slot);
  }
  if (!arrays.empty())
    clearWords();
  return success();
}

namespace {
struct AttnInstrumentPass : attn::impl::AttnInstrumentPassBase<AttnInstrumentPass> {
  using Base::Base;

  void runOnOperation() override {
    gpu::GPUModuleOp module = getOperation();
    if (failed(checkOptions(module)))
      return signalPassFailure();
    Sites sites;
    Options own{checks, timeout, delay, seed};
    bool isAny = false;
    module.walk([&](MBarrierAllocOp) { isAny = true; });
    if (!isAny) {
      module.emitWarning("attn-instrument: nothing to check as it runs: no "
                         "kernel has mbarriers");
      return;
    }
    // Ops refer to it; how large it is stands fast in the end.
    LLVM::GlobalOp reports = makeGlobal(kReportsName, 1, Attribute());
    for (auto kernel : module.getOps<gpu::GPUFuncOp>())
      if (failed(instrument(kernel, own, sites)))
        return signalPassFailure();
    numChecks += sites.size();
    setWords(reports, kHeaderWords + sites.size() * kRecordWords);
    std::string text = sites.toText();
    text.push_back('\0');
    makeGlobal(kSitesName, text.size(), StringAttr::get(&getContext(), text));
  }

  LogicalResult checkOptions(gpu::GPUModuleOp module) {
    if (timeout < 0 || timeout > 1000000000)
      return module.emitError("attn-instrument: expected timeout-us from 0 to "
                              "1000000000, got ")
             << timeout;
    if (delay < 0 || delay > 1000000)
      return module.emitError(
                 "attn-instrument: expected delay-ns from 0 to 1000000, got ")
             << delay;
    if (module.lookupSymbol(kReportsName))
      return module.emitError("attn-instrument: the kernels are instrumented "
                              "already");
    return success();
  }

  LLVM::GlobalOp makeGlobal(StringRef name, int64_t count, Attribute value) {
    OpBuilder b = OpBuilder::atBlockBegin(getOperation().getBody());
    Type element = value ? b.getI8Type() : b.getI32Type();
    auto global = LLVM::GlobalOp::create(
        b, getOperation().getLoc(), LLVM::LLVMArrayType::get(element, count),
        /*isConstant=*/false, LLVM::Linkage::External, name, value,
        /*alignment=*/16, /*addrSpace=*/1);
    return global;
  }

  /// Gives the variable its size, and zeros at the start.
  static void setWords(LLVM::GlobalOp global, int64_t words) {
    OpBuilder b(global);
    global.setGlobalType(LLVM::LLVMArrayType::get(b.getI32Type(), words));
    b.createBlock(&global.getInitializerRegion());
    Value zero =
        LLVM::ZeroOp::create(b, global.getLoc(), global.getGlobalType());
    LLVM::ReturnOp::create(b, global.getLoc(), zero);
  }

  LogicalResult instrument(gpu::GPUFuncOp kernel, const Options &own,
                           Sites &sites);
};
} // namespace

LogicalResult AttnInstrumentPass::instrument(gpu::GPUFuncOp kernel,
                                             const Options &own, Sites &sites) {
  bool isAny = false;
  kernel.walk([&](MBarrierAllocOp) { isAny = true; });
  if (!isAny)
    return success();
  Instrumenter instrumenter(kernel, own, sites);
  if (failed(instrumenter.run()))
    return failure();
  auto bytes =
      kernel->getAttrOfType<IntegerAttr>(AttnDialect::kSharedBytesAttr);
  if (!bytes)
    return kernel.emitError("expected '")
           << AttnDialect::kSharedBytesAttr
           << "' on a kernel to instrument; attn-allocate-shared sets it";
  std::string target = chip;
  if (ArrayAttr targets = getOperation().getTargetsAttr())
    for (Attribute attr : targets)
      if (auto each = dyn_cast<TargetAttr>(attr))
        target = each.getChip().str();
  auto row = lookupTarget(target);
  if (!row)
    return kernel.emitError() << llvm::toString(row.takeError());
  int64_t before = llvm::alignTo(bytes.getInt(), 8);
  int64_t total = before + instrumenter.getBytes();
  if (total > row->sharedBytesPerCTA)
    return kernel.emitError("shared memory does not fit with the words of "
                            "attn-instrument: expected at most ")
           << row->sharedBytesPerCTA << " bytes on " << row->chip << ", got "
           << total << " (kernel " << before << " + words "
           << instrumenter.getBytes() << ")";
  numBytes += instrumenter.getBytes();
  kernel->setAttr(AttnDialect::kSharedBytesAttr,
                  OpBuilder(kernel).getI64IntegerAttr(total));
  return success();
}
