//===- IndexOps.cpp - Ops that stand for arithmetic -----------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/IR/BlockBounds.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::attn;

static Value makeI32(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantIntOp::create(b, value, 32);
}

//===----------------------------------------------------------------------===//
// TilePlaceOp
//===----------------------------------------------------------------------===//

LogicalResult TilePlaceOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location>, ValueRange, DictionaryAttr,
    OpaqueProperties properties, RegionRange, SmallVectorImpl<Type> &types) {
  // A parser passes no attributes, of which an adaptor would make defaults.
  IntegerAttr runs = properties.as<Properties *>()->runs;
  bool hasRuns = runs && runs.getInt() > 1;
  types.assign(hasRuns ? 4 : 3, IntegerType::get(context, 32));
  return success();
}

LogicalResult TilePlaceOp::verify() {
  bool hasGroups = getGroup() != 0 || getAlternating();
  if (hasGroups && getOrder() != TileOrder::LongestFirst)
    return emitOpError("expected the order longest_first with groups, got ")
           << stringifyTileOrder(getOrder());
  if (getAlternating() && getGroup() == 0)
    return emitOpError("expected a group with alternating, got none");
  return success();
}

SmallVector<Value> TilePlaceOp::emitArithmetic(ImplicitLocOpBuilder &b) {
  // There is such a tile, so that no difference is negative. The check of
  // synchronisation reads that where no number of tiles says it.
  bool isOpen = !matchPattern(getTiles(), m_Constant()) ||
                !matchPattern(getAll(), m_Constant());
  auto flags = isOpen ? arith::IntegerOverflowFlags::nuw
                      : arith::IntegerOverflowFlags::none;
  auto sub = [&](Value x, Value y) -> Value {
    return arith::SubIOp::create(b, x, y, flags);
  };
  auto divide = [&](Value x, Value y) -> std::pair<Value, Value> {
    Value quotient = arith::DivUIOp::create(b, x, y);
    return {quotient, sub(x, arith::MulIOp::create(b, quotient, y))};
  };
  Value head, tile, run;
  if (getOrder() == TileOrder::LongestFirst) {
    Value one = makeI32(b, 1);
    Value first = makeI32(b, 0), heads = getAll(), inGroup = getTile(), ascends;
    if (getGroup() != 0) {
      Value size = makeI32(b, getGroup()), group;
      std::tie(group, inGroup) =
          divide(getTile(), arith::MulIOp::create(b, size, getTiles()));
      first = arith::MulIOp::create(b, group, size);
      heads = arith::MinSIOp::create(b, size, sub(getAll(), first));
      if (getAlternating()) {
        Value groups = arith::CeilDivUIOp::create(b, getAll(), size);
        Value isOdd = arith::AndIOp::create(b, sub(groups, group), one);
        ascends =
            arith::CmpIOp::create(b, arith::CmpIPredicate::slt, isOdd, one);
      }
    }
    auto [turn, offset] = divide(inGroup, heads);
    tile = sub(sub(getTiles(), one), turn);
    if (ascends)
      tile = arith::SelectOp::create(b, ascends, turn, tile);
    head = b.createOrFold<arith::AddIOp>(first, offset);
  } else {
    std::tie(head, tile) = divide(getTile(), getTiles());
  }
  if (getRuns() > 1)
    std::tie(head, run) = divide(head, makeI32(b, getRuns()));
  auto [batch, inBatch] = divide(head, getHeads());
  // The row is found after what is read of the tile's sequence: it is not held
  // across these loads.
  Operation *first = nullptr;
  for (Operation *user : getRow().getUsers())
    if (Operation *ancestor = (*this)->getBlock()->findAncestorOpInBlock(*user);
        ancestor && (!first || ancestor->isBeforeInBlock(first)))
      first = ancestor;
  if (first) {
    // It stands before the other operands of that op.
    Operation *place = first;
    for (Operation *previous = place->getPrevNode();
         previous &&
         llvm::is_contained(first->getOperands(), previous->getNumResults() == 1
                                                      ? previous->getResult(0)
                                                      : Value());
         previous = place->getPrevNode())
      place = previous;
    b.setInsertionPoint(place);
  }
  Value row = arith::MulIOp::create(b, tile, makeI32(b, getRows()));
  SmallVector<Value> results = {batch, inBatch, row};
  if (run)
    results.push_back(run);
  return results;
}

//===----------------------------------------------------------------------===//
// KeyBlocksOp
//===----------------------------------------------------------------------===//

