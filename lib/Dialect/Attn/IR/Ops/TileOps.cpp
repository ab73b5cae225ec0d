//===- TileOps.cpp - Register tiles ---------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::attn;

static RankedTensorType tileType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

LogicalResult ReduceOp::verify() {
  RankedTensorType source = tileType(getSource()),
                   result = tileType(getResult());
  if (source.getRank() != 2)
    return emitOpError("expected a source of rank 2, got ") << source;
  if (source.getElementType() != result.getElementType())
    return emitOpError("expected the element type ")
           << source.getElementType() << " of the source, got "
           << result.getElementType();
  int64_t rank = getPartial() ? 2 : 1;
  if (result.getRank() != rank)
    return emitOpError("expected a result of rank ")
           << rank << ", got " << result;
  if (result.getShape()[0] != source.getShape()[0])
    return emitOpError("expected ")
           << source.getShape()[0] << " rows, got " << result.getShape()[0];
  bool isPartial = isa_and_nonnull<PartialLayoutAttr>(result.getEncoding());
  if (getPartial() && !isPartial)
    return emitOpError("expected partial sums in a layout #attn.partial, got ")
           << result;
  if (getPartial() && source.getShape()[1] % result.getShape()[1] != 0)
    return emitOpError("expected the result's columns to divide ")
           << source.getShape()[1] << ", got " << result.getShape()[1];
  return success();
}

/// `splat`, the same constant everywhere, as a tile of another type.
static Attribute resize(DenseElementsAttr splat, Type type) {
  return splat.resizeSplat(cast<ShapedType>(type));
}

OpFoldResult ReduceOp::fold(FoldAdaptor adaptor) {
  auto broadcast = getSource().getDefiningOp<BroadcastOp>();
  if (getKind() != ReduceKind::Add && !getPartial() && broadcast &&
      !broadcast.getColumns() && broadcast.getSource().getType() == getType())
    return broadcast.getSource();
  auto constant = dyn_cast_if_present<SplatElementsAttr>(adaptor.getSource());
  if (!constant)
    return {};
  // A sum of negative zeros is another number than 0 in bits.
  bool isZero = isa<FloatType>(constant.getElementType())
                    ? constant.getSplatValue<APFloat>().isPosZero()
                    : isa<IntegerType>(constant.getElementType()) &&
                          constant.getSplatValue<APInt>().isZero();
  if (getKind() == ReduceKind::Add && !isZero)
    return {};
  return resize(constant, getType());
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  auto constant = dyn_cast_if_present<SplatElementsAttr>(adaptor.getSource());
  return constant ? resize(constant, getType()) : Attribute();
}

LogicalResult BroadcastOp::verify() {
  RankedTensorType source = tileType(getSource()),
                   result = tileType(getResult());
  if (source.getRank() != 1 || result.getRank() != 2)
    return emitOpError("expected a source of rank 1 and a result of rank 2, "
                       "got ")
           << source << " and " << result;
  if (source.getElementType() != result.getElementType())
    return emitOpError("expected the element type ")
           << source.getElementType() << " of the source, got "
           << result.getElementType();
  unsigned dim = getSourceDim();
  if (result.getShape()[dim] != source.getShape()[0])
    return emitOpError("expected ")
           << source.getShape()[0] << (dim == 0 ? " rows" : " columns")
           << ", got " << result.getShape()[dim];
  return success();
}

OpFoldResult ColumnOp::fold(FoldAdaptor adaptor) {
  auto constant = dyn_cast_if_present<SplatElementsAttr>(adaptor.getSource());
  return constant ? resize(constant, getType()) : Attribute();
}

LogicalResult ColumnOp::verify() {
  RankedTensorType source = tileType(getSource()),
                   result = tileType(getResult());
  if (source.getRank() != 2 || result.getRank() != 1)
    return emitOpError("expected a source of rank 2 and a result of rank 1, "
                       "got ")
           << source << " and " << result;
  if (source.getElementType() != result.getElementType() ||
      source.getShape()[0] != result.getShape()[0])
    return emitOpError("expected the rows and element type of ")
           << source << ", got " << result;
  int64_t columns = source.getShape()[1], column = getColumn();
  if (column < 0 || column >= columns)
    return emitOpError("expected a column of ")
           << columns << ", got " << column;
  return success();
}

