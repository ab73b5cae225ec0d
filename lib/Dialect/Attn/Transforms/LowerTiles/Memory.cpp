//===- Memory.cpp - Buffers, shared loads and stores, global tiles --------===//

#include "PartitionLowering.h"
#include "attn/Analysis/Memory/SharedAccess.h"
#include "attn/Dialect/Attn/IR/KernelAttrs.h"
#include "attn/Dialect/Attn/IR/NarrowFloats.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

template <>
LogicalResult PartitionLowering::lower(AllocOp op) {
  if (!op.getOffset())
    return op.emitOpError(
        "expected an offset; attn-allocate-shared gives it one");
  Value base = kernel.sharedPointer(op.getLoc(), *op.getOffset());
  kernel.buffers[op.getResult()] = {base, op.getType(), base, Value(), 0};
  return success();
}

template <>
LogicalResult PartitionLowering::lower(SlotOp op) {
  BufferValue ring = kernel.buffers.lookup(op.getSource());
  if (ring.type.isTmem()) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    Value columns =
        arith::ConstantIntOp::create(b, ring.type.getSlotColumns(), 32);
    return lowerTmemView(
        op, op.getSource(), op.getType(),
        arith::MulIOp::create(b, op.getIndex(), columns).getResult());
  }
  llvm::Expected<int64_t> bytes = ring.type.getSlotBytes();
  if (!bytes)
    return op.emitOpError() << llvm::toString(bytes.takeError());
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value offset = arith::MulIOp::create(
      b, op.getIndex(), arith::ConstantIntOp::create(b, *bytes, 32));
  Value base = LLVM::GEPOp::create(b, ring.base.getType(), b.getI8Type(),
                                   ring.base, ValueRange{offset});
  kernel.buffers[op.getResult()] = {base, op.getType(), ring.allocation,
                                    op.getIndex(), *bytes};
  return success();
}

LogicalResult PartitionLowering::lowerView(Operation *op, Value source,
                                           BufferType type) {
  BufferValue view = kernel.buffers.lookup(source);
  view.type = type;
  kernel.buffers[op->getResult(0)] = view;
  return success();
}

//===----------------------------------------------------------------------===//
// Shared memory and register tiles
//===----------------------------------------------------------------------===//

SmallVector<Value> PartitionLowering::loadMatrices(ImplicitLocOpBuilder &b,
                                                   Value base,
                                                   const MatrixPlan &plan,
                                                   const MatrixAccess &access) {
  Value pointer = address(b, base, plan.forms, access.address);
  Type word = b.getI32Type();
  Type type = access.num == 1
                  ? word
                  : LLVM::LLVMStructType::getLiteral(
                        b.getContext(), SmallVector<Type>(access.num, word));
  auto shape = NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8);
  Value loaded = NVVM::LdMatrixOp::create(b, type, pointer, access.num,
                                          plan.trans ? NVVM::MMALayout::col
                                                     : NVVM::MMALayout::row,
                                          shape, NVVM::LdStMatrixEltType::B16);
  if (access.num == 1)
    return {loaded};
  SmallVector<Value> words;
  for (unsigned i = 0; i < access.num; ++i)
    words.push_back(LLVM::ExtractValueOp::create(b, loaded, i));
  return words;
}

/// True for row values of 32 bits that a partition reads or writes, which no
/// barrier of the CTA but a channel orders.
static bool isOrderedByChannel(bool isPartition, BufferType buffer,
                               const VectorPlan &plan) {
  return isPartition && buffer.getRank() == 1 && plan.bytes == 4 &&
         buffer.getElementType().isF32();
}

/// The type of a memory access of `count` elements.
static Type vectorType(Type elementType, unsigned count) {
  Type type = storageOf(elementType);
  return count == 1 ? type : Type(VectorType::get(count, type));
}

