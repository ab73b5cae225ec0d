//===- Elementwise.cpp - Constants, conversions and arithmetic ------------===//

#include "PartitionLowering.h"
#include "attn/Dialect/Attn/IR/NarrowFloats.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

template <>
LogicalResult PartitionLowering::lower(arith::ConstantOp op) {
  auto splat = dyn_cast<SplatElementsAttr>(op.getValue());
  if (!splat)
    return op.emitOpError("expected a tile constant with equal elements");
  FailureOr<TileLayout> layout = layoutOf(op, op.getType());
  if (failed(layout))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type elementType = getElementTypeOrSelf(op.getType());
  if (isa<Float4E2M1FNType>(elementType))
    return op.emitOpError("expected results of f4E2M1FN that are rounded from "
                          "f32, got a constant");
  unsigned packing = packingOf(elementType);
  TypedAttr value = cast<TypedAttr>(splat.getSplatValue<Attribute>());
  Type stored = storageOf(elementType);
  if (stored != elementType)
    value = b.getIntegerAttr(
        stored, cast<FloatAttr>(value).getValue().bitcastToAPInt());
  if (packing != 1)
    value = DenseElementsAttr::get(VectorType::get(packing, stored),
                                   ArrayRef<Attribute>(value));
  Value scalar = arith::ConstantOp::create(b, value);
  unsigned count = layout->numRegisters() / packing;
  setTile(op.getResult(), *layout, SmallVector<Value>(count, scalar));
  return success();
}

template <>
LogicalResult PartitionLowering::lower(tensor::SplatOp op) {
  FailureOr<TileLayout> layout = layoutOf(op, op.getType());
  if (failed(layout))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type elementType = getElementTypeOrSelf(op.getType());
  unsigned packing = packingOf(elementType);
  Value input = op.getInput();
  if (storageOf(elementType) != elementType)
    input = arith::BitcastOp::create(b, storageOf(elementType), input);
  SmallVector<Value> once =
      pack(b, SmallVector<Value>(packing, input), elementType);
  unsigned count = layout->numRegisters() / packing;
  setTile(op.getResult(), *layout, SmallVector<Value>(count, once.front()));
  return success();
}

SmallVector<Value> lowering::truncateTo8(ImplicitLocOpBuilder &b,
                                         ArrayRef<Value> scalars,
                                         Type elementType, bool byIntegers) {
  auto wide = [&](Value value) -> Value {
    if (value.getType().isF32())
      return value;
    return arith::ExtFOp::create(b, b.getF32Type(), value);
  };
  Type pairs = VectorType::get(2, b.getI16Type());
  SmallVector<Value> results;
  for (unsigned i = 0; i < scalars.size(); i += 4) {
    Value vector = LLVM::PoisonOp::create(b, pairs);
    for (unsigned half = 0; half < 2; ++half) {
      Value pair =
          narrowPair(b, wide(scalars[i + 2 * half]),
                     wide(scalars[i + 2 * half + 1]), elementType, byIntegers);
      vector = LLVM::InsertElementOp::create(
          b, vector, pair, arith::ConstantIntOp::create(b, half, 32));
    }
    results.push_back(
        LLVM::BitcastOp::create(b, VectorType::get(4, b.getI8Type()), vector));
  }
  return results;
}

/// The same by integers: of two bytes in the upper halves of 16 bits, e5m2 is
/// f16 as it stands. An exponent of e4m3, moved to that of f16, is 8 too small,
/// and what would be 480 is NaN.
static Value widenByWords(ImplicitLocOpBuilder &b, Value word, int64_t selector,
                          Type elementType) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 32);
  };
  Type halves = VectorType::get(2, b.getF16Type());
  Value bytes =
      NVVM::PermuteOp::create(b, b.getI32Type(), word, constant(0),
                              constant(selector), NVVM::PermuteMode::DEFAULT);
  if (isa<Float8E5M2Type>(elementType))
    return LLVM::BitcastOp::create(b, halves, bytes);
  auto both = [&](Value x, uint16_t mask) -> Value {
    return arith::AndIOp::create(b, x,
                                 constant(int32_t(mask * uint32_t(0x10001))));
  };
  auto shift = [&](Value x, int64_t bits) -> Value {
    return arith::ShRUIOp::create(b, x, constant(bits));
  };
  Value moved = arith::OrIOp::create(b, both(bytes, 0x8000),
                                     both(shift(bytes, 1), 0x3f80));
  Value factor = arith::ConstantOp::create(
      b, DenseElementsAttr::get(cast<ShapedType>(halves),
                                b.getFloatAttr(b.getF16Type(), 256.0)));
  Value scaled = arith::MulFOp::create(
      b, LLVM::BitcastOp::create(b, halves, moved).getResult(), factor);
  Value above =
      arith::AddIOp::create(b, both(bytes, 0x7f00), constant(0x01000100));
  Value bits = arith::OrIOp::create(
      b, LLVM::BitcastOp::create(b, b.getI32Type(), scaled).getResult(),
      both(shift(above, 2), 0x2000));
  return LLVM::BitcastOp::create(b, halves, bits);
}

