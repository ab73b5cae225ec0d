//===- CopiedLatent.cpp - 8-bit keys in groups of columns -----------------===//
//
// A row of keys is latent columns of 8 bits, with a scale for each group of
// them, and rotated columns of 16 bits. Each group has a ring, from which
// products take its columns as fragments of f16, for scores and for values. A
// score is the sum of the product with the rotated columns and of the groups'
// products, each times the scales of its keys. The results of a group's columns
// come from probabilities times these scales. Keys and values that are not
// latent have groups, and rings, of their own. Rows without scales have the
// same rings, and one for rotated columns of 8 bits.
//
//===----------------------------------------------------------------------===//

#include "CopiedEmitter.h"

using namespace mlir;
using namespace mlir::attn;

void CopiedEmitter::allocGroupedRings() {
  int64_t stages = plan.getStages();
  kRing = vRing = bufferType({stages, partN, extents.keyGroup}, facts.keyType);
  for (int64_t group = 0; group < countKeyGroups(); ++group) {
    std::string suffix = std::to_string(group);
    kBuffers.push_back(alloc("k" + suffix, kRing));
    if (facts.kScales)
      kScaleRings.push_back(allocScales("k_scales" + suffix));
  }
  if (extents.isLatent) {
    Type type = facts.kRope ? facts.elementType : facts.keyType;
    ropeRing =
        alloc("k_rope", bufferType({stages, partN, facts.ropeDim}, type));
    return;
  }
  for (int64_t i = 0; i < facts.valueDim / extents.keyGroup; ++i) {
    std::string suffix = std::to_string(i);
    vBuffers.push_back(alloc("v" + suffix, vRing));
    vScaleRings.push_back(allocScales("v_scales" + suffix));
  }
}

BufferType CopiedEmitter::getQueryGroupType(int64_t columns, Type elementType) {
  // A thread reads four columns of a row, as fragments have them: of four rows
  // they are in different banks where 16 columns lie together.
  constexpr int64_t kSpan = 32;
  return BufferType::get(b.getContext(), {blockM, columns}, elementType,
                         SwizzledLayoutAttr::get(b.getContext(), kSpan),
                         MemorySpace::Shared);
}

SmallVector<Value> CopiedEmitter::emitNarrowLatentQueries() {
  SmallVector<Value> buffers, tiles;
  auto copy = [&](int64_t first, int64_t columns, BufferType type) {
    Value buffer = alloc("q" + std::to_string(buffers.size()), type);
    CpAsyncOp::create(b, emitQueryView(first, columns), row, buffer,
                      /*in_bounds=*/UnitAttr());
    buffers.push_back(buffer);
  };
  for (int64_t group = 0; group < countKeyGroups(); ++group)
    copy(group * extents.keyGroup, extents.keyGroup,
         getQueryGroupType(extents.keyGroup, facts.elementType));
  copy(facts.valueDim, facts.ropeDim,
       facts.kRope ? bufferType({blockM, facts.ropeDim})
                   : getQueryGroupType(facts.ropeDim, facts.elementType));
  allocRings();
  CpAsyncCommitOp::create(b);
  CpAsyncWaitOp::create(b, 0);
  for (auto [index, buffer] : llvm::enumerate(buffers)) {
    auto shape = cast<BufferType>(buffer.getType()).getShape();
    RankedTensorType type = tileType(shape, facts.elementType);
    if (int64_t(index) == countKeyGroups() && facts.kRope) {
      tiles.push_back(buffer);
      continue;
    }
    Value q = LocalLoadOp::create(b, type, buffer);
    q = emitOperand(q);
    if (int64_t(index) < extents.heldKeyGroups) {
      tiles.push_back(q);
      continue;
    }
    // Each block reads what has no registers.
    Value kept = buffer;
    if (facts.elementType != getOperandType()) {
      kept = ReinterpretOp::create(
          b, getQueryGroupType(shape[1], getOperandType()), buffer);
      LocalStoreOp::create(b, q, kept);
    }
    tiles.push_back(kept);
  }
  return tiles;
}

