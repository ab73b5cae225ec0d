//===- Values.cpp - Registers and what a thread knows of itself -----------===//

#include "PartitionLowering.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

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
  case 4:
  case 16:
    return 2;
  default:
    return 1;
  }
}

Type lowering::storageOf(Type elementType) {
  // A byte has two of 4 bits.
  if (isa<FloatType>(elementType) && elementType.getIntOrFloatBitWidth() <= 8)
    return IntegerType::get(elementType.getContext(), 8);
  return elementType;
}

Value lowering::joinPair(ImplicitLocOpBuilder &b, Value first, Value second) {
  Value pair = LLVM::PoisonOp::create(b, VectorType::get(2, b.getF32Type()));
  for (auto [index, value] : llvm::enumerate(std::array{first, second}))
    pair = LLVM::InsertElementOp::create(
        b, pair, value, arith::ConstantIntOp::create(b, index, 32));
  return pair;
}

std::pair<Value, Value> lowering::splitPair(ImplicitLocOpBuilder &b,
                                            Value pair) {
  auto get = [&](int64_t index) -> Value {
    return LLVM::ExtractElementOp::create(
        b, pair, arith::ConstantIntOp::create(b, index, 32));
  };
  Value first = get(0), second = get(1);
  return {first, second};
}

bool PartitionLowering::computesInPairs(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  if (!tile || tile.getRank() != 2 || !tile.getElementType().isF32() ||
      tile.getShape()[1] % 2 != 0)
    return false;
  auto layout = dyn_cast_if_present<TmemRegsLayoutAttr>(tile.getEncoding());
  return layout && layout.getShape() == TmemShape::S32x32b &&
         kernel.targetsHave(Capability::F32x2);
}

/// The element type of a tile or an accumulator in flight.
static Type elementTypeOf(Type type) {
  if (auto inFlight = dyn_cast<InFlightType>(type))
    return inFlight.getElementType();
  return getElementTypeOrSelf(type);
}

FailureOr<std::pair<int64_t, int64_t>>
PartitionLowering::getGrid(Operation *op) {
  if (grid)
    return *grid;
  return op->emitOpError("expected a grid of warps for register tiles, which "
                         "warps outside of partitions do not have here");
}

FailureOr<TileLayout> PartitionLowering::layoutOf(Operation *op, Type type) {
  RankedTensorType tensor;
  auto inFlight = dyn_cast<InFlightType>(type);
  if (inFlight && inFlight.getLayout()) {
    tensor = RankedTensorType::get(
        inFlight.getShape(), inFlight.getElementType(), inFlight.getLayout());
  } else if (inFlight) {
    // The fragments of wgmma are those of the partition's accumulators.
    FailureOr<std::pair<int64_t, int64_t>> grid = getGrid(op);
    if (failed(grid))
      return failure();
    tensor = RankedTensorType::get(
        inFlight.getShape(), inFlight.getElementType(),
        MmaLayoutAttr::get(op->getContext(), {grid->first, grid->second}));
  } else {
    tensor = cast<RankedTensorType>(type);
  }
  llvm::Expected<TileLayout> layout = getTileLayout(tensor);
  if (!layout) {
    op->emitOpError() << llvm::toString(layout.takeError()) << ", got " << type;
    return failure();
  }
  return std::move(*layout);
}

FailureOr<SharedLayout> PartitionLowering::layoutOf(Operation *op,
                                                    BufferType type) {
  llvm::Expected<SharedLayout> layout = getSharedLayout(type);
  if (!layout) {
    op->emitOpError() << llvm::toString(layout.takeError()) << ", got " << type;
    return failure();
  }
  return std::move(*layout);
}

FailureOr<TileValue> PartitionLowering::tile(Operation *user, Value value) {
  auto it = tiles.find(value);
  if (it == tiles.end())
    return user->emitOpError("expected a tile made by an op that can be "
                             "lowered, got ")
           << value.getType();
  return it->second;
}

void PartitionLowering::setTile(Value value, TileLayout layout,
                                SmallVector<Value> values) {
  Type elementType = elementTypeOf(value.getType());
  unsigned packing = packingOf(elementType);
  tiles[value] =
      TileValue{std::move(layout), elementType, packing, std::move(values)};
}

