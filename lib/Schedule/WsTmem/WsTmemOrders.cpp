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

/// Names, none as a null attribute.
static ArrayAttr getNames(Builder &b, ArrayRef<IssueSpan> spans,
                          function_ref<StringRef(const IssueSpan &)> nameOf) {
  if (spans.empty())
    return ArrayAttr();
  return b.getStrArrayAttr(llvm::map_to_vector(spans, nameOf));
}

SmallVector<Value> WsTmemEmitter::emitIssueLoop(const IssueOrder &order) {
  SmallVector<StringRef> names;
  SmallVector<int64_t> counts, skews;
  SmallVector<Attribute> uses, parts, ends;
  bool hasParts = false, hasEnds = false;
  bool hasLess = llvm::any_of(order.statements,
                              [](const IssueStatement &s) { return s.isLess; });
  for (const IssueStatement &statement : order.statements) {
    names.push_back(statement.name);
    counts.push_back(hasLess && !statement.isLess ? 1 : 0);
    skews.push_back(statement.skew);
    uses.push_back(b.getStrArrayAttr(statement.uses));
    SmallVector<StringRef> whole(statement.uses.size());
    hasParts |= !statement.parts.empty();
    parts.push_back(
        b.getStrArrayAttr(statement.parts.empty() ? whole : statement.parts));
    hasEnds |= !statement.ends.empty();
    ends.push_back(b.getStrArrayAttr(
        statement.ends.empty() ? ArrayRef<StringRef>() : statement.ends));
  }
  SmallVector<Value> trips = {order.trips}, left;
  if (order.left)
    left.push_back(order.left);
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
      b, results, order.role, trips, left, order.values, order.leftValues,
      order.channels, order.cursors, order.held, b.getStrArrayAttr(order.slots),
      order.slotChannels, b.getStrArrayAttr(names), counts, skews,
      b.getArrayAttr(uses), hasParts ? b.getArrayAttr(parts) : ArrayAttr(),
      hasEnds ? b.getArrayAttr(ends) : ArrayAttr(), /*rising=*/false, held,
      behind, getNames(b, order.spans, [](auto &span) { return span.slot; }),
      getNames(b, order.spans,
               [](auto &span) { return StringRef(span.opening); }),
      getNames(b, order.spans,
               [](auto &span) { return StringRef(span.closing); }),
      order.statements.size());
  for (auto [statement, region] :
       llvm::zip(order.statements, loop.getBodies())) {
    OpBuilder::InsertionGuard guard(b);
    SmallVector<Type> types = {b.getI32Type()};
    for (size_t i = 0; i < statement.uses.size(); ++i)
      types.append({b.getI32Type(), TokenType::get(b.getContext())});
    llvm::append_range(types, ValueRange(order.values).getTypes());
    Block *body = b.createBlock(
        &region, {}, types, SmallVector<Location>(types.size(), b.getLoc()));
    auto end = YieldOp::create(b, ValueRange());
    b.setInsertionPoint(end);
    statement.emit(body->getArguments());
  }
  return llvm::to_vector(ValueRange(loop.getResults()));
}