namespace {

/// Bounds as i32 values.
struct ValueMath {
  using Number = Value;
  Value constant(int64_t value) const { return makeI32(b, value); }
  Value add(Value x, Value y) const {
    return b.createOrFold<arith::AddIOp>(x, y);
  }
  Value addConstant(Value x, int64_t c) const {
    return c == 0 ? x : add(x, constant(c));
  }
  Value sub(Value x, Value y) const { return arith::SubIOp::create(b, x, y); }
  Value min(Value x, Value y) const { return arith::MinSIOp::create(b, x, y); }
  Value max(Value x, Value y) const {
    return b.createOrFold<arith::MaxSIOp>(x, y);
  }
  Value multiply(Value x, Value y) const {
    return arith::MulIOp::create(b, x, y);
  }
  Value divide(Value x, Value y) const {
    return arith::DivUIOp::create(b, x, y);
  }

  ImplicitLocOpBuilder &b;
};

} // namespace

/// Returns the bounds in the order of the op's results.
template <typename Number>
static SmallVector<Number> listBounds(MaskAttr mask,
                                      const BlockBoundsOf<Number> &bounds) {
  SmallVector<Number> results = {bounds.begin, bounds.fullBegin, bounds.fullEnd,
                                 bounds.end};
  if (mask.hasLeft())
    results.push_back(bounds.lower);
  if (mask.hasRight())
    results.push_back(bounds.upper);
  return results;
}

LogicalResult
KeyBlocksOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                              ValueRange operands, DictionaryAttr attributes,
                              OpaqueProperties properties, RegionRange regions,
                              SmallVectorImpl<Type> &types) {
  KeyBlocksOp::Adaptor blocks(operands, attributes, properties, regions);
  MaskAttr mask = blocks.getMask();
  types.assign(4 + mask.hasLeft() + mask.hasRight(),
               IntegerType::get(context, 32));
  return success();
}

SmallVector<Value> KeyBlocksOp::emitArithmetic(ImplicitLocOpBuilder &b) {
  return listBounds(
      getMask(), findBlockBounds(ValueMath{b}, getMask(), getRow(),
                                 getQueries(), getKeys(), getRows(), getBlock(),
                                 getGroup(), llvm::to_vector(getRange())));
}

LogicalResult KeyBlocksOp::verify() {
  if (size_t numbers = getRange().size();
      numbers != 0 && numbers != 2 && numbers != 4)
    return emitOpError("expected a range of 2 or 4 numbers, got ") << numbers;
  return success();
}

LogicalResult KeyBlocksOp::fold(FoldAdaptor adaptor,
                                SmallVectorImpl<OpFoldResult> &results) {
  auto row = dyn_cast_if_present<IntegerAttr>(adaptor.getRow());
  auto queries = dyn_cast_if_present<IntegerAttr>(adaptor.getQueries());
  auto keys = dyn_cast_if_present<IntegerAttr>(adaptor.getKeys());
  if (!row || !queries || !keys)
    return failure();
  SmallVector<int64_t> range;
  for (Attribute each : adaptor.getRange()) {
    auto number = dyn_cast_if_present<IntegerAttr>(each);
    if (!number)
      return failure();
    range.push_back(number.getInt());
  }
  auto isLength = [](IntegerAttr value) {
    return value.getInt() >= 0 && value.getInt() < int64_t(1) << 29;
  };
  if (!isLength(row) || !isLength(queries) || !isLength(keys))
    return failure();
  Builder builder(getContext());
  for (int64_t bound :
       listBounds(getMask(),
                  computeBlockBounds(getMask(), row.getInt(), queries.getInt(),
                                     keys.getInt(), getRows(), getBlock(),
                                     getGroup(), range)))
    results.push_back(builder.getI32IntegerAttr(bound));
  return success();
}

//===----------------------------------------------------------------------===//
// ElementOffsetOp
//===----------------------------------------------------------------------===//

LogicalResult ElementOffsetOp::verify() {
  if (getIndices().size() != getStrides().size())
    return emitOpError("expected a stride for each index, ")
           << getIndices().size() << ", got " << getStrides().size();
  if (getIndices().empty())
    return emitOpError("expected at least one index, got none");
  return success();
}

SmallVector<Value> ElementOffsetOp::emitArithmetic(ImplicitLocOpBuilder &b) {
  auto makeI64 = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 64);
  };
  Value offset;
  for (auto [index, stride] : llvm::zip(getIndices(), getStrides())) {
    Value wide = arith::ExtUIOp::create(b, b.getI64Type(), index);
    Value term = arith::MulIOp::create(b, wide, makeI64(stride));
    offset = offset ? arith::AddIOp::create(b, offset, term).getResult() : term;
  }
  if (int64_t first = getFirst())
    offset = arith::AddIOp::create(b, offset, makeI64(first));
  return {offset};
}