SmallVector<Value> PartitionLowering::unpack(ImplicitLocOpBuilder &b,
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

SmallVector<Value> PartitionLowering::pack(ImplicitLocOpBuilder &b,
                                           ArrayRef<Value> scalars,
                                           Type elementType) {
  unsigned packing = packingOf(elementType);
  if (packing == 1)
    return SmallVector<Value>(scalars);
  Type type = VectorType::get(packing, storageOf(elementType));
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

FailureOr<SmallVector<Type>> PartitionLowering::expandedTypes(Operation *op,
                                                              Type type) {
  if (!isRegisters(type))
    return SmallVector<Type>{type};
  FailureOr<TileLayout> layout = layoutOf(op, type);
  if (failed(layout))
    return failure();
  Type elementType = elementTypeOf(type);
  unsigned packing = packingOf(elementType);
  if (layout->numRegisters() % packing != 0)
    return op->emitOpError("expected a multiple of ")
           << packing << " registers for " << type << ", got "
           << layout->numRegisters();
  Type held = packing == 1
                  ? elementType
                  : Type(VectorType::get(packing, storageOf(elementType)));
  return SmallVector<Type>(layout->numRegisters() / packing, held);
}

//===----------------------------------------------------------------------===//
// What depends on the thread
//===----------------------------------------------------------------------===//

std::string PartitionLowering::threadKey() const {
  return firstWarp == 0 ? "" : std::to_string(firstWarp) + ":";
}

/// The low bits of a warp's number in the CTA number it in its partition, where
/// that starts at a multiple of its warps.
static bool numbersPartition(int64_t firstWarp, int64_t warps) {
  return firstWarp % llvm::PowerOf2Ceil(warps) == 0;
}

std::string PartitionLowering::warpKey() const {
  return numbersPartition(firstWarp, warps) ? "" : threadKey();
}

Value PartitionLowering::threadId() {
  if (kernel.teams > 1)
    return lane();
  Value thread = kernel.threadId();
  if (firstWarp == 0)
    return thread;
  Value &value = kernel.entryCache[threadKey() + "thread"];
  if (!value) {
    ImplicitLocOpBuilder b = kernel.entryBuilder();
    value = arith::SubIOp::create(
        b, thread, arith::ConstantIntOp::create(b, firstWarp * 32, 32));
  }
  return value;
}

Value PartitionLowering::warp() {
  if (kernel.teams > 1) {
    ImplicitLocOpBuilder b = kernel.entryBuilder();
    return arith::ConstantIntOp::create(b, 0, 32);
  }
  Value own = kernel.warp();
  if (numbersPartition(firstWarp, warps))
    return own;
  Value &value = kernel.entryCache[threadKey() + "warp"];
  if (!value) {
    ImplicitLocOpBuilder b = kernel.entryBuilder();
    value = arith::SubIOp::create(
        b, own, arith::ConstantIntOp::create(b, firstWarp, 32));
  }
  return value;
}

Value PartitionLowering::warpgroup() {
  Value &value = kernel.entryCache[threadKey() + "warpgroup"];
  if (!value) {
    Value own = kernel.uniformWarp();
    ImplicitLocOpBuilder b = kernel.entryBuilder();
    auto constant = [&](int64_t number) -> Value {
      return arith::ConstantIntOp::create(b, number, 32);
    };
    if (firstWarp != 0)
      own = arith::SubIOp::create(b, own, constant(firstWarp));
    value = arith::ShRUIOp::create(b, own, constant(2));
  }
  return value;
}

Value PartitionLowering::linearForm(ImplicitLocOpBuilder &b, Value index,
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

Value PartitionLowering::threadCoordinate(const TileLayout &layout,
                                          unsigned dim, int64_t step) {
  SmallVector<int64_t, 5> lanes = layout.laneBases(dim);
  SmallVector<int64_t, 4> warps = layout.warpBases(dim);
  for (int64_t &basis : lanes)
    basis *= step;
  for (int64_t &basis : warps)
    basis *= step;
  Value &cached =
      kernel.entryCache[cacheKey(warpKey() + "coord", {lanes, warps})];
  if (!cached) {
    Value laneId = lane(), warpId = warp();
    ImplicitLocOpBuilder b = kernel.entryBuilder();
    cached = arith::AddIOp::create(b, linearForm(b, laneId, lanes, false),
                                   linearForm(b, warpId, warps, false));
  }
  return cached;
}

Value PartitionLowering::formOffset(const AddressForm &form, int64_t xorConst) {
  std::string formKey =
      cacheKey(warpKey() + "form",
               {form.laneXor, form.warpXor, form.laneAdd, form.warpAdd});
  Value laneId = lane(), warpId = warp();
  Value &xorPart = kernel.entryCache[formKey + "xor"];
  if (!xorPart) {
    ImplicitLocOpBuilder b = kernel.entryBuilder();
    xorPart =
        arith::XOrIOp::create(b, linearForm(b, laneId, form.laneXor, true),
                              linearForm(b, warpId, form.warpXor, true));
  }
  Value &addPart = kernel.entryCache[formKey + "add"];
  if (!addPart) {
    ImplicitLocOpBuilder b = kernel.entryBuilder();
    addPart =
        arith::AddIOp::create(b, linearForm(b, laneId, form.laneAdd, false),
                              linearForm(b, warpId, form.warpAdd, false));
  }
  Value &offset = kernel.entryCache[formKey + std::to_string(xorConst)];
  if (!offset) {
    ImplicitLocOpBuilder b = kernel.entryBuilder();
    Value swizzled = xorPart;
    if (xorConst != 0)
      swizzled = arith::XOrIOp::create(
          b, xorPart, arith::ConstantIntOp::create(b, xorConst, 32));
    offset = arith::AddIOp::create(b, swizzled, addPart);
  }
  return offset;
}

Value PartitionLowering::address(ImplicitLocOpBuilder &b, Value base,
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

Value PartitionLowering::copyPredicate(ImplicitLocOpBuilder &b,
                                       unsigned laneMask, unsigned warpMask) {
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