std::pair<Value, Value> PartitionLowering::widenFrom8(ImplicitLocOpBuilder &b,
                                                      Value word,
                                                      Type elementType) {
  if (kernel.someTargetLacks(Capability::Fp8)) {
    // Bytes 0 and 1, or 2 and 3, above zeros.
    constexpr int64_t kLower = 0x1404, kUpper = 0x3424;
    Value whole = LLVM::BitcastOp::create(b, b.getI32Type(), word);
    Value lower = widenByWords(b, whole, kLower, elementType);
    return {lower, widenByWords(b, whole, kUpper, elementType)};
  }
  Value pairs =
      LLVM::BitcastOp::create(b, VectorType::get(2, b.getI16Type()), word);
  auto widen = [&](unsigned half) -> Value {
    Value pair = LLVM::ExtractElementOp::create(
        b, pairs, arith::ConstantIntOp::create(b, half, 32));
    Value bytes =
        LLVM::BitcastOp::create(b, VectorType::get(2, b.getI8Type()), pair);
    return NVVM::ConvertF8x2ToF16x2Op::create(
        b, VectorType::get(2, b.getF16Type()), bytes, /*relu=*/false,
        elementType);
  };
  Value lower = widen(0);
  return {lower, widen(1)};
}

/// Pairs of 16-bit elements of packed 8-bit ones, which they hold exactly: of
/// bf16 by way of f32, since no instruction makes them.
static SmallVector<Value> widenPairs(PartitionLowering &partition,
                                     ImplicitLocOpBuilder &b,
                                     const TileValue &tile, Type elementType) {
  SmallVector<Value> pairs;
  for (Value word : tile.values) {
    auto [lower, upper] = partition.widenFrom8(b, word, tile.elementType);
    for (Value wide : {lower, upper}) {
      if (elementType.isBF16())
        wide = LLVM::FPTruncOp::create(
            b, VectorType::get(2, elementType),
            LLVM::FPExtOp::create(b, VectorType::get(2, b.getF32Type()), wide));
      pairs.push_back(wide);
    }
  }
  return pairs;
}

/// f16 scalars of packed 8-bit elements, which they hold exactly.
static SmallVector<Value> extendFrom8(PartitionLowering &partition,
                                      ImplicitLocOpBuilder &b,
                                      const TileValue &tile) {
  SmallVector<Value> scalars;
  for (Value word : tile.values) {
    auto [lower, upper] = partition.widenFrom8(b, word, tile.elementType);
    for (Value wide : {lower, upper})
      for (unsigned i = 0; i < 2; ++i)
        scalars.push_back(LLVM::ExtractElementOp::create(
            b, wide, arith::ConstantIntOp::create(b, i, 32)));
  }
  return scalars;
}

/// What two neighbours were extended from, if that is one pair of `narrow`.
static Value findExtended(Value first, Value second, Type narrow) {
  auto elementOf = [&](Value scalar, int64_t index) -> Value {
    auto extended = scalar.getDefiningOp<arith::ExtFOp>();
    auto element =
        extended ? extended.getIn().getDefiningOp<LLVM::ExtractElementOp>()
                 : LLVM::ExtractElementOp();
    if (!element || element.getVector().getType() != narrow ||
        !isConstantIntValue(element.getPosition(), index))
      return {};
    return element.getVector();
  };
  Value pair = elementOf(first, 0);
  return pair == elementOf(second, 1) ? pair : Value();
}

SmallVector<std::pair<unsigned, unsigned>>
lowering::findPairs(const TileLayout &layout) {
  SmallVector<std::pair<unsigned, unsigned>> pairs;
  llvm::DenseMap<std::pair<int64_t, int64_t>, unsigned> registers;
  unsigned count = layout.numRegisters();
  if (layout.rank() != 2)
    return pairs;
  for (unsigned reg = 0; reg < count; ++reg) {
    Coords place = layout.registerCoords(reg);
    registers[{place[0], place[1]}] = reg;
  }
  for (unsigned reg = 0; reg < count; ++reg) {
    Coords place = layout.registerCoords(reg);
    auto next = registers.find({place[0], place[1] + 1});
    if (place[1] % 2 == 0 && next != registers.end())
      pairs.push_back({reg, next->second});
  }
  if (2 * pairs.size() != count)
    pairs.clear();
  return pairs;
}

