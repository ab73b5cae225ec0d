//===- Instrumenter.cpp - Puts checks into a kernel -----------------------===//

#include "Instrumenter.h"
#include "attn/Analysis/Memory/SharedAccess.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::instrument;
using arith::CmpIPredicate;

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

StringRef instrument::nameOf(MBarrierAllocOp op) {
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

std::optional<BulkLoad> instrument::findBulkLoad(Operation *op) {
  auto copy = dyn_cast<BulkCopyOpInterface>(op);
  if (!copy || !copy.isBulkLoad())
    return std::nullopt;
  BulkLoad load{op, copy.getCopiedBuffer(), {}, {}};
  // The number of the barrier stands behind the array.
  for (auto [array, number] :
       llvm::zip(op->getOperands().drop_back(), op->getOperands().drop_front()))
    if (isa<MBarriersType>(array.getType())) {
      load.barriers = array;
      load.index = number;
    }
  return load.barriers ? std::optional(load) : std::nullopt;
}

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
                      MBarrierExpectTxOp>(op) &&
                 !findBulkLoad(op)) {
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
    std::optional<BulkLoad> load = findBulkLoad(op);
    if (!load)
      return;
    AllocOp alloc = findAlloc(load->buffer);
    MBarrierAllocOp barriers = allocOf(load->barriers);
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
  if (team.warps == 0) {
    // checkKernel() has seen it.
    std::pair<int64_t, int64_t> grid = *getWarpGrid(kernel);
    team.warps = grid.first * grid.second;
  }
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

/// Whether the addresses of the kernel's barriers and its warps are known.
LogicalResult Instrumenter::checkKernel() {
  if (int64_t teams = getTeams(kernel); teams > 1)
    return kernel.emitError("cannot be checked as it runs: expected a kernel "
                            "of one team, got ")
           << teams;
  WalkResult walk = kernel.walk([](MBarrierAllocOp op) {
    if (op.getOffset())
      return WalkResult::advance();
    op.emitOpError("cannot be checked as it runs: expected an offset; "
                   "attn-allocate-shared sets it");
    return WalkResult::interrupt();
  });
  if (walk.wasInterrupted())
    return failure();
  bool hasPartitions = !kernel.getOps<WarpSpecializeOp>().empty();
  return success(hasPartitions || succeeded(getWarpGrid(kernel)));
}

LogicalResult Instrumenter::run() {
  auto bytes =
      kernel->getAttrOfType<IntegerAttr>(AttnDialect::kSharedBytesAttr);
  if (!bytes)
    return kernel.emitError("expected '")
           << AttnDialect::kSharedBytesAttr
           << "' on a kernel to instrument; attn-allocate-shared sets it";
  start = llvm::alignTo(bytes.getInt(), 8);
  if (failed(checkKernel()) || failed(collectBarriers()))
    return failure();
  collectUses();
  SmallVector<Operation *> ops;
  kernel.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops) {
    if (auto wait = dyn_cast<MBarrierWaitOp>(op)) {
      instrument(wait);
      continue;
    }
    std::optional<BulkLoad> load = findBulkLoad(op);
    if (load ||
        isa<MBarrierArriveOp, MBarrierExpectTxOp, CommitOpInterface>(op))
      skipOnceGivenUp(op);
    if (auto arrive = dyn_cast<MBarrierArriveOp>(op))
      instrument(arrive);
    if (auto expect = dyn_cast<MBarrierExpectTxOp>(op))
      instrument(expect);
    if (!options.checks)
      continue;
    if (load) {
      instrumentWrite(*load);
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