template <>
LogicalResult PartitionLowering::lower(LocalLoadOp op) {
  FailureOr<TileLayout> layout = layoutOf(op, op.getType());
  BufferValue buffer = kernel.buffers.lookup(op.getSource());
  FailureOr<SharedLayout> memory = layoutOf(op, buffer.type);
  if (failed(layout) || failed(memory))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type elementType = getElementTypeOrSelf(op.getType());
  unsigned packing = packingOf(elementType);
  if (std::optional<uint64_t> column = op.getColumn()) {
    llvm::Expected<SharedLayout> own = memory->column();
    if (!own)
      return op.emitOpError() << llvm::toString(own.takeError());
    auto offset = static_cast<int32_t>(*column * own->elementBytes());
    memory = *own;
    buffer.base =
        LLVM::GEPOp::create(b, buffer.base.getType(), b.getI8Type(),
                            buffer.base, ArrayRef<LLVM::GEPArg>{offset});
  }

  if (elementType.getIntOrFloatBitWidth() <= 16 && packing > 1) {
    llvm::Expected<MatrixPlan> plan = planMatrixAccess(*layout, *memory);
    if (plan && plan->elementsPerWord == packing) {
      Type held = VectorType::get(packing, storageOf(elementType));
      SmallVector<Value> values(layout->numRegisters() / packing);
      for (const MatrixAccess &access : plan->accesses)
        for (auto [word, value] :
             llvm::enumerate(loadMatrices(b, buffer.base, *plan, access)))
          values[access.registers[word * packing] / packing] =
              LLVM::BitcastOp::create(b, held, value);
      setTile(op.getResult(), *layout, values);
      return success();
    }
    llvm::consumeError(plan.takeError());
  }

  llvm::Expected<VectorPlan> plan = planSharedAccess(*layout, *memory);
  if (!plan)
    return op.emitOpError() << llvm::toString(plan.takeError());
  SmallVector<Value> scalars(layout->numRegisters());
  bool isSent = kernel.exchanged.contains(findAlloc(op.getSource()));
  if (isSent && elementType.getIntOrFloatBitWidth() != 32)
    return op.emitOpError("expected ldmatrix to read what another CTA sends in "
                          "elements of less than 32 bits");
  for (const VectorAccess &access : plan->accesses) {
    unsigned count = access.registers.size();
    Value pointer = address(b, buffer.base, plan->forms, access.address);
    if (isSent) {
      for (auto [reg, value] : llvm::zip(
               access.registers, loadSent(b, pointer, count, elementType)))
        scalars[reg] = value;
      continue;
    }
    Value loaded;
    if (isOrderedByChannel(isPartition, buffer.type, *plan))
      loaded = emitOrdered(b, elementType, "ld.shared.b32 $0, [$1];",
                           "=f,r,~{memory}", addressOf(b, pointer));
    else
      loaded = LLVM::LoadOp::create(b, vectorType(elementType, count), pointer,
                                    plan->bytes);
    for (auto [i, reg] : llvm::enumerate(access.registers))
      scalars[reg] =
          count == 1 ? loaded
                     : LLVM::ExtractElementOp::create(
                           b, loaded, arith::ConstantIntOp::create(b, i, 32))
                           .getResult();
  }
  for (auto [copy, original] : plan->copies)
    scalars[copy] = scalars[original];
  setTile(op.getResult(), *layout, pack(b, scalars, elementType));
  return success();
}

Value lowering::gather(ImplicitLocOpBuilder &b, const TileValue &tile,
                       ArrayRef<Value> scalars, ArrayRef<unsigned> registers) {
  if (tile.packing == registers.size() &&
      registers.front() % tile.packing == 0 &&
      llvm::all_of(llvm::enumerate(registers), [&](auto it) {
        return it.value() == registers.front() + it.index();
      }))
    return tile.values[registers.front() / tile.packing];
  if (registers.size() == 1)
    return scalars[registers.front()];
  Value vector = LLVM::PoisonOp::create(
      b, VectorType::get(registers.size(), storageOf(tile.elementType)));
  for (auto [i, reg] : llvm::enumerate(registers))
    vector = LLVM::InsertElementOp::create(
        b, vector, scalars[reg], arith::ConstantIntOp::create(b, i, 32));
  return vector;
}

