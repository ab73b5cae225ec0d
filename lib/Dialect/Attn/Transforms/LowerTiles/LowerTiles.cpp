//===- LowerTiles.cpp - The pass attn-lower-tiles -------------------------===//
//
// Walks a kernel once, in order, and puts the instructions of one thread beside
// each op on tiles. Structured control flow gets one carried value for each
// register. Everything replaced is erased at the end, users before definitions.
//
//===----------------------------------------------------------------------===//

#include "TileLowering.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNLOWERTILESPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

unsigned lowering::packingOf(Type elementType) {
  if (!isa<FloatType>(elementType))
    return 1;
  switch (elementType.getIntOrFloatBitWidth()) {
  case 8:
    return 4;
  case 16:
    return 2;
  default:
    return 1;
  }
}

FailureOr<TileLayout> TileLowering::layoutOf(Operation *op, Type type) {
  llvm::Expected<TileLayout> layout =
      getTileLayout(cast<RankedTensorType>(type));
  if (!layout) {
    op->emitOpError() << llvm::toString(layout.takeError()) << ", got " << type;
    return failure();
  }
  return std::move(*layout);
}

FailureOr<SharedLayout> TileLowering::layoutOf(Operation *op, BufferType type) {
  llvm::Expected<SharedLayout> layout = getSharedLayout(type);
  if (!layout) {
    op->emitOpError() << llvm::toString(layout.takeError()) << ", got " << type;
    return failure();
  }
  return std::move(*layout);
}

FailureOr<TileValue> TileLowering::tile(Operation *user, Value value) {
  auto it = tiles.find(value);
  if (it == tiles.end())
    return user->emitOpError("expected a tile made by an op that can be "
                             "lowered, got ")
           << value.getType();
  return it->second;
}

void TileLowering::setTile(Value value, TileLayout layout,
                           SmallVector<Value> values) {
  Type elementType = getElementTypeOrSelf(value.getType());
  unsigned packing = packingOf(elementType);
  tiles[value] =
      TileValue{std::move(layout), elementType, packing, std::move(values)};
}

SmallVector<Value> TileLowering::unpack(ImplicitLocOpBuilder &b,
                                        const TileValue &tile) {
  if (tile.packing == 1)
    return tile.values;
  SmallVector<Value> scalars;
  for (Value packed : tile.values)
    for (unsigned i = 0; i < tile.packing; ++i)
      scalars.push_back(LLVM::ExtractElementOp::create(
          b, packed, arith::ConstantIntOp::create(b, i, 32)));
  return scalars;
}

SmallVector<Value> TileLowering::pack(ImplicitLocOpBuilder &b,
                                      ArrayRef<Value> scalars,
                                      Type elementType) {
  unsigned packing = packingOf(elementType);
  if (packing == 1)
    return SmallVector<Value>(scalars);
  Type type = VectorType::get(packing, elementType);
  SmallVector<Value> packed;
  for (unsigned i = 0; i < scalars.size(); i += packing) {
    Value vector = LLVM::PoisonOp::create(b, type);
    for (unsigned j = 0; j < packing; ++j)
      vector = LLVM::InsertElementOp::create(
          b, vector, scalars[i + j], arith::ConstantIntOp::create(b, j, 32));
    packed.push_back(vector);
  }
  return packed;
}

FailureOr<SmallVector<Type>> TileLowering::expandedTypes(Operation *op,
                                                         Type type) {
  if (!isTile(type))
    return SmallVector<Type>{type};
  FailureOr<TileLayout> layout = layoutOf(op, type);
  if (failed(layout))
    return failure();
  Type elementType = getElementTypeOrSelf(type);
  unsigned packing = packingOf(elementType);
  if (layout->numRegisters() % packing != 0)
    return op->emitOpError("expected a multiple of ")
           << packing << " registers for " << type << ", got "
           << layout->numRegisters();
  Type held =
      packing == 1 ? elementType : Type(VectorType::get(packing, elementType));
  return SmallVector<Type>(layout->numRegisters() / packing, held);
}

//===----------------------------------------------------------------------===//
// What depends on the thread
//===----------------------------------------------------------------------===//

ImplicitLocOpBuilder TileLowering::entryBuilder(Location loc) {
  ImplicitLocOpBuilder b(loc, kernel.getContext());
  b.setInsertionPoint(entryEnd);
  return b;
}