SmallVector<Value> lowering::splitWord(ImplicitLocOpBuilder &b, Value word) {
  Value bytes = LLVM::BitcastOp::create(
      b, VectorType::get(kWordBytes, b.getI8Type()), word);
  return llvm::map_to_vector(llvm::seq(kWordBytes), [&](unsigned i) -> Value {
    return LLVM::ExtractElementOp::create(
        b, bytes, arith::ConstantIntOp::create(b, i, 32));
  });
}

Value lowering::joinBytes(ImplicitLocOpBuilder &b, ArrayRef<Value> bytes) {
  auto vector = VectorType::get(kWordBytes, b.getI8Type());
  auto first = bytes.front().getDefiningOp<LLVM::ExtractElementOp>();
  bool isWord = first && first.getVector().getType() == vector;
  for (auto [i, byte] : llvm::enumerate(bytes)) {
    auto element = byte.getDefiningOp<LLVM::ExtractElementOp>();
    isWord = isWord && element && element.getVector() == first.getVector() &&
             isConstantIntValue(element.getPosition(), i);
  }
  Value joined = isWord ? first.getVector()
                        : LLVM::PoisonOp::create(b, vector).getResult();
  if (!isWord)
    for (auto [i, byte] : llvm::enumerate(bytes))
      joined = LLVM::InsertElementOp::create(
          b, joined, byte, arith::ConstantIntOp::create(b, i, 32));
  return LLVM::BitcastOp::create(b, b.getI32Type(), joined);
}

/// Rounds f32 scalars to f4E2M1FN: bytes that have two neighbours each. Where
/// there are none what stores them says so.
static SmallVector<Value> truncateTo4(ImplicitLocOpBuilder &b,
                                      ArrayRef<Value> scalars,
                                      const TileLayout &layout,
                                      bool byIntegers) {
  SmallVector<Value> bytes;
  auto pairs = findPairs(layout);
  if (byIntegers && pairs.size() % kWordBytes == 0) {
    for (size_t first = 0; first < pairs.size(); first += kWordBytes) {
      SmallVector<Value> eight;
      for (auto [even, odd] : ArrayRef(pairs).slice(first, kWordBytes))
        eight.append({scalars[even], scalars[odd]});
      llvm::append_range(bytes, splitWord(b, narrowToWord4(b, eight)));
    }
  } else {
    for (auto [even, odd] : pairs)
      bytes.push_back(
          narrowToPair4(b, scalars[even], scalars[odd], byIntegers));
  }
  if (bytes.empty())
    bytes.assign(scalars.size() / 2,
                 arith::ConstantIntOp::create(b, 0, 8).getResult());
  return bytes;
}

template <>
LogicalResult PartitionLowering::lower(arith::TruncFOp op) {
  FailureOr<TileValue> source = tile(op, op.getIn());
  FailureOr<TileLayout> layout = layoutOf(op, op.getType());
  if (failed(source) || failed(layout))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type elementType = getElementTypeOrSelf(op.getType());
  unsigned packing = packingOf(elementType);
  SmallVector<Value> scalars = unpack(b, *source);
  if (elementType.getIntOrFloatBitWidth() == 4) {
    setTile(op.getResult(), *layout,
            truncateTo4(b, scalars, *layout,
                        kernel.someTargetLacks(Capability::Fp4)));
    return success();
  }
  if (storageOf(elementType) != elementType) {
    setTile(op.getResult(), *layout,
            truncateTo8(b, scalars, elementType,
                        kernel.someTargetLacks(Capability::Fp8)));
    return success();
  }
  // One conversion makes two 16-bit elements, if it sees a vector of two.
  Type wide = VectorType::get(packing, source->elementType);
  Type narrow = VectorType::get(packing, elementType);
  SmallVector<Value> results;
  for (unsigned i = 0; i < scalars.size(); i += packing) {
    // Powers of halves are there as pairs.
    if (Value pair = packing == 2
                         ? findExtended(scalars[i], scalars[i + 1], narrow)
                         : Value()) {
      results.push_back(pair);
      continue;
    }
    Value vector = LLVM::PoisonOp::create(b, wide);
    for (unsigned j = 0; j < packing; ++j)
      vector = LLVM::InsertElementOp::create(
          b, vector, scalars[i + j], arith::ConstantIntOp::create(b, j, 32));
    results.push_back(LLVM::FPTruncOp::create(b, narrow, vector));
  }
  setTile(op.getResult(), *layout, results);
  return success();
}

template <>
LogicalResult PartitionLowering::lower(arith::ExtFOp op) {
  FailureOr<TileValue> source = tile(op, op.getIn());
  FailureOr<TileLayout> layout = layoutOf(op, op.getType());
  if (failed(source) || failed(layout))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type elementType = getElementTypeOrSelf(op.getType());
  bool isNarrow = storageOf(source->elementType) != source->elementType;
  if (isNarrow && packingOf(elementType) == 2) {
    setTile(op.getResult(), *layout,
            widenPairs(*this, b, *source, elementType));
    return success();
  }
  SmallVector<Value> scalars =
      isNarrow ? extendFrom8(*this, b, *source) : unpack(b, *source);
  SmallVector<Value> results;
  for (Value scalar : scalars)
    results.push_back(scalar.getType() == elementType
                          ? scalar
                          : arith::ExtFOp::create(b, elementType, scalar));
  setTile(op.getResult(), *layout, results);
  return success();
}

