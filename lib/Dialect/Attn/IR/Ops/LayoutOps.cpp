//===- LayoutOps.cpp - How the layouts of an op's tiles relate ------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/IR/LayoutLinks.h"

using namespace mlir;
using namespace mlir::attn;

static bool isTileValue(Value value) {
  return value && isa<RankedTensorType>(value.getType());
}

static Attribute getEncoding(Value tile) {
  return cast<RankedTensorType>(tile.getType()).getEncoding();
}

bool attn::isElementwiseOnTiles(Operation *op) {
  auto tiles = dyn_cast<LayoutOpInterface>(op);
  return OpTrait::hasElementwiseMappableTraits(op) ||
         (tiles && tiles.isElementwiseOnTiles());
}

/// The layout of row values of a tile: in which order its columns are does not
/// count, and all tiles with the same rows share it.
static Attribute getRowsLayout(Attribute tile) {
  auto mma = dyn_cast<MmaLayoutAttr>(tile);
  if (!mma || !mma.getColumnQuads())
    return tile;
  return MmaLayoutAttr::get(mma.getContext(), mma.getWarps(), mma.getCopies());
}

Attribute attn::followLink(Attribute layout, LayoutRelation relation) {
  MLIRContext *context = layout.getContext();
  switch (relation) {
  case LayoutRelation::Same:
    return layout;
  case LayoutRelation::RowsOf:
    // From row values to the tile.
    if (auto slice = dyn_cast<SliceLayoutAttr>(layout))
      return slice.getDim() == 1 ? slice.getParent() : Attribute();
    return {};
  case LayoutRelation::ColumnsOf:
    if (auto slice = dyn_cast<SliceLayoutAttr>(layout))
      return slice.getDim() == 0 ? slice.getParent() : Attribute();
    return {};
  case LayoutRelation::PartialOf:
    if (auto partial = dyn_cast<PartialLayoutAttr>(layout))
      return partial.getParent();
    return {};
  case LayoutRelation::TileOf:
    if (isa<MmaLayoutAttr, TmemRegsLayoutAttr>(layout))
      return SliceLayoutAttr::get(context, 1, getRowsLayout(layout));
    if (auto partial = dyn_cast<PartialLayoutAttr>(layout))
      return SliceLayoutAttr::get(context, 1, partial.getParent());
    return {};
  case LayoutRelation::TileOfColumns:
    if (isa<MmaLayoutAttr, TmemRegsLayoutAttr>(layout))
      return SliceLayoutAttr::get(context, 0, layout);
    return {};
  case LayoutRelation::TileOfPartial:
    if (isa<MmaLayoutAttr, TmemRegsLayoutAttr>(layout))
      return PartialLayoutAttr::get(context, getRowsLayout(layout));
    return {};
  }
  llvm_unreachable("covered switch");
}

LayoutRelation attn::invert(LayoutRelation relation) {
  switch (relation) {
  case LayoutRelation::Same:
    return LayoutRelation::Same;
  case LayoutRelation::RowsOf:
    return LayoutRelation::TileOf;
  case LayoutRelation::ColumnsOf:
    return LayoutRelation::TileOfColumns;
  case LayoutRelation::TileOfColumns:
    return LayoutRelation::ColumnsOf;
  case LayoutRelation::PartialOf:
    return LayoutRelation::TileOfPartial;
  case LayoutRelation::TileOf:
    return LayoutRelation::RowsOf;
  case LayoutRelation::TileOfPartial:
    return LayoutRelation::PartialOf;
  }
  llvm_unreachable("covered switch");
}

//===----------------------------------------------------------------------===//
// Row values
//===----------------------------------------------------------------------===//

void ReduceOp::getLayoutLinks(SmallVectorImpl<LayoutLink> &links) {
  links.push_back(
      {getResult(), getSource(),
       getPartial() ? LayoutRelation::PartialOf : LayoutRelation::RowsOf});
}

void ColumnOp::getLayoutLinks(SmallVectorImpl<LayoutLink> &links) {
  links.push_back({getResult(), getSource(), LayoutRelation::RowsOf});
}

void BroadcastOp::getLayoutLinks(SmallVectorImpl<LayoutLink> &links) {
  links.push_back(
      {getSource(), getResult(),
       getColumns() ? LayoutRelation::ColumnsOf : LayoutRelation::RowsOf});
}

Attribute BroadcastOp::getOperandLayout(OpOperand &, MmaLayoutAttr) {
  return followLink(getEncoding(getResult()),
                    getColumns() ? LayoutRelation::TileOfColumns
                                 : LayoutRelation::TileOf);
}

