//===- CopiedGroups.cpp - 8-bit keys in groups of columns -----------------===//
//
// 8-bit keys and values beside 16-bit queries stay as they are in the rings,
// and become f16 as fragments. Queries and probabilities are f16 then.
//
// A row of latent keys is groups of columns, which are the values, and rotated
// columns. A score is the sum of the product with the rotated columns and of
// the groups' products, each times the scales of its keys, if they have any.
// The results of a group's columns come from probabilities times these scales.
// Keys and values that are not latent have groups, and rings, of their own.
//
//   copy Q
//   for block t: for each group g: S += Q(g) K(t, g)^T * scales(t, g)
//                softmax
//                for each group g: O(g) += (P * scales(t, g)) V(t, g)
//
//===----------------------------------------------------------------------===//

#include "CopiedKernel.h"

using namespace mlir;
using namespace mlir::attn;

void CopiedKernel::computeGroupedTile() {
  memory.makeViews();
  if (!isTight)
    results.makeViews();
  memory.allocate();
  SmallVector<Value> queries;
  if (memory.loadsQueries()) {
    queries = loadQueries();
  } else {
    copyQueries();
    CpAsyncCommitOp::create(b);
    CpAsyncWaitOp::create(b, 0);
    queries = placeGroupedQueries();
  }
  findBlocks();
  emitScoreDescale(tile);
  Value scale = emitExponentScale(tile);
  CopiedRows rows = softmax.start();

  ArrayRef<CopiedColumns> keys = memory.keys.front(),
                          values = memory.values.front();
  bool isRotated = extents.isLatent && facts.getRopeColumns() != 0;
  int64_t keyGroups = keys.size() - (isRotated ? 1 : 0);
  int64_t valueGroups = facts.valueDim / extents.groupColumns;
  RankedTensorType sums = getGroupedScores();
  forBlocks([&](Value key) {
    SmallVector<Value> k(keyGroups);
    Value none = makeNoScores(sums), s, other, keyScales;
    if (isRotated)
      s = multiplyKeys(sums, queries.back(), memory.stage(keys.back(), key),
                       none);
    for (int64_t group = 0; group < keyGroups; ++group) {
      k[group] = memory.stage(keys[group], key);
      if (facts.kScales && group == 0)
        keyScales = memory.stage(memory.keyScales, key);
      if (facts.kScales) {
        Value product = multiplyKeys(sums, queries[group], k[group], none);
        s = addScaled(s, product, keyScales, group);
        continue;
      }
      // Products that add to each other wait for each other, and a warp's keys
      // are few: every other group has sums of its own.
      Value &sum = s && group % 2 == 0 ? other : s;
      sum = multiplyKeys(sums, queries[group], k[group], sum ? sum : none);
    }
    if (other)
      s = arith::AddFOp::create(b, s, other);
    s = finishScores(s, key);
    if (!s)
      return;

    Value p = softmax.step(s, scale, rows);

    // Latent columns are both keys and values.
    Value scales = keyScales;
    for (int64_t group = 0; group < valueGroups; ++group) {
      Value v = extents.isLatent ? k[group] : memory.stage(values[group], key);
      if (facts.vScales && group == 0)
        scales = memory.stage(memory.valueScales, key);
      Value weights = p;
      if (scales)
        weights = softmax.narrow(multiplyScales(p, scales, getScale(group)));
      rows.o = multiplyValues(weights, v, rows.o, group * extents.groupColumns);
    }
  });
  if (!control.isWhole())
    return;
  // Without any key nothing has waited for Q, whose bytes are used again.
  if (!plan.getQInRegs())
    CpAsyncWaitOp::create(b, 0);
  finish(rows);
}

RankedTensorType CopiedKernel::getGroupedScores() {
  RankedTensorType type = layouts.getScoreSums();
  if (!plan.exchangesScores())
    return type;
  // The values' scales are the same numbers for another layout: groups would
  // pass through shared memory, one by one, before they are added.
  return type.cloneWithEncoding(MmaLayoutAttr::get(
      b.getContext(), {plan.getRowWarps(), plan.getColumnWarps()}));
}

int64_t CopiedKernel::getScale(int64_t group) const {
  return group * extents.groupColumns / facts.scaleGroup;
}

Value CopiedKernel::addScaled(Value sum, Value product, Value slot,
                              int64_t group) {
  Value scales = loadScales(product, slot, getScale(group));
  if (!sum)
    return arith::MulFOp::create(b, product, scales);
  return math::FmaOp::create(b, product, scales, sum);
}

Value CopiedKernel::keepInQuads(Value queries, size_t i) {
  constexpr unsigned kBits = 16;
  Value buffer = memory.queries[i].memory;
  ArrayRef<int64_t> shape = cast<BufferType>(buffer.getType()).getShape();
  auto quads = SwizzledLayoutAttr::get(
      b.getContext(), SharedLayout::chooseSpan(shape[1], kBits),
      /*columnQuads=*/true);
  auto type = BufferType::get(b.getContext(), shape, tile.getOperandType(),
                              quads, MemorySpace::Shared);
  Value kept = ReinterpretOp::create(b, type, buffer);
  LocalStoreOp::create(b, queries, kept);
  return kept;
}

SmallVector<Value> CopiedKernel::placeGroupedQueries() {
  size_t held = plan.getQInRegs() ? memory.queries.size() : 0;
  if (extents.isLatent)
    held = extents.heldKeyGroups;
  // Rotated columns of 16 bits are a product of another type.
  size_t converted = memory.queries.size() - (facts.kRope ? 1 : 0);
  SmallVector<Value> operands;
  // All loads come before all stores, which take their bytes: one barrier.
  for (size_t i = 0; i < converted; ++i)
    operands.push_back(readQuery(i));
  for (size_t i = held; i < converted; ++i)
    operands[i] = keepInQuads(operands[i], i);
  if (facts.kRope)
    operands.push_back(memory.queries.back().memory);
  return operands;
}