Value lowering::convertByte(ImplicitLocOpBuilder &b, Operation &op,
                            Value operand, bool byIntegers) {
  auto isByte = [](Type type) { return isa<Float8E4M3FNType>(type); };
  if (auto narrow = dyn_cast<arith::TruncFOp>(op);
      narrow && isByte(narrow.getType()) && narrow.getIn().getType().isF32())
    return narrowToByte(b, operand, byIntegers);
  if (auto wide = dyn_cast<arith::ExtFOp>(op);
      wide && isByte(wide.getIn().getType()) && wide.getType().isF32())
    return widenByte(b, operand, byIntegers);
  auto cast = dyn_cast<arith::BitcastOp>(op);
  if (cast && (isByte(cast.getType()) || isByte(cast.getIn().getType())))
    return operand;
  return {};
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
    // only, which a soft cap of 50 would turn into 2 % of a probability.
    Value power =
        call("llvm.nvvm.ex2.approx.ftz.f32",
             arith::MulFOp::create(b, operand, constant(2 * 1.44269504f)));
    Value inverse = call("llvm.nvvm.rcp.approx.ftz.f",
                         arith::AddFOp::create(b, power, constant(1.0f)));
    Value large =
        math::FmaOp::create(b, constant(-2.0f), inverse, constant(1.0f));
    // Near zero that difference keeps few digits, and a large cap makes
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
  if (auto quotient = dyn_cast<arith::DivFOp>(op);
      quotient && type.isF32() &&
      arith::bitEnumContainsAll(quotient.getFastmath(),
                                arith::FastMathFlags::afn)) {
    Value inverse = LLVM::CallIntrinsicOp::create(
                        b, type, b.getStringAttr("llvm.nvvm.rcp.approx.ftz.f"),
                        ValueRange{operands.back()})
                        .getResults();
    return matchPattern(quotient.getLhs(), m_OneFloat())
               ? inverse
               : arith::MulFOp::create(b, operands.front(), inverse)
                     .getResult();
  }
  OperationState state(op->getLoc(), op->getName(), operands, {type},
                       op->getDiscardableAttrDictionary().getValue());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  return b.create(state)->getResult(0);
}

/// What one instruction computes for two f32.
static bool isPairedArithmetic(Operation *op) {
  return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, math::FmaOp>(op);
}

LogicalResult PartitionLowering::lowerElementwise(Operation *op) {
  FailureOr<TileLayout> layout = layoutOf(op, op->getResult(0).getType());
  if (failed(layout))
    return failure();
  ImplicitLocOpBuilder b(op->getLoc(), op);
  Type resultType = getElementTypeOrSelf(op->getResult(0).getType());
  unsigned packing = packingOf(resultType);
  auto isEight = [](Type type) {
    Type element = getElementTypeOrSelf(type);
    return storageOf(element) != element;
  };
  if (isEight(resultType) || llvm::any_of(op->getOperandTypes(), isEight))
    return op->emitOpError("expected no arithmetic on 8-bit floats, got ")
           << op->getResult(0).getType();
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
  bool inPairs = isPairedArithmetic(op) &&
                 computesInPairs(op->getResult(0).getType()) &&
                 llvm::all_of(operands, [&](const TileValue &operand) {
                   return operand.elementType.isF32();
                 });
  SmallVector<Value> results;
  for (unsigned i = 0; i < count; ++i) {
    auto argumentsOf = [&](unsigned index) {
      return llvm::map_to_vector(columns, [&](ArrayRef<Value> column) {
        return column.size() == 1 ? column[0] : column[index];
      });
    };
    SmallVector<Value> arguments = argumentsOf(i);
    if (!inPairs) {
      results.push_back(cloneFor(b, op, arguments, held));
      continue;
    }
    for (auto [first, second] : llvm::zip(arguments, argumentsOf(++i)))
      first = joinPair(b, first, second);
    auto [first, second] = splitPair(
        b, cloneFor(b, op, arguments, VectorType::get(2, resultType)));
    results.append({first, second});
  }
  if (!packed)
    results = pack(b, results, resultType);
  setTile(op->getResult(0), *layout, results);
  return success();
}

void lowering::addElementwiseLowerings(LoweringTable &table) {
  table.addReplaced<tensor::SplatOp>();
  table.addReplacedOnTiles<arith::ConstantOp, arith::TruncFOp, arith::ExtFOp>();
}