bool PartitionLowering::storeMatrices(ImplicitLocOpBuilder &b,
                                      const TileValue &source, Value base,
                                      const SharedLayout &memory) {
  llvm::Expected<MatrixPlan> plan = planMatrixAccess(source.layout, memory);
  if (!plan) {
    llvm::consumeError(plan.takeError());
    return false;
  }
  // Of warps that hold copies one has to store.
  if (plan->warpBroadcastMask != 0 || plan->elementsPerWord != source.packing)
    return false;
  auto shape = NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8);
  for (const MatrixAccess &access : plan->accesses) {
    SmallVector<Value> words;
    for (unsigned i = 0; i < access.num; ++i)
      words.push_back(LLVM::BitcastOp::create(
          b, b.getI32Type(),
          source.values[access.registers[2 * i] / source.packing]));
    NVVM::StMatrixOp::create(
        b, address(b, base, plan->forms, access.address), words,
        plan->trans ? NVVM::MMALayout::col : NVVM::MMALayout::row, shape,
        NVVM::LdStMatrixEltType::B16);
  }
  return true;
}

template <>
LogicalResult PartitionLowering::lower(LocalStoreOp op) {
  FailureOr<TileValue> source = tile(op, op.getValue());
  BufferValue buffer = kernel.buffers.lookup(op.getDest());
  FailureOr<SharedLayout> memory = layoutOf(op, buffer.type);
  if (failed(source) || failed(memory))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  if (source->packing == 2 && kernel.targetsHave(Capability::StMatrix) &&
      storeMatrices(b, *source, buffer.base, *memory))
    return success();
  llvm::Expected<VectorPlan> plan = planSharedAccess(source->layout, *memory);
  if (!plan)
    return op.emitOpError() << llvm::toString(plan.takeError());
  Value predicate =
      copyPredicate(b, plan->laneBroadcastMask, plan->warpBroadcastMask);
  if (predicate) {
    auto branch = scf::IfOp::create(b, predicate, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  SmallVector<Value> scalars = unpack(b, *source);
  for (const VectorAccess &access : plan->accesses) {
    Value value = gather(b, *source, scalars, access.registers);
    Value pointer = address(b, buffer.base, plan->forms, access.address);
    if (isOrderedByChannel(isPartition, buffer.type, *plan))
      emitOrdered(b, Type(), "st.shared.b32 [$0], $1;", "r,f,~{memory}",
                  {addressOf(b, pointer), value});
    else
      LLVM::StoreOp::create(b, value, pointer, plan->bytes);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Global memory and register tiles
//===----------------------------------------------------------------------===//

/// Bytes of the widest load and store of all targets.
static constexpr int64_t kVectorBytes = 16;

namespace {
/// The accesses of one tile to rows of global memory.
struct RowAccess {
  unsigned width = 1;
  SmallVector<SmallVector<unsigned, 8>> registers;
  SmallVector<int64_t> rows, columns;
  unsigned laneMask = 0, warpMask = 0;
};
} // namespace

/// `widest` bytes are the most that an instruction moves; elements of the view
/// have `perElement` columns of the tile.
static FailureOr<RowAccess> planRows(Operation *op, const TileLayout &layout,
                                     const ViewValue &view, int64_t widest,
                                     int64_t perElement = 1) {
  RowAccess result;
  if (layout.rank() == 1) {
    result.laneMask = layout.laneBroadcastMask();
    result.warpMask = layout.warpBroadcastMask();
    for (unsigned reg = 0; reg < layout.numRegisters(); ++reg) {
      result.registers.push_back({reg});
      result.rows.push_back(layout.registerCoords(reg)[0]);
      result.columns.push_back(0);
    }
    return result;
  }
  unsigned bits = view.type.getElementType().getIntOrFloatBitWidth();
  // Two columns of a byte are planned as one each.
  unsigned maxBytes = std::min<int64_t>(
      std::min<int64_t>(widest, view.alignment) * perElement, 32);
  llvm::Expected<GlobalPlan> plan =
      planGlobalAccess(layout, /*contiguousDim=*/1, bits, maxBytes);
  if (!plan)
    return op->emitOpError() << llvm::toString(plan.takeError());
  result.width = plan->width;
  result.laneMask = plan->laneBroadcastMask;
  result.warpMask = plan->warpBroadcastMask;
  for (const GlobalAccess &access : plan->accesses) {
    result.registers.push_back(access.registers);
    result.rows.push_back(access.coords[0]);
    result.columns.push_back(access.coords[1]);
  }
  return result;
}

Value PartitionLowering::startOf(ImplicitLocOpBuilder &b, Value start,
                                 const ViewValue &view, Value row) {
  return LLVM::GEPOp::create(
      b, start.getType(), b.getI8Type(), start,
      ValueRange{arith::MulIOp::create(
          b, arith::ExtSIOp::create(b, b.getI64Type(), row),
          rowBytes(view, 1))});
}

int64_t lowering::getLastThreadColumn(const TileLayout &layout) {
  int64_t last = 0;
  for (int64_t basis : layout.laneBases(1))
    last += basis;
  for (int64_t basis : layout.warpBases(1))
    last += basis;
  return last;
}

void lowering::storeKept(ImplicitLocOpBuilder &b, Value value, Value pointer) {
  auto vector = dyn_cast<VectorType>(value.getType());
  int64_t count = vector ? vector.getNumElements() : 1;
  // It has no effects, so that one serves all stores.
  auto policy = LLVM::InlineAsmOp::create(
      b, b.getI64Type(), ValueRange(),
      "createpolicy.fractional.L2::evict_last.b64 $0, 0f3F800000;", "=l",
      /*has_side_effects=*/false, /*is_align_stack=*/false,
      LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(),
      ArrayAttr());
  SmallVector<Value> operands = {pointer};
  std::string list, constraints = "l";
  for (int64_t i = 0; i < count; ++i) {
    operands.push_back(
        vector ? LLVM::ExtractElementOp::create(
                     b, value, arith::ConstantIntOp::create(b, i, 32))
                     .getResult()
               : value);
    list += (i ? ", $" : "$") + std::to_string(i + 1);
    constraints += ",f";
  }
  operands.push_back(policy.getResult(0));
  std::string width = vector ? ".v" + std::to_string(count) : "";
  if (vector)
    list = "{" + list + "}";
  emitOrdered(b, Type(),
              "st.global.L2::cache_hint" + width + ".f32 [$0], " + list +
                  ", $" + std::to_string(count + 1) + ";",
              constraints + ",l,~{memory}", operands);
}

/// Returns what is stored of some registers: elements of the tile, bytes of two
/// of f4E2M1FN each, or an f32 as `stored`, a type of 8 bits.
static Value gatherStored(ImplicitLocOpBuilder &b, const TileValue &tile,
                          ArrayRef<Value> scalars, ArrayRef<unsigned> registers,
                          Type stored, bool byIntegers) {
  if (tile.elementType.isF32() && isa<Float8E8M0FNUType>(stored)) {
    constexpr int64_t kMantissaBits = 23;
    Value bits =
        arith::BitcastOp::create(b, b.getI32Type(), scalars[registers.front()]);
    return arith::TruncIOp::create(
        b, b.getI8Type(),
        arith::ShRUIOp::create(
            b, bits, arith::ConstantIntOp::create(b, kMantissaBits, 32))
            .getResult());
  }
  if (tile.elementType.isF32() && stored.getIntOrFloatBitWidth() == 8)
    return narrowToByte(b, scalars[registers.front()], byIntegers);
  if (!isa<Float4E2M1FNType>(tile.elementType))
    return gather(b, tile, scalars, registers);
  TileValue bytes = {tile.layout, b.getI8Type(), 1, tile.values};
  auto known = findPairs(tile.layout);
  SmallVector<unsigned> pairs;
  for (unsigned i = 0; i < registers.size(); i += 2) {
    auto *found = llvm::find(known, std::pair(registers[i], registers[i + 1]));
    pairs.push_back(found - known.begin());
  }
  return gather(b, bytes, bytes.values, pairs);
}

/// Checks that a thread has both columns of each byte, one after the other.
static LogicalResult checkPairs(Operation *op, const TileLayout &layout,
                                const RowAccess &plan) {
  auto pairs = findPairs(layout);
  bool hasPairs = plan.width % 2 == 0;
  for (ArrayRef<unsigned> registers : plan.registers)
    for (size_t i = 0; hasPairs && i < registers.size(); i += 2)
      hasPairs =
          llvm::is_contained(pairs, std::pair(registers[i], registers[i + 1]));
  if (hasPairs)
    return success();
  return op->emitOpError("expected threads that have pairs of neighbours of "
                         "f4E2M1FN");
}

template <>
LogicalResult PartitionLowering::lower(GlobalStoreOp op) {
  FailureOr<TileValue> source = tile(op, op.getValue());
  ViewValue view = kernel.views.lookup(op.getDest());
  if (failed(source))
    return failure();
  // Columns of the tile for each element of the view.
  bool isPaired = isa<Float4E2M1FNType>(source->elementType);
  int64_t perElement = isPaired ? 2 : 1;
  FailureOr<RowAccess> plan =
      planRows(op, source->layout, view,
               kernel.targetsHave(Capability::Vector256) ? 32 : kVectorBytes,
               perElement);
  if (failed(plan) ||
      (isPaired && failed(checkPairs(op, source->layout, *plan))))
    return failure();
  bool rankTwo = source->layout.rank() == 2;
  Value threadRow = threadCoordinate(source->layout, 0);
  Value threadColumn = rankTwo ? threadCoordinate(source->layout, 1) : Value();
  Value threadElement = threadColumn;
  if (isPaired) {
    ImplicitLocOpBuilder entry = kernel.entryBuilder();
    threadElement = arith::ShRUIOp::create(
        entry, threadColumn, arith::ConstantIntOp::create(entry, 1, 32));
  }
  int64_t columns = rankTwo ? view.type.getColumns() * perElement : 0;
  int64_t lastThreadColumn = rankTwo ? getLastThreadColumn(source->layout) : 0;
  bool isScattered = view.isScattered();
  Value start;
  if (!isScattered)
    start = threadBase(view, threadRow, threadElement);
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type stored = view.type.getElementType();
  int64_t elementBytes = stored.getIntOrFloatBitWidth() / 8;
  bool isKept = op->hasAttr(kKeptAttr) && source->elementType.isF32();
  SmallVector<Value> scalars;
  if (!isPaired)
    scalars = unpack(b, *source);
  if (Value predicate = copyPredicate(b, plan->laneMask, plan->warpMask)) {
    auto branch = scf::IfOp::create(b, predicate, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  Value first = arith::AddIOp::create(b, op.getRow(), threadRow);
  Value startRow = isScattered ? Value() : startOf(b, start, view, op.getRow());
  // Accesses of one row share its bound and its pointer.
  llvm::MapVector<int64_t, SmallVector<unsigned>> byRow;
  for (auto [index, row] : llvm::enumerate(plan->rows))
    byRow[row].push_back(index);
  for (auto &[row, accesses] : byRow) {
    Value position = arith::AddIOp::create(
        b, first, arith::ConstantIntOp::create(b, row, 32));
    RowPlace place;
    if (isScattered)
      place = placeRow(b, view, position, threadElement, view.inBounds);
    else if (!view.inBounds)
      place.exists = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                           position, view.rows);
    if (!place.exists)
      place.exists = arith::ConstantIntOp::create(b, 1, 1);
    auto branch = scf::IfOp::create(b, place.exists, /*withElseRegion=*/false);
    ImplicitLocOpBuilder inner(op.getLoc(), b.getContext());
    inner.setInsertionPointToStart(branch.thenBlock());
    Value rowStart = isScattered ? place.address : startRow;
    if (row != 0 && !isScattered)
      rowStart = LLVM::GEPOp::create(inner, start.getType(), b.getI8Type(),
                                     startRow, ValueRange{rowBytes(view, row)});
    for (unsigned index : accesses) {
      Value pointer = rowStart;
      if (plan->columns[index] != 0)
        pointer = LLVM::GEPOp::create(
            inner, pointer.getType(), b.getI8Type(), rowStart,
            ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(
                plan->columns[index] / perElement * elementBytes)});
      OpBuilder::InsertionGuard guard(inner);
      // The tile's last columns may be padding.
      if (rankTwo && plan->columns[index] + lastThreadColumn >= columns) {
        Value inside = arith::CmpIOp::create(
            inner, arith::CmpIPredicate::slt, threadColumn,
            arith::ConstantIntOp::create(inner, columns - plan->columns[index],
                                         32));
        auto padding = scf::IfOp::create(inner, inside, /*else=*/false);
        inner.setInsertionPointToStart(padding.thenBlock());
      }
      Value value =
          gatherStored(inner, *source, scalars, plan->registers[index], stored,
                       kernel.someTargetLacks(Capability::Fp8));
      if (isKept)
        storeKept(inner, value, pointer);
      else
        LLVM::StoreOp::create(inner, value, pointer,
                              plan->width / perElement * elementBytes);
    }
  }
  return success();
}

template <>
LogicalResult PartitionLowering::lower(GlobalLoadOp op) {
  FailureOr<TileLayout> layout = layoutOf(op, op.getType());
  ViewValue view = kernel.views.lookup(op.getSource());
  if (failed(layout))
    return failure();
  FailureOr<RowAccess> plan = planRows(op, *layout, view, kVectorBytes);
  if (failed(plan))
    return failure();
  Type elementType = getElementTypeOrSelf(op.getType());
  int64_t elementBytes = elementType.getIntOrFloatBitWidth() / 8;
  Value threadRow = threadCoordinate(*layout, 0);
  Value threadColumn =
      layout->rank() == 2 ? threadCoordinate(*layout, 1) : Value();
  bool isScattered = view.isScattered();
  Value start;
  if (!isScattered)
    start = threadBase(view, threadRow, threadColumn);
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value first = arith::AddIOp::create(b, op.getRow(), threadRow);
  Value startRow = isScattered ? Value() : startOf(b, start, view, op.getRow());
  SmallVector<Value> scalars(layout->numRegisters());
  for (unsigned access = 0; access < plan->rows.size(); ++access) {
    ArrayRef<unsigned> registers = plan->registers[access];
    int64_t row = plan->rows[access], column = plan->columns[access];
    Value position = arith::AddIOp::create(
        b, first, arith::ConstantIntOp::create(b, row, 32));
    RowPlace place;
    if (isScattered)
      place = placeRow(b, view, position, threadColumn, view.inBounds);
    else if (!view.inBounds)
      place.exists = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                           position, view.rows);
    if (!place.exists)
      place.exists = arith::ConstantIntOp::create(b, 1, 1);
    Type type = vectorType(elementType, registers.size());
    auto branch = scf::IfOp::create(
        b, place.exists,
        [&](OpBuilder &builder, Location loc) {
          ImplicitLocOpBuilder inner(loc, builder);
          Value pointer = place.address;
          if (!isScattered)
            pointer =
                LLVM::GEPOp::create(inner, start.getType(), inner.getI8Type(),
                                    startRow, ValueRange{rowBytes(view, row)});
          pointer = LLVM::GEPOp::create(
              inner, pointer.getType(), inner.getI8Type(), pointer,
              ArrayRef<LLVM::GEPArg>{
                  static_cast<int32_t>(column * elementBytes)});
          Value loaded = LLVM::LoadOp::create(inner, type, pointer,
                                              registers.size() * elementBytes);
          scf::YieldOp::create(inner, loaded);
        },
        [&](OpBuilder &builder, Location loc) {
          ImplicitLocOpBuilder inner(loc, builder);
          Value zero =
              arith::ConstantOp::create(inner, inner.getZeroAttr(type));
          scf::YieldOp::create(inner, zero);
        });
    Value loaded = branch.getResult(0);
    for (auto [i, reg] : llvm::enumerate(registers))
      scalars[reg] =
          registers.size() == 1
              ? loaded
              : LLVM::ExtractElementOp::create(
                    b, loaded, arith::ConstantIntOp::create(b, i, 32))
                    .getResult();
  }
  for (auto [reg, scalar] : llvm::enumerate(scalars))
    if (!scalar)
      return op.emitOpError("expected a layout whose registers hold no copies");
  setTile(op.getResult(), *layout, pack(b, scalars, elementType));
  return success();
}

template <>
LogicalResult PartitionLowering::lower(TransposeOp op) {
  return lowerView(op, op.getSource(), op.getType());
}

template <>
LogicalResult PartitionLowering::lower(ReinterpretOp op) {
  return lowerView(op, op.getSource(), op.getType());
}

void lowering::addMemoryLowerings(LoweringTable &table) {
  table.addReplaced<AllocOp, SlotOp, TransposeOp, ReinterpretOp, LocalLoadOp,
                    LocalStoreOp, GlobalLoadOp, GlobalStoreOp>();
}