LogicalResult SliceOp::verify() {
  RankedTensorType source = tileType(getSource()),
                   result = tileType(getResult());
  if (source.getRank() != 2 || result.getRank() != 2)
    return emitOpError("expected tiles of rank 2, got ")
           << source << " and " << result;
  if (source.getElementType() != result.getElementType() ||
      source.getShape()[0] != result.getShape()[0] ||
      source.getEncoding() != result.getEncoding())
    return emitOpError("expected the rows, element type and layout of ")
           << source << ", got " << result;
  int64_t first = getColumn(), columns = result.getShape()[1];
  if (first < 0 || first > source.getShape()[1] - columns)
    return emitOpError("expected columns from 0 to ")
           << source.getShape()[1] << ", got " << columns << " from " << first
           << " on";
  return success();
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  return getType() == getSource().getType() ? getSource() : Value();
}

LogicalResult ConvertLayoutOp::verify() {
  RankedTensorType source = tileType(getSource()),
                   result = tileType(getResult());
  if (source.getShape() != result.getShape() ||
      source.getElementType() != result.getElementType())
    return emitOpError("expected the source's shape and element type, got ")
           << result << " for " << source;
  return success();
}

OpFoldResult ConvertLayoutOp::fold(FoldAdaptor) {
  if (getSource().getType() == getType())
    return getSource();
  auto inner = getSource().getDefiningOp<ConvertLayoutOp>();
  return inner && inner.getSource().getType() == getType() ? inner.getSource()
                                                           : Value();
}

/// Checks `polynomial` of attn.exp2 and of what is expanded to it.
static LogicalResult verifyPowers(Operation *op, int64_t polynomial) {
  if (polynomial < 0 || polynomial > 16)
    return op->emitOpError("expected 0 to 16 polynomial elements of 16, got ")
           << polynomial;
  return success();
}

LogicalResult Exp2Op::verify() {
  if (!getElementTypeOrSelf(getType()).isF32())
    return emitOpError("expected f32 elements, got ") << getType();
  if (static_cast<int64_t>(getColumn()) < 0 || getColumn() % 16 != 0)
    return emitOpError("expected column to be a multiple of 16, got ")
           << static_cast<int64_t>(getColumn());
  return verifyPowers(*this, getPolynomial());
}

/// Checks that the columns of a tile can stand for keys in fours.
static LogicalResult verifyQuads(Operation *op, RankedTensorType tile) {
  if (tile.getRank() == 2 && tile.getShape()[1] % 16 == 0)
    return success();
  return op->emitOpError("expected a tile with a multiple of 16 columns for "
                         "'quads', got ")
         << tile;
}

/// Checks that a tile has a key for each of `rows` rows.
static LogicalResult verifyRowKeys(Operation *op, Value keys, int64_t rows) {
  RankedTensorType type = tileType(keys);
  if (type.getRank() == 1 && type.getShape()[0] == rows &&
      type.getElementType().isInteger(32))
    return success();
  return op->emitOpError("expected an i32 key for each of ")
         << rows << " rows, got " << type;
}

LogicalResult ApplyMaskOp::verify() {
  RankedTensorType tile = tileType(getSource());
  if (tile.getRank() != 2 || !isa<FloatType>(tile.getElementType()))
    return emitOpError("expected a float tile of rank 2, got ") << tile;
  if (!getLimit() && !getLower() && !getUpper() && !getFrom() && !getTo())
    return emitOpError(
        "expected at least one of limit, lower, upper, rows and to");
  for (Value keys : {getFrom(), getTo()})
    if (keys && failed(verifyRowKeys(*this, keys, tile.getShape()[0])))
      return failure();
  if (std::optional<uint64_t> group = getGroup();
      group && static_cast<int64_t>(*group) < 1)
    return emitOpError("expected at least one row of a query, got ")
           << static_cast<int64_t>(*group);
  return getQuads() ? verifyQuads(*this, tile) : success();
}