Value TileLowering::threadId() {
  if (!threadIdValue) {
    ImplicitLocOpBuilder b = entryBuilder(kernel.getLoc());
    threadIdValue = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  }
  return threadIdValue;
}

Value TileLowering::lane() {
  if (!laneValue) {
    Value thread = threadId();
    ImplicitLocOpBuilder b = entryBuilder(kernel.getLoc());
    laneValue = arith::AndIOp::create(b, thread,
                                      arith::ConstantIntOp::create(b, 31, 32));
  }
  return laneValue;
}

Value TileLowering::warp() {
  if (!warpValue) {
    Value thread = threadId();
    ImplicitLocOpBuilder b = entryBuilder(kernel.getLoc());
    warpValue = arith::ShRUIOp::create(b, thread,
                                       arith::ConstantIntOp::create(b, 5, 32));
  }
  return warpValue;
}

Value TileLowering::linearForm(ImplicitLocOpBuilder &b, Value index,
                               ArrayRef<int64_t> constants, bool forXor) {
  Value sum;
  for (const BitTerm &term : bitTerms(constants, forXor)) {
    if (term.scale == 0)
      continue;
    Value field = index;
    if (term.firstBit != 0)
      field = arith::ShRUIOp::create(
          b, field, arith::ConstantIntOp::create(b, term.firstBit, 32));
    field = arith::AndIOp::create(
        b, field,
        arith::ConstantIntOp::create(b, (int64_t(1) << term.numBits) - 1, 32));
    if (llvm::isPowerOf2_64(term.scale)) {
      if (term.scale != 1)
        field = arith::ShLIOp::create(
            b, field,
            arith::ConstantIntOp::create(b, llvm::Log2_64(term.scale), 32));
    } else {
      field = arith::MulIOp::create(
          b, field, arith::ConstantIntOp::create(b, term.scale, 32));
    }
    if (!sum)
      sum = field;
    else if (forXor)
      sum = arith::XOrIOp::create(b, sum, field);
    else
      sum = arith::AddIOp::create(b, sum, field);
  }
  return sum ? sum : arith::ConstantIntOp::create(b, 0, 32).getResult();
}

/// A key for what the entry computes from constants.
static std::string cacheKey(StringRef prefix,
                            ArrayRef<ArrayRef<int64_t>> lists) {
  std::string key;
  llvm::raw_string_ostream os(key);
  os << prefix;
  for (ArrayRef<int64_t> list : lists) {
    os << '|';
    llvm::interleave(list, os, ",");
  }
  return key;
}

Value TileLowering::threadCoordinate(const TileLayout &layout, unsigned dim) {
  SmallVector<int64_t, 5> lanes = layout.laneBases(dim);
  SmallVector<int64_t, 4> warps = layout.warpBases(dim);
  Value &cached = entryCache[cacheKey("coord", {lanes, warps})];
  if (!cached) {
    Value laneId = lane(), warpId = warp();
    ImplicitLocOpBuilder b = entryBuilder(kernel.getLoc());
    cached = arith::AddIOp::create(b, linearForm(b, laneId, lanes, false),
                                   linearForm(b, warpId, warps, false));
  }
  return cached;
}

Value TileLowering::formOffset(const AddressForm &form, int64_t xorConst) {
  std::string formKey = cacheKey(
      "form", {form.laneXor, form.warpXor, form.laneAdd, form.warpAdd});
  Value laneId = lane(), warpId = warp();
  Value &xorPart = entryCache[formKey + "xor"];
  if (!xorPart) {
    ImplicitLocOpBuilder b = entryBuilder(kernel.getLoc());
    xorPart =
        arith::XOrIOp::create(b, linearForm(b, laneId, form.laneXor, true),
                              linearForm(b, warpId, form.warpXor, true));
  }
  Value &addPart = entryCache[formKey + "add"];
  if (!addPart) {
    ImplicitLocOpBuilder b = entryBuilder(kernel.getLoc());
    addPart =
        arith::AddIOp::create(b, linearForm(b, laneId, form.laneAdd, false),
                              linearForm(b, warpId, form.warpAdd, false));
  }
  Value &offset = entryCache[formKey + std::to_string(xorConst)];
  if (!offset) {
    ImplicitLocOpBuilder b = entryBuilder(kernel.getLoc());
    Value swizzled = xorPart;
    if (xorConst != 0)
      swizzled = arith::XOrIOp::create(
          b, xorPart, arith::ConstantIntOp::create(b, xorConst, 32));
    offset = arith::AddIOp::create(b, swizzled, addPart);
  }
  return offset;
}

