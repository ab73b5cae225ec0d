//===- WsTmemOrders.cpp - Orders of issue of ws_tmem ----------------------===//
//
// What a thread that issues work does for the blocks of a tile becomes an
// attn.issue_loop.
//
//===----------------------------------------------------------------------===//

#include "../Tma/RingFacts.h"
#include "WsTmemEmitter.h"

using namespace mlir;
using namespace mlir::attn;

void WsTmemEmitter::addKeySlots(IssueOrder &order) {
  order.channels = getKeyChannels();
  order.slots = {"v", "k"};
  order.slotChannels = {sharesRing(facts, plan) ? 0 : 1, 0};
}

IssueOrder WsTmemEmitter::startOrder(StringRef role, ValueRange cursors) {
  IssueOrder order;
  order.role = role;
  order.trips = b.createOrFold<arith::SubIOp>(walk.end, walk.begin);
  order.cursors = llvm::to_vector(cursors);
  addKeySlots(order);
  return order;
}

SmallVector<Value>
WsTmemEmitter::emitIfBlocks(ValueRange cursors,
                            function_ref<SmallVector<Value>(ValueRange)> emit) {
  Value some =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, walk.begin, walk.end);
  auto branch = scf::IfOp::create(b, cursors.getTypes(), some,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, emit(cursors));
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, cursors);
  return llvm::to_vector(ValueRange(branch.getResults()));
}

SmallVector<Value> WsTmemEmitter::emitIssueLoop(const IssueOrder &order) {
  SmallVector<StringRef> names;
  SmallVector<int64_t> counts;
  SmallVector<Attribute> uses, parts;
  bool hasParts = false;
  bool hasLess = llvm::any_of(order.statements,
                              [](const IssueStatement &s) { return s.isLess; });
  for (const IssueStatement &statement : order.statements) {
    names.push_back(statement.name);
    counts.push_back(hasLess && !statement.isLess ? 1 : 0);
    uses.push_back(b.getStrArrayAttr(statement.uses));
    SmallVector<StringRef> whole(statement.uses.size());
    hasParts |= !statement.parts.empty();
    parts.push_back(
        b.getStrArrayAttr(statement.parts.empty() ? whole : statement.parts));
  }
  SmallVector<Value> trips = {order.trips};
  if (hasLess)
    trips.insert(trips.begin(),
                 arith::SubIOp::create(b, order.trips, context.i32(1)));
  SmallVector<Type> results(order.cursors.size(),
                            CursorType::get(b.getContext()));
  StringAttr held, behind;
  if (order.held)
    results.push_back(order.held.getType());
  if (!order.heldSlot.empty()) {
    held = b.getStringAttr(order.heldSlot);
    behind = b.getStringAttr(order.releasedBehind);
  }
  auto loop = IssueLoopOp::create(
      b, results, order.role, trips, /*left=*/ValueRange(),
      /*values=*/ValueRange(), /*left_values=*/ValueRange(), order.channels,
      order.cursors, order.held, b.getStrArrayAttr(order.slots),
      order.slotChannels, b.getStrArrayAttr(names), counts,
      SmallVector<int64_t>(names.size(), 0), b.getArrayAttr(uses),
      hasParts ? b.getArrayAttr(parts) : ArrayAttr(),
      /*ends=*/ArrayAttr(), /*rising=*/false, held, behind,
      /*spanning=*/ArrayAttr(), /*span_opening=*/ArrayAttr(),
      /*span_closing=*/ArrayAttr(), order.statements.size());
  for (auto [statement, region] :
       llvm::zip(order.statements, loop.getBodies())) {
    OpBuilder::InsertionGuard guard(b);
    SmallVector<Type> types = {b.getI32Type()};
    for (size_t i = 0; i < statement.uses.size(); ++i)
      types.append({b.getI32Type(), TokenType::get(b.getContext())});
    Block *body = b.createBlock(
        &region, {}, types, SmallVector<Location>(types.size(), b.getLoc()));
    auto end = YieldOp::create(b, ValueRange());
    b.setInsertionPoint(end);
    statement.emit(body->getArguments());
  }
  return llvm::to_vector(ValueRange(loop.getResults()));
}