OpFoldResult ApplyMaskOp::fold(FoldAdaptor) {
  auto inner = getSource().getDefiningOp<ApplyMaskOp>();
  // All operands but the tile, and the attributes.
  if (inner && inner->getAttrDictionary() == (*this)->getAttrDictionary() &&
      llvm::equal(inner->getOperands().drop_front(),
                  (*this)->getOperands().drop_front()))
    return getSource();
  return {};
}

OpFoldResult MapElementsOp::fold(FoldAdaptor) {
  Block &block = getBody().front();
  auto yield = dyn_cast<YieldOp>(block.back());
  bool isIdentity = yield && llvm::hasSingleElement(block) &&
                    yield.getOperand(0) == block.getArgument(0);
  return isIdentity ? getSource() : Value();
}

LogicalResult MapElementsOp::verify() {
  if (getUnless() && !getHides())
    return emitOpError("expected 'hides' beside 'unless', got none");
  return success();
}

LogicalResult MapElementsOp::verifyRegions() {
  Block &block = getBody().front();
  Type element = tileType(getSource()).getElementType();
  Type i32 = IntegerType::get(getContext(), 32);
  if (block.getArgumentTypes() != ArrayRef<Type>({element, i32, i32}))
    return emitOpError("expected region arguments (")
           << element << ", i32, i32), got (" << block.getArgumentTypes()
           << ")";
  auto yield = cast<YieldOp>(block.getTerminator());
  if (yield.getOperandTypes() != ArrayRef<Type>({element}))
    return yield.emitOpError("expected one value of type ")
           << element << ", got (" << yield.getOperandTypes() << ")";
  return getQuads() ? verifyQuads(*this, tileType(getSource())) : success();
}

LogicalResult RowKeysOp::verify() {
  RankedTensorType from = tileType(getFrom());
  if (from.getRank() != 1)
    return emitOpError("expected results of rank 1, got ") << from;
  for (Value keys : {getFrom(), getTo()})
    if (failed(verifyRowKeys(*this, keys, from.getShape()[0])))
      return failure();
  if (from != getTo().getType())
    return emitOpError("expected results of one type, got ")
           << from << " and " << getTo().getType();
  return success();
}

LogicalResult RowKeysOp::verifyRegions() {
  Block &block = getBody().front();
  Type i32 = IntegerType::get(getContext(), 32);
  if (block.getArgumentTypes() != ArrayRef<Type>({i32}))
    return emitOpError("expected region arguments (i32), got (")
           << block.getArgumentTypes() << ")";
  auto yield = cast<YieldOp>(block.getTerminator());
  if (yield.getOperandTypes() != ArrayRef<Type>({i32, i32, i32, i32}))
    return yield.emitOpError("expected four i32, got (")
           << yield.getOperandTypes() << ")";
  return success();
}

void OnlineSoftmaxOp::build(OpBuilder &builder, OperationState &state, Value s,
                            Value m, Value l, Value o, Value scale,
                            SoftmaxPolicy policy, Value largest, Value keys) {
  build(builder, state, s.getType(), m.getType(), l.getType(),
        (o ? o : m).getType(), largest ? largest.getType() : Type(), s, m, l, o,
        largest, keys, scale,
        policy == SoftmaxPolicy::Exact
            ? SoftmaxAttr()
            : SoftmaxAttr::get(builder.getContext(), policy),
        /*finite=*/false);
}

SoftmaxAttr OnlineSoftmaxOp::getStep() {
  SoftmaxAttr step = getSoftmaxAttr();
  return step ? step : SoftmaxAttr::get(getContext(), SoftmaxPolicy::Exact);
}

namespace {
/// The parameters of a step, to change one of them.
struct StepParts {
  explicit StepParts(OnlineSoftmaxOp op)
      : op(op), step(op.getStep()), policy(step.getPolicy()),
        offset(step.getOffset()), growth(step.getGrowth()),
        limit(step.getLimit()), slack(step.getSlack()),
        polynomial(step.getPolynomial()), whole(step.getWhole()) {}
  ~StepParts() {
    op.setSoftmaxAttr(SoftmaxAttr::get(op.getContext(), policy, offset, growth,
                                       limit, polynomial, whole, slack));
  }

