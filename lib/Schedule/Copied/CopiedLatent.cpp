//===- CopiedLatent.cpp - 8-bit keys in groups of columns -----------------===//
//
// A row of keys is latent columns of 8 bits, with a scale for each group of
// them, and rotated columns of 16 bits. Each group has a ring, from which
// products take its columns as fragments of f16, for scores and for values; the
// scales of a row are copied together. A score is the sum of the product with
// the rotated columns and of the groups' products, each times the scales of its
// keys. The results of a group's columns come from probabilities times these
// scales. Keys and values that are not latent have groups, and rings, of their
// own; without scales of groups where queries stay in shared memory. Latent
// rows without scales have the same rings, and one for rotated columns of 8
// bits.
//
//===----------------------------------------------------------------------===//

#include "CopiedEmitter.h"

using namespace mlir;
using namespace mlir::attn;

void CopiedEmitter::allocGroupedRings() {
  int64_t stages = plan.getStages();
  kRing = vRing =
      bufferType({stages, partN, extents.groupColumns}, facts.keyType);
  for (int64_t group = 0; group < countKeyGroups(); ++group)
    kBuffers.push_back(alloc("k" + std::to_string(group), kRing));
  if (extents.isLatent) {
    Type type = facts.kRope ? facts.elementType : facts.keyType;
    ropeRing =
        alloc("k_rope", bufferType({stages, partN, facts.ropeDim}, type));
  }
  if (facts.kScales)
    kScaleRing = allocScales("k_scales", facts.kScales.shape.back());
  if (extents.isLatent)
    return;
  int64_t valueGroups = facts.valueDim / extents.groupColumns;
  for (int64_t group = 0; group < valueGroups; ++group)
    vBuffers.push_back(alloc("v" + std::to_string(group), vRing));
  if (facts.vScales)
    vScaleRing = allocScales("v_scales", facts.vScales.shape.back());
}

Value CopiedEmitter::loadOperand(Value buffer) {
  auto type = cast<BufferType>(buffer.getType());
  return emitOperand(LocalLoadOp::create(
      b, tileType(type.getShape(), facts.elementType), buffer));
}

SmallVector<Value> CopiedEmitter::keepInQuads(ArrayRef<Value> buffers) {
  constexpr unsigned kBits = 16;
  // All loads in front of all stores, which take their bytes: one barrier.
  SmallVector<Value> tiles = llvm::map_to_vector(
      buffers, [&](Value buffer) { return loadOperand(buffer); });
  SmallVector<Value> kept;
  for (auto [buffer, tile] : llvm::zip(buffers, tiles)) {
    ArrayRef<int64_t> shape = cast<BufferType>(buffer.getType()).getShape();
    auto quads = SwizzledLayoutAttr::get(
        b.getContext(), SharedLayout::chooseSpan(shape[1], kBits),
        /*columnQuads=*/true);
    auto type = BufferType::get(b.getContext(), shape, getOperandType(), quads,
                                MemorySpace::Shared);
    kept.push_back(ReinterpretOp::create(b, type, buffer));
    LocalStoreOp::create(b, tile, kept.back());
  }
  return kept;
}

SmallVector<Value> CopiedEmitter::emitNarrowLatentQueries() {
  SmallVector<Value> buffers, tiles;
  auto copy = [&](int64_t first, int64_t columns) {
    Value buffer = alloc("q" + std::to_string(buffers.size()),
                         bufferType({blockM, columns}));
    CpAsyncOp::create(b, emitQueryView(first, columns), row, buffer,
                      /*in_bounds=*/UnitAttr());
    buffers.push_back(buffer);
  };
  for (int64_t group = 0; group < countKeyGroups(); ++group)
    copy(group * extents.groupColumns, extents.groupColumns);
  copy(facts.valueDim, facts.ropeDim);
  allocRings();
  CpAsyncCommitOp::create(b);
  CpAsyncWaitOp::create(b, 0);
  auto held = ArrayRef(buffers).take_front(extents.heldKeyGroups);
  for (Value buffer : held)
    tiles.push_back(loadOperand(buffer));
  // Rotated columns of 16 bits are a product of another type.
  auto kept = ArrayRef(buffers).drop_front(held.size());
  llvm::append_range(tiles, keepInQuads(facts.kRope ? kept.drop_back() : kept));
  if (facts.kRope)
    tiles.push_back(kept.back());
  return tiles;
}

SmallVector<Value> CopiedEmitter::emitNarrowLatentViews() {
  SmallVector<Value> views;
  for (int64_t group = 0; group < countKeyGroups(); ++group)
    views.push_back(source->emitView("k", at, group * extents.groupColumns,
                                     extents.groupColumns));
  views.push_back(
      facts.kRope ? source->emitView("k_rope", at)
                  : source->emitView("k", at, facts.valueDim, facts.ropeDim));
  return views;
}