SmallVector<Value> CopiedEmitter::emitNarrowLatentViews() {
  SmallVector<Value> views;
  for (int64_t group = 0; group < countKeyGroups(); ++group)
    views.push_back(
        source->emitView("k", at, group * extents.keyGroup, extents.keyGroup));
  views.push_back(
      facts.kRope ? source->emitView("k_rope", at)
                  : source->emitView("k", at, facts.valueDim, facts.ropeDim));
  return views;
}

FailureOr<CopiedEmitter::BlockPart>
CopiedEmitter::emitGroupedProducts(ImplicitLocOpBuilder &lb, Value key,
                                   const BlockOperands &from) {
  RankedTensorType scoreType = getScoreSumsType();
  // The values' scales are the same numbers for another layout: groups would
  // pass through shared memory, one by one, before they are added.
  if (plan.exchangesScores())
    scoreType = scoreType.cloneWithEncoding(MmaLayoutAttr::get(
        b.getContext(), {plan.getRowWarps(), plan.getColumnWarps()}));
  Value zero =
      arith::ConstantOp::create(lb, cast<TypedAttr>(lb.getZeroAttr(scoreType)));
  auto multiply = [&](Value q, Value slot, Value sum) -> Value {
    auto type = cast<BufferType>(slot.getType());
    Value transposed = TransposeOp::create(
        lb, bufferType({type.getShape()[1], partN}, type.getElementType()),
        slot);
    // Fragments of f16 are made beside queries in registers only.
    auto buffer = dyn_cast<BufferType>(q.getType());
    if (buffer && type.getElementType() == facts.keyType)
      q = LocalLoadOp::create(
          lb, tileType(buffer.getShape(), buffer.getElementType()), q);
    return MmaOp::create(lb, scoreType, q, transposed, sum);
  };
  BlockPart part;
  if (extents.isLatent) {
    Value rope =
        StageOp::create(lb, getSlotType(cast<BufferType>(ropeRing.getType())),
                        from.kViews.back(), key, ropeRing);
    part.scores = multiply(from.q.back(), rope, zero);
  }
  for (int64_t group = 0; group < countKeyGroups(); ++group) {
    part.keys.push_back(StageOp::create(
        lb, getSlotType(kRing), from.kViews[group], key, kBuffers[group]));
    if (!facts.kScales) {
      part.scores = multiply(from.q[group], part.keys.back(), part.scores);
      continue;
    }
    part.scales.push_back(
        stageScales(lb, key, from.kScales[group], kScaleRings[group]));
    Value product = multiply(from.q[group], part.keys.back(), zero);
    Value scales = emitColumnScales(lb, product, part.scales.back());
    part.scores =
        part.scores
            ? math::FmaOp::create(lb, product, scales, part.scores).getResult()
            : arith::MulFOp::create(lb, product, scales).getResult();
  }
  if (failed(emitScores(lb, key, part.scores)))
    return failure();
  if (plan.exchangesScores())
    part.scores = ConvertLayoutOp::create(lb, getSharedScores(), part.scores);
  return part;
}

Value CopiedEmitter::emitGroupedValues(ImplicitLocOpBuilder &lb, Value key,
                                       const BlockPart &part,
                                       const BlockOperands &from, Value p,
                                       Value o) {
  int64_t groups = facts.valueDim / extents.keyGroup;
  for (int64_t group = 0; group < groups; ++group) {
    // Latent columns are both.
    Value values, scales;
    if (extents.isLatent) {
      values = part.keys[group];
      if (facts.kScales)
        scales = part.scales[group];
    } else {
      values = StageOp::create(lb, getSlotType(vRing), from.vViews[group], key,
                               vBuffers[group]);
      scales = stageScales(lb, key, from.vScales[group], vScaleRings[group]);
    }
    Value weights = p;
    if (scales)
      weights = emitNarrow(
          lb, arith::MulFOp::create(lb, p, emitColumnScales(lb, p, scales)));
    o = MmaOp::create(lb, o.getType(), weights, values, o,
                      lb.getI64IntegerAttr(group * extents.keyGroup),
                      /*depth_parts=*/IntegerAttr(), /*f16_sums=*/UnitAttr());
  }
  return o;
}