  OnlineSoftmaxOp op;
  SoftmaxAttr step;
  SoftmaxPolicy policy;
  APFloat offset, growth, limit, slack;
  int64_t polynomial;
  bool whole;
};
} // namespace

void OnlineSoftmaxOp::setPolicy(SoftmaxPolicy policy) {
  StepParts parts(*this);
  parts.policy = policy;
}

void OnlineSoftmaxOp::setOffset(const APFloat &offset) {
  StepParts parts(*this);
  parts.offset = offset;
}

void OnlineSoftmaxOp::setGrowth(const APFloat &growth) {
  StepParts parts(*this);
  parts.growth = growth;
}

void OnlineSoftmaxOp::setLimit(const APFloat &limit) {
  StepParts parts(*this);
  parts.limit = limit;
}

void OnlineSoftmaxOp::setPolynomial(int64_t polynomial) {
  StepParts parts(*this);
  parts.polynomial = polynomial;
}

void OnlineSoftmaxOp::setWhole(bool whole) {
  if (whole == getWhole())
    return;
  StepParts parts(*this);
  parts.whole = whole;
}

void OnlineSoftmaxOp::setSlack(const APFloat &slack) {
  StepParts parts(*this);
  parts.slack = slack;
}

LogicalResult OnlineSoftmaxOp::inferReturnTypes(
    MLIRContext *, std::optional<Location>, ValueRange operands,
    DictionaryAttr attributes, OpaqueProperties properties, RegionRange regions,
    SmallVectorImpl<Type> &types) {
  OnlineSoftmaxOp::Adaptor step(operands, attributes, properties, regions);
  Value s = step.getS(), m = step.getM(), l = step.getL(), o = step.getO();
  types.append({s.getType(), m.getType(), l.getType(), (o ? o : m).getType()});
  if (Value largest = step.getLargest())
    types.push_back(largest.getType());
  return success();
}

LogicalResult OnlineSoftmaxOp::verify() {
  RankedTensorType s = tileType(getS()), m = tileType(getM()),
                   l = tileType(getL()), o = getO() ? tileType(getO()) : s;
  for (auto [name, type, rank] : {std::tuple("s", s, 2), std::tuple("m", m, 1),
                                  std::tuple("l", l, 2), std::tuple("o", o, 2)})
    if (type.getRank() != rank || !type.getElementType().isF32())
      return emitOpError("expected '") << name << "' to be an f32 tile of rank "
                                       << rank << ", got " << type;
  for (auto [name, type] :
       {std::pair("m", m), std::pair("l", l), std::pair("o", o)})
    if (type.getShape()[0] != s.getShape()[0])
      return emitOpError("expected '")
             << name << "' to have the " << s.getShape()[0]
             << " rows of 's', got " << type.getShape()[0];
  for (StringRef name :
       {"policy", "offset", "growth", "limit", "polynomial", "whole", "slack"})
    if ((*this)->getDiscardableAttr(name))
      return emitOpError("expected '")
             << name << "' in the #attn.softmax after 'policy', got an "
             << "attribute of its own";
  if (getLargest() && !getRowLargest() &&
      (getLargest().getType() != getL().getType() || !getWhole()))
    return emitOpError("expected 'largest' to have the type of m or, with "
                       "'whole', that of l, got ")
           << getLargest().getType();
  if (getRowLargest() && (getO() || getPolicy() == SoftmaxPolicy::Optimistic))
    return emitOpError(
        "expected 'largest' without o, under a policy that knows maxima");
  if (getKeys() &&
      (!getRowLargest() || getPolicy() != SoftmaxPolicy::Threshold))
    return emitOpError("expected 'keys' under the policy threshold, beside the "
                       "'largest' of whole rows");
  if (!getKeys() && !getSlack().isZero())
    return emitOpError("expected 'keys' beside a slack of ")
           << getSlack().convertToFloat();
  return verifyPowers(*this, getPolynomial());
}

