//===- CopiedEarly.cpp - Keys that L2 is asked for before the wait --------===//
//
// A kernel that starts before the one in front of it has ended waits for it
// before it reads anything. DRAM has less and less to do meanwhile, so it asks
// L2 for the blocks of keys that it will copy first. That is no read: whatever
// is written meanwhile is seen by the copies behind the wait.
//
// Which keys these are it learns from memory that may still be written. So
// nothing but these requests depends on such numbers, and none of them leads
// out of the tensors, whatever it is.
//
// For that the kernel in front has to leave places early enough, but not so
// early that what was asked for is gone from L2 when it is copied.
//
//===----------------------------------------------------------------------===//

#include "CopiedEmit.h"
#include "CopiedEmitter.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

/// Blocks that L2 is asked for, for each team.
static constexpr int64_t kEarlyBlocks = 2;
/// Blocks of a team's keys with the last of which the next step may start.
static constexpr int64_t kLastBlocks = 8;

/// Bytes of `rows` rows of a tensor of keys or values that follow each other in
/// memory; 0 if they do not, or if one request cannot ask for them.
static int64_t countRequestedBytes(const TensorFacts &tensor, int64_t rows) {
  int64_t columns = tensor.shape.back();
  int64_t bytes =
      rows * columns * tensor.elementType.getIntOrFloatBitWidth() / 8;
  bool isWhole = tensor.strides[2] == columns && tensor.strides[3] == 1;
  return isWhole && tensor.getRowAlignment() == 16 && bytes % 16 == 0 ? bytes
                                                                      : 0;
}

/// Runs whose CTAs all start together on the target's board; 0 if only the
/// launch knows.
static int64_t countFirstRuns(const ProblemFacts &facts, const CopiedPlan &plan,
                              const TargetRow &target) {
  int64_t packed = getPackedHeads(facts, plan);
  if (ShapedType::isDynamic(facts.heads) ||
      ShapedType::isDynamic(facts.queries))
    return 0;
  int64_t tiles = facts.heads / packed *
                  llvm::divideCeil(facts.queries * packed, plan.getBlockM());
  return target.smCount * plan.getCTAsPerSM() / tiles;
}

