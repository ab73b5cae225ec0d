//===- AbsentRuns.cpp - Runs that a sequence does not have ----------------===//

#include "attn/Schedule/Kernel/AbsentRuns.h"
#include "attn/Dialect/Attn/IR/KernelAttrs.h"

using namespace mlir;
using namespace mlir::attn;

/// Returns where the runs' LSE of a row of a tile is, without the run, i64.
static Value emitLseOffset(KernelContext &context, const TileCoordinates &at,
                           Value head, Value query) {
  ImplicitLocOpBuilder &b = context.b;
  StringRef name = context.facts.lse.name;
  Value offset, indices[] = {at.batch, head, query};
  for (auto [dim, index] : llvm::enumerate(indices)) {
    Value term = arith::MulIOp::create(b, context.widen(index),
                                       context.getStride(name, dim + 1));
    offset = offset ? arith::AddIOp::create(b, offset, term).getResult() : term;
  }
  return offset;
}

void attn::storeAbsentRuns(const AttentionTile &tile,
                           llvm::function_ref<StoringThreads()> emitThreads,
                           bool areKept) {
  KernelContext &context = tile.context;
  const TileCoordinates &at = tile.at;
  ImplicitLocOpBuilder &b = context.b;
  Value row = tile.row, rows = tile.getRows();
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, x, y);
  };
  OpBuilder::InsertionGuard guard(b);
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, at.split,
                                        context.i32(0));
  auto branch = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
  Value end =
      arith::MinSIOp::create(b, add(row, context.i32(tile.blockM)), rows);
  Value own = arith::SubIOp::create(b, end, row);
  Value absent =
      arith::SubIOp::create(b, context.i32(context.facts.kvSplits), at.runs);
  StoringThreads threads = emitThreads();
  auto loop = scf::ForOp::create(b, threads.number,
                                 arith::MulIOp::create(b, absent, own),
                                 context.i32(threads.count));
  b.setInsertionPointToStart(loop.getBody());
  Value number = loop.getInductionVar();
  Value run = add(at.runs, arith::DivUIOp::create(b, number, own));
  Value query = add(row, arith::RemUIOp::create(b, number, own));
  Value head = at.head;
  if (tile.group != 1) {
    Value group = context.i32(tile.group);
    Value member = arith::RemUIOp::create(b, query, group);
    if (tile.members != tile.group) {
      Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, member,
                                           context.i32(tile.members));
      auto present = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
      b.setInsertionPointToStart(present.thenBlock());
    }
    head = add(head, member);
    query = arith::DivUIOp::create(b, query, group);
  }
  StringRef name = context.facts.lse.name;
  Value offset = arith::AddIOp::create(
      b, emitLseOffset(context, at, head, query),
      arith::MulIOp::create(b, context.widen(run), context.getStride(name, 0)));
  Value pointer = context.getPointer(name);
  Value address = LLVM::GEPOp::create(b, pointer.getType(), b.getF32Type(),
                                      pointer, ValueRange{offset});
  Value none = context.f32(-std::numeric_limits<double>::infinity());
  auto store = LLVM::StoreOp::create(b, none, address, 4);
  if (areKept)
    store->setAttr(kKeptAttr, b.getUnitAttr());
}
