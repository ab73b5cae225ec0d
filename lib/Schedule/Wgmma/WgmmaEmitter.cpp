//===- WgmmaEmitter.cpp - Blocks that wgmma multiplies --------------------===//

#include "WgmmaEmitter.h"
#include "Products.h"

using namespace mlir;
using namespace mlir::attn;

BlockState::BlockState(ValueRange carried)
    : running(carried.take_front(3)), keys(carried[3]), values(carried[4]) {
  if (carried.size() == 5)
    return;
  keyLoads = carried[5];
  valueLoads = carried[6];
}

SmallVector<Value> BlockState::list() const {
  SmallVector<Value> all = running.list();
  all.append({keys, values});
  if (keyLoads)
    all.append({keyLoads, valueLoads});
  return all;
}

void WgmmaEmitter::emitTransposition(const BlockOperands &operands,
                                     Value cursor) {
  auto [slot, token] = acquire(operands.values, cursor, operands.transposer);
  LocalTransposeOp::create(b, slot, operands.transposed);
  release(operands.values, token, operands.transposer);
}

FailureOr<BlockState>
WgmmaEmitter::emitBlock(const BlockOperands &operands, Value key,
                        const BlockState &state,
                        function_ref<void(Value, BlockState &)> between) {
  auto [keyTile, keyToken] = acquire(operands.keys, state.keys, operands.role);
  Value product = multiplyKeys(*this, operands.queries, keyTile);
  // One place for all blocks: it is free while QK runs, or, where PV of the
  // last block then runs too, behind the softmax.
  bool transposes = static_cast<bool>(operands.transposed);
  if (transposes && !productPlan.qkAhead)
    emitTransposition(operands, state.values);
  Value s = awaitProduct(*this, product);
  release(operands.keys, keyToken, operands.role);
  if (failed(emitScores(b, key, s, productPlan.keyQuads)))
    return failure();
  auto softmax = OnlineSoftmaxOp::create(b, s, state.running.m, state.running.l,
                                         state.running.o, operands.scale,
                                         productPlan.softmax);
  if (facts.isNarrow())
    setNarrowRange(softmax);
  BlockState next = state;
  if (between)
    between(key, next);
  if (transposes && productPlan.qkAhead)
    emitTransposition(operands, state.values);
  Value p = makeOperand(*this, softmax.getP(), productPlan.keyQuads);
  Value valueTile = operands.transposed, valueToken;
  if (!transposes)
    std::tie(valueTile, valueToken) =
        acquire(operands.values, state.values, operands.role);
  Value sum = multiplyValues(*this, p, valueTile, softmax.getNewO());
  Value o = awaitProduct(*this, sum);
  if (!transposes)
    release(operands.values, valueToken, operands.role);
  next.running = {softmax.getNewM(), softmax.getNewL(), o};
  next.keys = advance(state.keys, operands.keys);
  next.values = advance(state.values, operands.values);
  return next;
}

KVLoopOp
WgmmaEmitter::emitBlocks(const BlockOperands &operands, const BlockState &init,
                         function_ref<void(Value, BlockState &)> between) {
  bool isWhole = true;
  auto body = [&](OpBuilder &builder, Location, Value key, ValueRange carried) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(builder.getInsertionBlock());
    FailureOr<BlockState> next =
        emitBlock(operands, key, BlockState(carried), between);
    isWhole = succeeded(next);
    if (isWhole)
      YieldOp::create(b, next->list());
  };
  auto loop = KVLoopOp::create(b, bounds.begin, bounds.fullBegin,
                               bounds.fullEnd, bounds.end, tilePlan.blockN,
                               /*stages=*/1, init.list(), body);
  loop.setQkAhead(productPlan.qkAhead);
  return isWhole ? loop : KVLoopOp();
}