void CopiedEmitter::askForKeys() {
  int64_t blockN = plan.getBlockN(), teams = plan.getKeyTeams();
  int64_t rows = std::min(blockN, source->getMostRows());
  int64_t pieces = blockN / rows;
  // A thread for the keys and one for the values of each piece: those of other
  // warps than the first ones do not lose time by it.
  int64_t threads = 2 * kEarlyBlocks * pieces;
  int64_t firstRuns = countFirstRuns(facts, plan, context.target);
  if (!source->isBounded() || plan.getHeadTeams() > 1 || firstRuns == 0 ||
      teams * threads > plan.getThreads() ||
      !countRequestedBytes(facts.k, rows) ||
      !countRequestedBytes(facts.v, rows))
    return;
  OpBuilder::InsertionGuard guard(b);
  auto beginIf = [&](Value condition) {
    auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  };
  auto compare = [&](arith::CmpIPredicate how, Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, how, x, y);
  };
  auto divide = [&](Value x, int64_t y) {
    Value by = context.i32(y);
    return std::pair<Value, Value>(arith::DivUIOp::create(b, x, by),
                                   arith::RemUIOp::create(b, x, by));
  };
  Value thread = arith::IndexCastUIOp::create(
      b, b.getI32Type(), gpu::ThreadIdOp::create(b, gpu::Dimension::x));
  beginIf(
      compare(arith::CmpIPredicate::ult, thread, context.i32(teams * threads)));
  auto [team, own] = divide(thread, threads);
  auto [number, isValues] = divide(own, 2);
  isValues = arith::TruncIOp::create(b, b.getI1Type(), own);
  auto [back, piece] = divide(number, pieces);
  // CTAs that start when others end would only read records and table twice.
  if (firstRuns < plan.getDealtRuns()) {
    Value run = arith::IndexCastUIOp::create(
        b, b.getI32Type(), gpu::BlockIdOp::create(b, gpu::Dimension::z));
    beginIf(compare(arith::CmpIPredicate::ult, run, context.i32(firstRuns)));
  }

  context.readsEarly = true;
  GridTiles tiles(context, plan, /*leavesRowsOpen=*/false);
  at = tiles.emitTile();
  at.batch = arith::MinUIOp::create(b, at.batch, context.i32(facts.batch - 1));
  beginIf(compare(arith::CmpIPredicate::sgt, at.runs, context.i32(0)));
  emitLengths();
  row = arith::MulIOp::create(b, at.tile, context.i32(plan.getBlockM()));
  bounds = emitBlockBounds(context, row, queries, keys, blockM, blockN, group);
  emitRun(blockN);
  if (teams > 1)
    emitShare(context, bounds, team, teams);
  // The last block first, as the loop takes them.
  Value block = arith::SubIOp::create(
      b, bounds.end, arith::AddIOp::create(b, back, context.i32(1)));
  Value key = arith::AddIOp::create(
      b, arith::MulIOp::create(b, block, context.i32(blockN)),
      arith::MulIOp::create(b, piece, context.i32(rows)));
  beginIf(arith::AndIOp::create(
      b, compare(arith::CmpIPredicate::sge, block, bounds.begin),
      compare(arith::CmpIPredicate::ult, key, keys)));
  Value lead = source->emitLead(key);
  if (Value isAbsent = source->emitIsAbsent(lead))
    beginIf(arith::XOrIOp::create(
        b, isAbsent, arith::ConstantIntOp::create(b, 1, /*width=*/1)));
  emitRequest(lead, source->emitRows(key).row, rows, isValues);
  context.readsEarly = false;
}

void CopiedEmitter::emitRequest(Value lead, Value first, int64_t rows,
                                Value isValues) {
  auto findPiece = [&](StringRef name) -> Value {
    Value offset;
    for (auto [dim, index] :
         llvm::enumerate(ArrayRef({lead, at.kvHead, first}))) {
      Value term = arith::MulIOp::create(b, context.widen(index),
                                         context.getStride(name, dim));
      offset =
          offset ? arith::AddIOp::create(b, offset, term).getResult() : term;
    }
    Value pointer = context.getPointer(name);
    return LLVM::GEPOp::create(b, pointer.getType(),
                               context.getTensor(name).elementType, pointer,
                               ValueRange{offset});
  };
  auto choose = [&](Value ofValues, Value ofKeys) -> Value {
    return arith::SelectOp::create(b, isValues, ofValues, ofKeys);
  };
  NVVM::CpAsyncBulkPrefetchOp::create(
      b, choose(findPiece("v"), findPiece("k")),
      choose(context.i32(countRequestedBytes(facts.v, rows)),
             context.i32(countRequestedBytes(facts.k, rows))),
      /*l2CacheHint=*/Value());
}

void CopiedEmitter::emitRelease(ImplicitLocOpBuilder &lb, Value key) {
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(lb, value, /*width=*/32);
  };
  // Blocks are taken from the last one to the first.
  Value limit = arith::MulIOp::create(
      lb, arith::AddIOp::create(lb, bounds.begin, number(kLastBlocks)),
      number(plan.getBlockN()));
  Value isLast =
      arith::CmpIOp::create(lb, arith::CmpIPredicate::slt, key, limit);
  auto branch = scf::IfOp::create(lb, isLast, /*withElseRegion=*/false);
  ImplicitLocOpBuilder inner(lb.getLoc(), branch.getThenBodyBuilder());
  NVVM::GriddepcontrolOp::create(inner,
                                 NVVM::GridDepActionKind::launch_dependents);
}

void attn::emitCopiedEarly(KernelContext &context, const CopiedPlan &plan) {
  if (plan.plansWork())
    CopiedEmitter(context, plan).askForKeys();
}