void ApplyMaskOp::getLayoutLinks(SmallVectorImpl<LayoutLink> &links) {
  links.push_back({getSource(), getResult()});
  for (Value keys : {getFrom(), getTo()})
    if (keys)
      links.push_back({keys, getSource(), LayoutRelation::RowsOf});
}

Attribute ApplyMaskOp::getOperandLayout(OpOperand &operand, MmaLayoutAttr) {
  Attribute tile = getEncoding(getResult());
  return operand.get() == getSource()
             ? tile
             : followLink(tile, LayoutRelation::TileOf);
}

void RowKeysOp::getLayoutLinks(SmallVectorImpl<LayoutLink> &links) {
  links.push_back({getFrom(), getTo()});
}

void TeamTakeOp::getLayoutLinks(SmallVectorImpl<LayoutLink> &links) {
  for (auto [tile, result] : llvm::zip(getTiles(), getResults()))
    links.push_back({tile, result});
}

void TeamShareOp::getLayoutLinks(SmallVectorImpl<LayoutLink> &links) {
  size_t tiles = getTiles().size();
  for (auto [i, result] : llvm::enumerate(getResults()))
    links.push_back({getTiles()[i % tiles], result});
}

void SliceOp::getLayoutLinks(SmallVectorImpl<LayoutLink> &links) {
  links.push_back({getSource(), getResult()});
}