Value CopiedEmitter::stageScales(ImplicitLocOpBuilder &lb, Value key,
                                 Value view, Value ring) {
  return StageOp::create(lb, getSlotType(cast<BufferType>(ring.getType())),
                         view, key, ring);
}

Value CopiedEmitter::emitColumnScales(ImplicitLocOpBuilder &lb, Value tile,
                                      Value slot, int64_t group) {
  auto type = cast<RankedTensorType>(tile.getType());
  RankedTensorType scaleType = f32Tile({partN});
  if (auto layout = dyn_cast<MmaLayoutAttr>(type.getEncoding()))
    scaleType = scaleType.cloneWithEncoding(
        SliceLayoutAttr::get(lb.getContext(), /*dim=*/0, layout));
  Value scales;
  if (cast<BufferType>(slot.getType()).getShape()[1] > 1) {
    scales =
        LocalLoadOp::create(lb, scaleType, slot, lb.getI64IntegerAttr(group));
  } else {
    auto rows = BufferType::get(lb.getContext(), {partN}, lb.getF32Type(),
                                RowLayoutAttr::get(lb.getContext()),
                                MemorySpace::Shared);
    scales = LocalLoadOp::create(lb, scaleType,
                                 ReinterpretOp::create(lb, rows, slot));
  }
  return BroadcastOp::create(lb, type, scales, /*columns=*/true);
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
  auto multiply = [&](Value q, Value slot, Value sums) -> Value {
    auto type = cast<BufferType>(slot.getType());
    Value transposed = TransposeOp::create(
        lb, bufferType({type.getShape()[1], partN}, type.getElementType()),
        slot);
    return MmaOp::create(lb, scoreType, q, transposed, sums);
  };
  BlockPart part;
  if (extents.isLatent) {
    Value rope =
        StageOp::create(lb, getSlotType(cast<BufferType>(ropeRing.getType())),
                        from.kViews.back(), key, ropeRing);
    part.scores = multiply(from.q.back(), rope, zero);
  }
  // Products that add to each other wait for each other, and a warp's keys are
  // few: every other group has sums of its own.
  Value second;
  for (int64_t group = 0; group < countKeyGroups(); ++group) {
    part.keys.push_back(StageOp::create(
        lb, getSlotType(kRing), from.kViews[group], key, kBuffers[group]));
    if (facts.kScales && !part.scales)
      part.scales = stageScales(lb, key, from.kScales, kScaleRing);
    Value q = from.q[group];
    if (!facts.kScales) {
      Value &sums = part.scores && group % 2 == 0 ? second : part.scores;
      sums = multiply(q, part.keys.back(), sums ? sums : zero);
      continue;
    }
    Value product = multiply(q, part.keys.back(), zero);
    Value scales = emitColumnScales(lb, product, part.scales, getScale(group));
    part.scores =
        part.scores
            ? math::FmaOp::create(lb, product, scales, part.scores).getResult()
            : arith::MulFOp::create(lb, product, scales).getResult();
  }
  if (second)
    part.scores = arith::AddFOp::create(lb, part.scores, second);
  if (failed(emitScores(lb, key, part.scores)))
    return failure();
  if (plan.exchangesScores() && !plan.gathersProbabilities())
    part.scores = ConvertLayoutOp::create(lb, getSharedScores(), part.scores);
  return part;
}

Value CopiedEmitter::emitGroupedValues(ImplicitLocOpBuilder &lb, Value key,
                                       const BlockPart &part,
                                       const BlockOperands &from, Value p,
                                       Value o) {
  int64_t groups = facts.valueDim / extents.groupColumns;
  // Latent columns are both.
  Value scales = part.scales;
  for (int64_t group = 0; group < groups; ++group) {
    Value values;
    if (extents.isLatent) {
      values = part.keys[group];
    } else {
      values = StageOp::create(lb, getSlotType(vRing), from.vViews[group], key,
                               vBuffers[group]);
      if (facts.vScales && group == 0)
        scales = stageScales(lb, key, from.vScales, vScaleRing);
    }
    Value weights = p;
    if (scales)
      weights = emitNarrow(
          lb, arith::MulFOp::create(
                  lb, p, emitColumnScales(lb, p, scales, getScale(group))));
    o = MmaOp::create(lb, o.getType(), weights, values, o,
                      lb.getI64IntegerAttr(group * extents.groupColumns),
                      /*depth_parts=*/IntegerAttr(), /*f16_sums=*/UnitAttr());
  }
  return o;
}