LogicalResult RareOp::verify() {
  RankedTensorType condition = tileType(getCondition());
  if (!condition.getElementType().isInteger(1))
    return emitOpError("expected a condition of i1, got ") << condition;
  std::optional<int64_t> barrier = getBarrier();
  if (barrier && !getEachWarpgroup())
    return emitOpError("expected 'each_warpgroup' beside a barrier");
  if (barrier && (*barrier < 1 || *barrier > 15))
    return emitOpError("expected a named barrier from 1 to 15, got ")
           << *barrier;
  // The body's ops are not verified yet, but the interface of branches would
  // say the same in other words.
  auto yield = dyn_cast<YieldOp>(getBody().front().back());
  if (yield && yield.getOperandTypes() != getDefaults().getTypes())
    return yield.emitOpError("expected the defaults' types (")
           << getDefaults().getTypes() << "), got (" << yield.getOperandTypes()
           << ")";
  return success();
}

/// What an op does that a path cannot have which only some warps take; empty if
/// it computes only. Ops in its regions are asked for themselves.
static StringRef findObstacle(Operation *op) {
  // A fence orders what its own thread did. Waits are looked at apart.
  if (op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
      isa<ProductWaitOpInterface, FenceProxyOp, Tcgen05FenceOp>(op))
    return "";
  // A warp's loads and stores of tensor memory touch the lanes that it alone
  // reaches.
  if (auto async = dyn_cast<AsyncOpInterface>(op);
      async && async.getAsyncEngine().isTensorCore &&
      async.getAsyncEngine().completion == AsyncEngine::Completion::Groups)
    return "";
  auto memory = dyn_cast<MemoryEffectOpInterface>(op);
  if (!memory)
    return "operation of unknown effects";
  SmallVector<MemoryEffects::EffectInstance> effects;
  memory.getEffects(effects);
  // Operands of a product that is there at once are read as registers are.
  auto product = dyn_cast<ProductOpInterface>(op);
  bool multiplies =
      product && product.getCompletion() == ProductCompletion::AtOnce;
  for (const MemoryEffects::EffectInstance &effect : effects) {
    if (multiplies && isa<MemoryEffects::Read>(effect.getEffect()))
      continue;
    bool isMemory = effect.getValue() ||
                    effect.getResource() == SideEffects::DefaultResource::get();
    return isMemory ? "memory access" : "collective operation";
  }
  return "";
}

LogicalResult RareOp::verifyRegions() {
  WalkResult result = getBody().walk([&](Operation *op) {
    auto wait = dyn_cast<ProductWaitOpInterface>(op);
    if (wait && wait.isOfWarpgroup() && !getEachWarpgroup()) {
      auto diag = op->emitOpError("expected a path that the warps of a "
                                  "warpgroup take together");
      diag.attachNote(getLoc()) << "the path needs 'each_warpgroup'";
      return WalkResult::interrupt();
    }
    StringRef obstacle = findObstacle(op);
    if (obstacle.empty())
      return WalkResult::advance();
    auto diag = op->emitOpError("expected no ")
                << obstacle << " on a path that only some warps take";
    diag.attachNote(getLoc()) << "the path is here";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

LogicalResult RareOp::canonicalize(RareOp op, PatternRewriter &rewriter) {
  DenseElementsAttr condition;
  if (!matchPattern(op.getCondition(), m_Constant(&condition)) ||
      !condition.isSplat())
    return failure();
  if (!condition.getSplatValue<bool>()) {
    rewriter.replaceOp(op, op.getDefaults());
    return success();
  }
  Block *body = &op.getBody().front();
  auto yield = cast<YieldOp>(body->getTerminator());
  SmallVector<Value> results(yield.getOperands());
  rewriter.eraseOp(yield);
  rewriter.inlineBlockBefore(body, op);
  rewriter.replaceOp(op, results);
  return success();
}

OperandRange RareOp::getEntrySuccessorOperands(RegionSuccessor successor) {
  // The body takes nothing; the defaults are for where it does not run.
  if (successor.isParent())
    return getDefaults();
  return OperandRange(operand_end(), operand_end());
}

void RareOp::getSuccessorRegions(RegionBranchPoint point,
                                 SmallVectorImpl<RegionSuccessor> &successors) {
  if (point.isParent())
    successors.emplace_back(&getBody());
  successors.emplace_back(getOperation(), getResults());
}