Value TileLowering::address(ImplicitLocOpBuilder &b, Value base,
                            ArrayRef<AddressForm> forms,
                            const AccessAddress &access) {
  Type pointer = base.getType();
  Value offset = formOffset(forms[access.form], access.xorConst);
  Value start =
      LLVM::GEPOp::create(b, pointer, b.getI8Type(), base, ValueRange{offset});
  if (access.addConst == 0)
    return start;
  return LLVM::GEPOp::create(
      b, pointer, b.getI8Type(), start,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(access.addConst)});
}

Value TileLowering::copyPredicate(ImplicitLocOpBuilder &b, unsigned laneMask,
                                  unsigned warpMask) {
  Value predicate;
  auto require = [&](Value index, unsigned mask) {
    if (mask == 0)
      return;
    Value zero = arith::ConstantIntOp::create(b, 0, 32);
    Value bits = arith::AndIOp::create(
        b, index, arith::ConstantIntOp::create(b, mask, 32));
    Value first =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, bits, zero);
    predicate = predicate
                    ? arith::AndIOp::create(b, predicate, first).getResult()
                    : first;
  };
  require(lane(), laneMask);
  require(warp(), warpMask);
  return predicate;
}

//===----------------------------------------------------------------------===//
// Elementwise ops
//===----------------------------------------------------------------------===//

LogicalResult TileLowering::lowerConstant(arith::ConstantOp op) {
  auto splat = dyn_cast<SplatElementsAttr>(op.getValue());
  if (!splat)
    return op.emitOpError("expected a tile constant with equal elements");
  FailureOr<TileLayout> layout = layoutOf(op, op.getType());
  if (failed(layout))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type elementType = getElementTypeOrSelf(op.getType());
  unsigned packing = packingOf(elementType);
  TypedAttr value = cast<TypedAttr>(splat.getSplatValue<Attribute>());
  if (packing != 1)
    value = DenseElementsAttr::get(VectorType::get(packing, elementType),
                                   ArrayRef<Attribute>(value));
  Value scalar = arith::ConstantOp::create(b, value);
  unsigned count = layout->numRegisters() / packing;
  setTile(op.getResult(), *layout, SmallVector<Value>(count, scalar));
  return success();
}

LogicalResult TileLowering::lowerSplat(tensor::SplatOp op) {
  FailureOr<TileLayout> layout = layoutOf(op, op.getType());
  if (failed(layout))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type elementType = getElementTypeOrSelf(op.getType());
  unsigned packing = packingOf(elementType);
  SmallVector<Value> once =
      pack(b, SmallVector<Value>(packing, op.getInput()), elementType);
  unsigned count = layout->numRegisters() / packing;
  setTile(op.getResult(), *layout, SmallVector<Value>(count, once.front()));
  return success();
}

LogicalResult TileLowering::lowerTrunc(arith::TruncFOp op) {
  FailureOr<TileValue> source = tile(op, op.getIn());
  FailureOr<TileLayout> layout = layoutOf(op, op.getType());
  if (failed(source) || failed(layout))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type elementType = getElementTypeOrSelf(op.getType());
  unsigned packing = packingOf(elementType);
  // One conversion makes two 16-bit elements, if it sees a vector of two.
  SmallVector<Value> scalars = unpack(b, *source);
  Type wide = VectorType::get(packing, source->elementType);
  Type narrow = VectorType::get(packing, elementType);
  SmallVector<Value> results;
  for (unsigned i = 0; i < scalars.size(); i += packing) {
    Value vector = LLVM::PoisonOp::create(b, wide);
    for (unsigned j = 0; j < packing; ++j)
      vector = LLVM::InsertElementOp::create(
          b, vector, scalars[i + j], arith::ConstantIntOp::create(b, j, 32));
    results.push_back(LLVM::FPTruncOp::create(b, narrow, vector));
  }
  setTile(op.getResult(), *layout, results);
  return success();
}