OpFoldResult ElementOffsetOp::fold(FoldAdaptor adaptor) {
  int64_t offset = getFirst();
  for (auto [index, stride] : llvm::zip(adaptor.getIndices(), getStrides())) {
    auto known = dyn_cast_if_present<IntegerAttr>(index);
    if (!known)
      return {};
    offset += known.getValue().getZExtValue() * stride;
  }
  return IntegerAttr::get(getType(), offset);
}

//===----------------------------------------------------------------------===//
// DevicePointersOp
//===----------------------------------------------------------------------===//

LogicalResult DevicePointersOp::inferReturnTypes(MLIRContext *context,
                                                 std::optional<Location>,
                                                 ValueRange operands,
                                                 DictionaryAttr,
                                                 OpaqueProperties, RegionRange,
                                                 SmallVectorImpl<Type> &types) {
  types.assign(operands.size(),
               LLVM::LLVMPointerType::get(
                   context, unsigned(NVVM::NVVMMemorySpace::Global)));
  return success();
}

SmallVector<Value> DevicePointersOp::emitArithmetic(ImplicitLocOpBuilder &b) {
  SmallVector<Value> pointers;
  for (auto [memref, pointer] : llvm::zip(getMemrefs(), getPointers())) {
    Value address = memref::ExtractAlignedPointerAsIndexOp::create(b, memref);
    Value integer = arith::IndexCastOp::create(b, b.getI64Type(), address);
    pointers.push_back(LLVM::IntToPtrOp::create(b, pointer.getType(), integer));
  }
  return pointers;
}

//===----------------------------------------------------------------------===//
// What ends a softmax
//===----------------------------------------------------------------------===//

/// `value` in each element of a tile of `type`.
static Value splat(ImplicitLocOpBuilder &b, RankedTensorType type,
                   const APFloat &value) {
  return arith::ConstantOp::create(b, DenseElementsAttr::get(type, value));
}

/// Checks that `value` is an f32 tile of this rank.
static LogicalResult verifyTile(Operation *op, StringRef name, Value value,
                                int64_t rank) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getRank() == rank && type.getElementType().isF32())
    return success();
  return op->emitOpError("expected '")
         << name << "' to be an f32 tile of rank " << rank << ", got " << type;
}

LogicalResult SoftmaxSumsOp::verify() {
  if (failed(verifyTile(*this, "l", getL(), 2)) ||
      failed(verifyTile(*this, "m", getM(), 1)))
    return failure();
  int64_t rows = cast<RankedTensorType>(getM().getType()).getShape()[0];
  int64_t got = cast<RankedTensorType>(getL().getType()).getShape()[0];
  if (rows != got)
    return emitOpError("expected 'l' to have the ")
           << rows << " rows of 'm', got " << got;
  return success();
}

SmallVector<Value> SoftmaxSumsOp::emitArithmetic(ImplicitLocOpBuilder &b) {
  auto rows = cast<RankedTensorType>(getM().getType());
  Value sums = ReduceOp::create(b, rows, ReduceKind::Add, getL(),
                                /*partial=*/UnitAttr());
  Value isBeyond = arith::CmpFOp::create(b, arith::CmpFPredicate::OGE, getM(),
                                         splat(b, rows, getLimit()));
  Value none = splat(b, rows, APFloat::getQNaN(APFloat::IEEEsingle()));
  return {arith::SelectOp::create(b, isBeyond, none, sums)};
}

LogicalResult SoftmaxInverseOp::verify() {
  return verifyTile(*this, "sums", getSums(), 1);
}

SmallVector<Value> SoftmaxInverseOp::emitArithmetic(ImplicitLocOpBuilder &b) {
  auto rows = cast<RankedTensorType>(getSums().getType());
  Value one = splat(b, rows, APFloat(1.0f));
  Value zero = splat(b, rows, APFloat(0.0f));
  // NaN is some.
  Value some =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, getSums(), zero);
  Value divisor = arith::SelectOp::create(b, some, getSums(), one);
  return {arith::DivFOp::create(b, one, divisor)};
}

LogicalResult SoftmaxLSEOp::verify() {
  return verifyTile(*this, "m", getM(), 1);
}

SmallVector<Value> SoftmaxLSEOp::emitArithmetic(ImplicitLocOpBuilder &b) {
  auto rows = cast<RankedTensorType>(getM().getType());
  Value log =
      arith::AddFOp::create(b, getM(), math::Log2Op::create(b, getSums()));
  return {arith::MulFOp::create(
      b, log, splat(b, rows, APFloat(float(llvm::numbers::ln2))))};
}