void OnlineSoftmaxOp::getLayoutLinks(SmallVectorImpl<LayoutLink> &links) {
  links.push_back({getS(), getP()});
  links.push_back({getM(), getNewM()});
  links.push_back({getL(), getNewL()});
  links.push_back({getO() ? getO() : getM(), getNewO()});
  links.push_back({getM(), getS(), LayoutRelation::RowsOf});
  links.push_back({getL(), getS(), LayoutRelation::PartialOf});
  if (!getLargest())
    return;
  links.push_back({getLargest(), getNewLargest()});
  links.push_back(
      {getLargest(), getS(),
       getRowLargest() ? LayoutRelation::RowsOf : LayoutRelation::PartialOf});
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void MmaOp::getLayoutLinks(SmallVectorImpl<LayoutLink> &links) {
  links.push_back({getC(), getResult()});
}

/// True if the contraction of a buffer is contiguous in memory.
static bool isContiguousAlongDepth(Value buffer) {
  auto type = cast<BufferType>(buffer.getType());
  return isa<TransposedLayoutAttr>(type.getLayout());
}

/// The layout of operand `index` of a product with that accumulator layout.
static Attribute getMmaOperandLayout(MmaOp op, int64_t index,
                                     Attribute accumulator) {
  bool isInQuads =
      index == 0 && op.widensB() && isContiguousAlongDepth(op.getB());
  return OperandLayoutAttr::get(op.getContext(), index, accumulator, isInQuads);
}

void MmaOp::getLayoutAnchors(MmaLayoutAttr accumulator,
                             SmallVectorImpl<LayoutAnchor> &anchors) {
  Attribute layout = getEncoding(getResult());
  if (isa<AutoLayoutAttr>(layout)) {
    layout = accumulator;
    if (getInterleaved() || (widensB() && !isContiguousAlongDepth(getB())))
      layout = MmaLayoutAttr::get(getContext(), accumulator.getWarps(),
                                  accumulator.getCopies(),
                                  /*columnRuns=*/false, /*columnQuads=*/true);
    anchors.push_back({getResult(), layout});
  }
  for (auto [index, operand] :
       llvm::enumerate(std::array<Value, 2>{getA(), getB()}))
    if (isTileValue(operand))
      anchors.push_back({operand, getMmaOperandLayout(*this, index, layout),
                         /*isStrong=*/false});
}

Attribute MmaOp::getOperandLayout(OpOperand &operand, MmaLayoutAttr) {
  Attribute layout = getEncoding(getResult());
  if (&operand == &getCMutable())
    return layout;
  return getMmaOperandLayout(*this, operand.getOperandNumber(), layout);
}

/// The layout of an accumulator in flight where it is not the usual one.
static MmaLayoutAttr getAccumulatorLayout(Type inFlight, MmaLayoutAttr usual) {
  auto layout =
      dyn_cast_or_null<MmaLayoutAttr>(cast<InFlightType>(inFlight).getLayout());
  return layout ? layout : usual;
}

void WgmmaOp::getLayoutAnchors(MmaLayoutAttr accumulator,
                               SmallVectorImpl<LayoutAnchor> &anchors) {
  accumulator = getAccumulatorLayout(getType(), accumulator);
  if (isTileValue(getA()))
    anchors.push_back({getA(),
                       OperandLayoutAttr::get(getContext(), 0, accumulator),
                       /*isStrong=*/false});
  if (isTileValue(getC()))
    anchors.push_back({getC(), accumulator, /*isStrong=*/false});
}

Attribute WgmmaOp::getOperandLayout(OpOperand &operand,
                                    MmaLayoutAttr accumulator) {
  accumulator = getAccumulatorLayout(getType(), accumulator);
  if (&operand == &getAMutable())
    return OperandLayoutAttr::get(getContext(), 0, accumulator);
  return accumulator;
}

void WgmmaWaitOp::getLayoutAnchors(MmaLayoutAttr accumulator,
                                   SmallVectorImpl<LayoutAnchor> &anchors) {
  for (auto [source, result] : llvm::zip(getSources(), getResults()))
    if (isa<AutoLayoutAttr>(getEncoding(result)))
      anchors.push_back(
          {result, getAccumulatorLayout(source.getType(), accumulator)});
}

void WgmmaResumeOp::getLayoutAnchors(MmaLayoutAttr accumulator,
                                     SmallVectorImpl<LayoutAnchor> &anchors) {
  anchors.push_back({getSource(), accumulator, /*isStrong=*/false});
}

Attribute WgmmaResumeOp::getOperandLayout(OpOperand &,
                                          MmaLayoutAttr accumulator) {
  return accumulator;
}

void ExtendColumnsOp::getLayoutLinks(SmallVectorImpl<LayoutLink> &links) {
  links.push_back({getResult(), getSource()});
}

/// The layout of warps that have whole rows where those of an accumulator may
/// divide them.
static MmaLayoutAttr getWholeRows(MmaLayoutAttr accumulator) {
  auto [m, n] = std::pair(accumulator.getWarps()[0], accumulator.getWarps()[1]);
  return MmaLayoutAttr::get(accumulator.getContext(), {m, 1},
                            n * accumulator.getCopies());
}

void NarrowOperandOp::getLayoutAnchors(MmaLayoutAttr accumulator,
                                       SmallVectorImpl<LayoutAnchor> &anchors) {
  anchors.push_back(
      {getSource(), getWholeRows(accumulator), /*isStrong=*/false});
  anchors.push_back({getResult(),
                     OperandLayoutAttr::get(getContext(), 0, accumulator),
                     /*isStrong=*/false});
}

Attribute NarrowOperandOp::getOperandLayout(OpOperand &,
                                            MmaLayoutAttr accumulator) {
  return getWholeRows(accumulator);
}

//===----------------------------------------------------------------------===//
// Tensor memory
//===----------------------------------------------------------------------===//

void TmemWaitOp::getLayoutAnchors(MmaLayoutAttr,
                                  SmallVectorImpl<LayoutAnchor> &anchors) {
  for (auto [source, result] : llvm::zip(getSources(), getResults()))
    if (isa<AutoLayoutAttr>(getEncoding(result)))
      anchors.push_back(
          {result, cast<InFlightType>(source.getType()).getLayout()});
}

/// The layout that a store wants where nothing else fixes one.
static Attribute getStoreLayout(TmemStoreOp op) {
  if (cast<TmemLayoutAttr>(op.getDest().getType().getLayout()).getHalves())
    return TmemRegsLayoutAttr::get(op.getContext(), TmemShape::S32x32b,
                                   {kWarpgroupWarps / 2, 2});
  bool wide = op.getDest().getType().getShape()[0] == kTmemLanes;
  return TmemRegsLayoutAttr::get(
      op.getContext(), wide ? TmemShape::S32x32b : TmemShape::S16x256b,
      {kWarpgroupWarps, 1});
}

void TmemStoreOp::getLayoutAnchors(MmaLayoutAttr,
                                   SmallVectorImpl<LayoutAnchor> &anchors) {
  anchors.push_back({getValue(), getStoreLayout(*this), /*isStrong=*/false});
}

/// Any layout that a shape stores as it is.
Attribute TmemStoreOp::getOperandLayout(OpOperand &, MmaLayoutAttr) {
  auto tile = getTileLayout(cast<RankedTensorType>(getValue().getType()));
  auto memory = getTensorMemoryLayout(getDest().getType());
  if (tile && memory)
    if (auto plan = planTmemAccess(*tile, *memory); plan)
      return {};
    else
      llvm::consumeError(plan.takeError());
  else if (!tile)
    llvm::consumeError(tile.takeError());
  if (!memory)
    llvm::consumeError(memory.takeError());
  return getStoreLayout(*this);
}