LogicalResult TileLowering::lowerExt(arith::ExtFOp op) {
  FailureOr<TileValue> source = tile(op, op.getIn());
  FailureOr<TileLayout> layout = layoutOf(op, op.getType());
  if (failed(source) || failed(layout))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type elementType = getElementTypeOrSelf(op.getType());
  SmallVector<Value> results;
  for (Value scalar : unpack(b, *source))
    results.push_back(arith::ExtFOp::create(b, elementType, scalar));
  setTile(op.getResult(), *layout, results);
  return success();
}

Value lowering::lowerApproximate(ImplicitLocOpBuilder &b, Operation *op,
                                 Value operand) {
  auto call = [&](StringRef intrinsic, Value value) -> Value {
    return LLVM::CallIntrinsicOp::create(
               b, b.getF32Type(), b.getStringAttr(intrinsic), ValueRange{value})
        .getResults();
  };
  auto constant = [&](float value) -> Value {
    return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
  };
  if (!operand.getType().isF32())
    return {};
  if (isa<Exp2Op, math::Exp2Op>(op))
    return call("llvm.nvvm.ex2.approx.ftz.f32", operand);
  if (isa<math::Log2Op>(op))
    return call("llvm.nvvm.lg2.approx.ftz.f", operand);
  if (isa<math::ExpOp>(op))
    return call("llvm.nvvm.ex2.approx.ftz.f32",
                arith::MulFOp::create(b, operand, constant(1.44269504f)));
  if (isa<math::LogOp>(op))
    return arith::MulFOp::create(b, call("llvm.nvvm.lg2.approx.ftz.f", operand),
                                 constant(0.693147181f));
  if (isa<math::TanhOp>(op)) {
    // tanh x = 1 - 2 / (exp(2x) + 1): tanh.approx has 2^-11 relative error
    // only, which a softcap of 50 would turn into 2 % of a probability.
    Value power =
        call("llvm.nvvm.ex2.approx.ftz.f32",
             arith::MulFOp::create(b, operand, constant(2 * 1.44269504f)));
    Value inverse = call("llvm.nvvm.rcp.approx.ftz.f",
                         arith::AddFOp::create(b, power, constant(1.0f)));
    Value large =
        math::FmaOp::create(b, constant(-2.0f), inverse, constant(1.0f));
    // Near zero that difference keeps few digits, and a large softcap makes
    // every argument small: there tanh x = x - x^3 / 3, to 2^-23.
    Value square = arith::MulFOp::create(b, operand, operand);
    Value cube = arith::MulFOp::create(b, square, operand);
    Value small = math::FmaOp::create(b, cube, constant(-1.0f / 3.0f), operand);
    Value isSmall = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, square,
                                          constant(0x1p-10f));
    return arith::SelectOp::create(b, isSmall, small, large);
  }
  return {};
}

/// Clones a scalar (or packed) version of an op.
static Value cloneFor(ImplicitLocOpBuilder &b, Operation *op,
                      ValueRange operands, Type type) {
  if (operands.size() == 1)
    if (Value value = lowerApproximate(b, op, operands.front()))
      return value;
  OperationState state(op->getLoc(), op->getName(), operands, {type},
                       op->getDiscardableAttrDictionary().getValue());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  return b.create(state)->getResult(0);
}

LogicalResult TileLowering::lowerElementwise(Operation *op) {
  FailureOr<TileLayout> layout = layoutOf(op, op->getResult(0).getType());
  if (failed(layout))
    return failure();
  ImplicitLocOpBuilder b(op->getLoc(), op);
  Type resultType = getElementTypeOrSelf(op->getResult(0).getType());
  unsigned packing = packingOf(resultType);
  // Packed arithmetic only where all operands are packed alike.
  bool packed = packing != 1;
  SmallVector<TileValue, 3> operands;
  for (Value operand : op->getOperands()) {
    if (!isTile(operand.getType())) {
      operands.push_back(TileValue{*layout, operand.getType(), 1, {operand}});
      packed = false;
      continue;
    }
    FailureOr<TileValue> value = tile(op, operand);
    if (failed(value))
      return failure();
    packed &= value->packing == packing;
    operands.push_back(*value);
  }
  Type held = packed ? Type(VectorType::get(packing, resultType)) : resultType;
  SmallVector<SmallVector<Value>> columns;
  for (const TileValue &operand : operands)
    columns.push_back(packed ? operand.values : unpack(b, operand));
  unsigned count = layout->numRegisters() / (packed ? packing : 1);
  SmallVector<Value> results;
  for (unsigned i = 0; i < count; ++i) {
    SmallVector<Value> arguments;
    for (ArrayRef<Value> column : columns)
      arguments.push_back(column.size() == 1 ? column[0] : column[i]);
    results.push_back(cloneFor(b, op, arguments, held));
  }
  if (!packed)
    results = pack(b, results, resultType);
  setTile(op->getResult(0), *layout, results);
  return success();
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

LogicalResult TileLowering::lowerFor(scf::ForOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<Value> inits;
  for (Value init : op.getInitArgs()) {
    if (!isTile(init.getType())) {
      inits.push_back(init);
      continue;
    }
    FailureOr<TileValue> value = tile(op, init);
    if (failed(value))
      return failure();
    llvm::append_range(inits, value->values);
  }
  auto loop = scf::ForOp::create(b, op.getLowerBound(), op.getUpperBound(),
                                 op.getStep(), inits);
  loop->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  // Without carried values the builder made a terminator already.
  if (inits.empty())
    loop.getBody()->getTerminator()->erase();

  op.getInductionVar().replaceAllUsesWith(loop.getInductionVar());
  unsigned next = 0;
  auto bind = [&](Value old, ValueRange replacements) -> LogicalResult {
    if (!isTile(old.getType())) {
      old.replaceAllUsesWith(replacements[next++]);
      return success();
    }
    FailureOr<SmallVector<Type>> types = expandedTypes(op, old.getType());
    FailureOr<TileLayout> layout = layoutOf(op, old.getType());
    if (failed(types) || failed(layout))
      return failure();
    SmallVector<Value> values(replacements.slice(next, types->size()));
    next += types->size();
    setTile(old, *layout, values);
    return success();
  };
  for (Value old : op.getRegionIterArgs())
    if (failed(bind(old, loop.getRegionIterArgs())))
      return failure();
  loop.getBody()->getOperations().splice(loop.getBody()->end(),
                                         op.getBody()->getOperations());
  if (failed(lowerBlock(*loop.getBody())))
    return failure();
  next = 0;
  for (Value old : op.getResults())
    if (failed(bind(old, loop.getResults())))
      return failure();
  dead.push_back(op);
  return success();
}

LogicalResult TileLowering::lowerIf(scf::IfOp op) {
  bool hasTiles = llvm::any_of(op.getResultTypes(), isTile);
  if (!hasTiles) {
    for (Region &region : op->getRegions())
      if (!region.empty() && failed(lowerBlock(region.front())))
        return failure();
    return success();
  }
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<Type> types;
  for (Type type : op.getResultTypes()) {
    FailureOr<SmallVector<Type>> expanded = expandedTypes(op, type);
    if (failed(expanded))
      return failure();
    llvm::append_range(types, *expanded);
  }
  auto branch = scf::IfOp::create(b, types, op.getCondition(),
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  branch->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  for (auto [from, to] : llvm::zip(op->getRegions(), branch->getRegions())) {
    to.front().getOperations().splice(to.front().end(),
                                      from.front().getOperations());
    if (failed(lowerBlock(to.front())))
      return failure();
  }
  unsigned next = 0;
  for (Value old : op.getResults()) {
    if (!isTile(old.getType())) {
      old.replaceAllUsesWith(branch.getResult(next++));
      continue;
    }
    FailureOr<TileLayout> layout = layoutOf(op, old.getType());
    FailureOr<SmallVector<Type>> expanded = expandedTypes(op, old.getType());
    if (failed(layout) || failed(expanded))
      return failure();
    SmallVector<Value> values(
        branch.getResults().slice(next, expanded->size()));
    next += expanded->size();
    setTile(old, *layout, values);
  }
  dead.push_back(op);
  return success();
}

LogicalResult TileLowering::lowerRare(RareOp op) {
  FailureOr<TileValue> condition = tile(op, op.getCondition());
  if (failed(condition))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value any = condition->values.front();
  for (Value value : ArrayRef<Value>(condition->values).drop_front())
    any = arith::OrIOp::create(b, any, value);
  Value all = arith::ConstantIntOp::create(b, -1, 32);
  Value taken = NVVM::VoteSyncOp::create(b, b.getI1Type(), all, any,
                                         NVVM::VoteSyncKind::any);

  auto expand = [&](Operation *user,
                    ValueRange values) -> FailureOr<SmallVector<Value>> {
    SmallVector<Value> expanded;
    for (Value value : values) {
      if (!isTile(value.getType())) {
        expanded.push_back(value);
        continue;
      }
      FailureOr<TileValue> registers = tile(user, value);
      if (failed(registers))
        return failure();
      llvm::append_range(expanded, registers->values);
    }
    return expanded;
  };
  FailureOr<SmallVector<Value>> defaults = expand(op, op.getDefaults());
  if (failed(defaults))
    return failure();
  auto branch = scf::IfOp::create(b, ValueRange(*defaults).getTypes(), taken,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  // The body moves into the branch and is lowered there; its terminator tells
  // what the branch yields.
  Block *thenBlock = branch.thenBlock();
  Operation *yield = op.getBody().front().getTerminator();
  thenBlock->getOperations().splice(thenBlock->end(),
                                    op.getBody().front().getOperations());
  for (Operation &inner : llvm::make_early_inc_range(*thenBlock))
    if (&inner != yield && failed(lowerOp(&inner)))
      return failure();
  FailureOr<SmallVector<Value>> yielded = expand(yield, yield->getOperands());
  if (failed(yielded))
    return failure();
  b.setInsertionPointToEnd(thenBlock);
  scf::YieldOp::create(b, *yielded);
  dead.push_back(yield);
  b.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(b, *defaults);

  unsigned next = 0;
  for (Value old : op.getResults()) {
    if (!isTile(old.getType())) {
      old.replaceAllUsesWith(branch.getResult(next++));
      continue;
    }
    FailureOr<TileLayout> layout = layoutOf(op, old.getType());
    FailureOr<SmallVector<Type>> types = expandedTypes(op, old.getType());
    if (failed(layout) || failed(types))
      return failure();
    SmallVector<Value> values(branch.getResults().slice(next, types->size()));
    next += types->size();
    setTile(old, *layout, values);
  }
  dead.push_back(op);
  return success();
}

LogicalResult TileLowering::lowerYield(scf::YieldOp op) {
  SmallVector<Value> values;
  for (Value operand : op.getOperands()) {
    if (!isTile(operand.getType())) {
      values.push_back(operand);
      continue;
    }
    FailureOr<TileValue> value = tile(op, operand);
    if (failed(value))
      return failure();
    llvm::append_range(values, value->values);
  }
  OpBuilder b(op);
  op->setOperands(values);
  return success();
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

LogicalResult TileLowering::lowerBlock(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block))
    if (failed(lowerOp(&op)))
      return failure();
  return success();
}

LogicalResult TileLowering::lowerOp(Operation *op) {
  for (Value operand : op->getOperands())
    if ((isa<BufferType>(operand.getType()) && !buffers.contains(operand)) ||
        (isa<GlobalType>(operand.getType()) && !views.contains(operand)))
      return op->emitOpError("expected buffers and views made in the kernel, "
                             "got one from elsewhere of type ")
             << operand.getType();
  // Ops that stay, with their regions or operands rewritten.
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return lowerIf(branch);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return lowerFor(loop);
  if (auto rare = dyn_cast<RareOp>(op))
    return lowerRare(rare);
  if (auto yield = dyn_cast<scf::YieldOp>(op))
    return lowerYield(yield);

  bool onTiles = llvm::any_of(op->getResultTypes(), isTile);
  auto lower = [&](LogicalResult result) {
    dead.push_back(op);
    return result;
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](AllocOp o) { return lower(lowerAlloc(o)); })
      .Case([&](SlotOp o) { return lower(lowerSlot(o)); })
      .Case([&](TransposeOp o) {
        return lower(lowerView(o, o.getSource(), o.getType()));
      })
      .Case([&](ReinterpretOp o) {
        return lower(lowerView(o, o.getSource(), o.getType()));
      })
      .Case([&](LocalLoadOp o) { return lower(lowerLocalLoad(o)); })
      .Case([&](LocalStoreOp o) { return lower(lowerLocalStore(o)); })
      .Case([&](GlobalViewOp o) { return lower(lowerGlobalView(o)); })
      .Case([&](GlobalLoadOp o) { return lower(lowerGlobalLoad(o)); })
      .Case([&](GlobalStoreOp o) { return lower(lowerGlobalStore(o)); })
      .Case([&](CpAsyncOp o) { return lower(lowerCpAsync(o)); })
      .Case([&](CpAsyncCommitOp o) {
        OpBuilder b(o);
        NVVM::CpAsyncCommitGroupOp::create(b, o.getLoc());
        return lower(success());
      })
      .Case([&](CpAsyncWaitOp o) {
        OpBuilder b(o);
        NVVM::CpAsyncWaitGroupOp::create(b, o.getLoc(), o.getPending());
        return lower(success());
      })
      .Case([&](CopyOutOp o) { return lower(lowerCopyOut(o)); })
      .Case([&](MmaOp o) { return lower(lowerMma(o)); })
      .Case([&](ReduceOp o) { return lower(lowerReduce(o)); })
      .Case([&](BroadcastOp o) { return lower(lowerBroadcast(o)); })
      .Case([&](ConvertLayoutOp o) { return lower(lowerConvert(o)); })
      .Case([&](ApplyMaskOp o) { return lower(lowerMask(o)); })
      .Case([&](MapElementsOp o) { return lower(lowerMap(o)); })
      .Case([&](arith::ConstantOp o) {
        return onTiles ? lower(lowerConstant(o)) : success();
      })
      .Case([&](tensor::SplatOp o) { return lower(lowerSplat(o)); })
      .Case([&](arith::TruncFOp o) {
        return onTiles ? lower(lowerTrunc(o)) : success();
      })
      .Case([&](arith::ExtFOp o) {
        return onTiles ? lower(lowerExt(o)) : success();
      })
      .Default([&](Operation *other) -> LogicalResult {
        if (onTiles) {
          bool elementwise = OpTrait::hasElementwiseMappableTraits(other) ||
                             isa<Exp2Op>(other);
          if (elementwise && other->getNumResults() == 1)
            return lower(lowerElementwise(other));
          return other->emitOpError("cannot be lowered from tiles to scalars");
        }
        // A scalar exp2 (log2, tanh) is the same instruction as a tile's.
        if (other->getNumOperands() == 1 && other->getNumResults() == 1) {
          ImplicitLocOpBuilder b(other->getLoc(), other);
          if (Value value = lowerApproximate(b, other, other->getOperand(0))) {
            other->getResult(0).replaceAllUsesWith(value);
            dead.push_back(other);
            return success();
          }
        }
        if (isa<AttnDialect>(other->getDialect()))
          return other->emitOpError(
              "expected an earlier pass to have replaced this op");
        for (Value operand : other->getOperands())
          if (isTile(operand.getType()))
            return other->emitOpError("cannot take a tile as operand");
        return success();
      });
}

LogicalResult TileLowering::run() {
  FailureOr<int64_t> count = getNumThreads(kernel);
  if (failed(count))
    return failure();
  threads = *count;
  Block &entry = kernel.getBody().front();
  // A marker that keeps the entry's computations in front of everything else.
  OpBuilder b = OpBuilder::atBlockBegin(&entry);
  auto marker = arith::ConstantIntOp::create(b, kernel.getLoc(), 0, 1);
  entryEnd = marker;
  SmallVector<Block *> blocks;
  for (Block &block : kernel.getBody())
    blocks.push_back(&block);
  for (Block *block : blocks)
    for (Operation &op : llvm::make_early_inc_range(*block)) {
      if (&op == entryEnd)
        continue;
      if (failed(lowerOp(&op)))
        return failure();
    }
  // An old loop's arguments may be used by ops that moved out of it.
  for (Operation *op : dead)
    op->dropAllReferences();
  for (Operation *op : dead)
    op->erase();
  marker.erase();
  return success();
}

namespace {
struct AttnLowerTilesPass
    : attn::impl::AttnLowerTilesPassBase<AttnLowerTilesPass> {
  using Base::Base;
  void runOnOperation() override {
    for (gpu::GPUFuncOp kernel : getOperation().getOps<gpu::GPUFuncOp>()) {
      if (!kernel->hasAttr(AttnDialect::kWarpsAttr))
        continue;
      if (failed(TileLowering(kernel).run()))
        return signalPassFailure();
    }
  }
};
} // namespace
