//===- Tma.cpp - Bulk tensor copies ---------------------------------------===//
//
// A copy is one instruction for each box: a span of 32 to 128 bytes of the
// buffer's rows, or the whole buffer without a swizzle.
//
//===----------------------------------------------------------------------===//

#include "PartitionLowering.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

/// Rows after which the swizzle of an address repeats.
static constexpr int64_t kSwizzleRows = 8;

LogicalResult PartitionLowering::checkTensorMap(Operation *op, Value map) {
  auto argument = dyn_cast<BlockArgument>(map);
  if (argument && argument.getOwner() == &kernel.func.getBody().front())
    return success();
  return op->emitOpError("expected a tensor map that is a parameter of the "
                         "kernel, got one from elsewhere");
}

LogicalResult
PartitionLowering::forEachBox(ImplicitLocOpBuilder &b, Operation *op, Value map,
                              ValueRange coords, Value memory, Value base,
                              function_ref<void(Value, ValueRange)> visit) {
  if (failed(checkTensorMap(op, map)))
    return failure();
  BufferValue buffer = kernel.buffers.lookup(memory);
  FailureOr<SharedLayout> layout = layoutOf(op, buffer.type);
  if (failed(layout))
    return failure();
  int64_t width = cast<TensorMapType>(map.getType()).getColumns();
  // The instruction takes the innermost coordinate first.
  SmallVector<Value> reversed(llvm::reverse(coords));
  Value first = reversed.front();
  for (int64_t column = 0; column < buffer.type.getShape()[1];
       column += width) {
    Value pointer = base;
    if (column != 0) {
      pointer =
          LLVM::GEPOp::create(b, pointer.getType(), b.getI8Type(), pointer,
                              ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(
                                  layout->offset({0, column}))});
      reversed.front() = arith::AddIOp::create(
          b, first, arith::ConstantIntOp::create(b, column, 32));
    }
    visit(pointer, reversed);
  }
  return success();
}

template <>
LogicalResult PartitionLowering::lower(TmaPrefetchOp op) {
  if (failed(checkTensorMap(op, op.getMap())))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  NVVM::PrefetchOp::create(b, NVVM::PrefetchCacheLevelAttr(),
                           NVVM::CacheEvictionPriorityAttr(), op.getMap(),
                           /*predicate=*/Value(), b.getUnitAttr());
  return success();
}

/// The rows of a box of which several lie below each other in a buffer.
static FailureOr<int64_t> checkRowParts(Operation *op, TensorMapType map) {
  int64_t rows = map.getRows();
  if (rows % kSwizzleRows != 0)
    return op->emitOpError("expected parts of whole ")
           << kSwizzleRows << " rows, got " << rows << " rows";
  return rows;
}

/// Starts a copy from `map` to `pointer`.
static void startLoad(ImplicitLocOpBuilder &b, Value map, Value pointer,
                      ValueRange coords, Value barrier, Value mask,
                      NVVM::TMALoadMode mode, NVVM::CTAGroupKindAttr group) {
  // An address in shared::cta is one in shared::cluster too; a cast through
  // the generic space would cost two instructions.
  Value address =
      LLVM::PtrToIntOp::create(b, b.getI32Type(), pointer).getResult();
  Value clusterPointer = LLVM::IntToPtrOp::create(
      b, LLVM::LLVMPointerType::get(b.getContext(), 7), address);
  NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
      b, clusterPointer, map, coords, barrier,
      /*im2colOffsets=*/ValueRange(), /*multicastMask=*/mask,
      /*l2CacheHint=*/Value(), mode, /*isCTAOnly=*/false, group,
      /*predicate=*/Value());
}

/// Starts the copy of a box to `pointer`; with the condition `outside` one of
/// the spare map, if it holds.
static void startCopy(ImplicitLocOpBuilder &b, TmaLoadOp op, Value pointer,
                      ValueRange coords, Value barrier, Value mask,
                      Value outside) {
  NVVM::CTAGroupKindAttr group;
  if (op.getLeader())
    group =
        NVVM::CTAGroupKindAttr::get(b.getContext(), NVVM::CTAGroupKind::CTA_2);
  auto copy = [&](Value map) {
    startLoad(b, map, pointer, coords, barrier, mask, NVVM::TMALoadMode::TILE,
              group);
  };
  if (!outside) {
    copy(op.getMap());
    return;
  }
  // An address for each box would take too many registers.
  auto branch = scf::IfOp::create(b, outside, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  copy(op.getSpare());
  b.setInsertionPointToStart(branch.elseBlock());
  copy(op.getMap());
}

/// Returns the instruction of a load of the form `form`, and adds its operands:
/// a pointer, a map, `coords` and a barrier.
static std::string writeLoad(const std::string &form, Value pointer, Value map,
                             ValueRange coords, Value barrier,
                             SmallVectorImpl<Value> &operands) {
  operands.append({pointer, map});
  std::string text = "cp.async.bulk.tensor." + form +
                     ".mbarrier::complete_tx::bytes [$1], [$2, {";
  for (Value coord : coords) {
    operands.push_back(coord);
    text +=
        (operands.size() > 3 ? ", $" : "$") + std::to_string(operands.size());
  }
  operands.push_back(barrier);
  return text + "}], [$" + std::to_string(operands.size()) + "];";
}

template <>
LogicalResult PartitionLowering::lower(TmaLoadOp op) {
  if (!op.getBarriers())
    return op.emitOpError("expected a barrier instead of a token; "
                          "attn-lower-channels makes it one");
  if (op.getSpare() && failed(checkTensorMap(op, op.getSpare())))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value barrier = barrierPointer(b, op.getBarriers(), op.getIndex());
  if (op.getLeader()) {
    // The instruction takes any address in shared memory of the pair.
    bool isPair = countLaunched(*kernel.func.getKnownClusterSize()) == 2;
    Value remote = remotePointer(
        b, barrier, getLeader(b, isPair ? RankBits() : RankBits(1)));
    barrier = LLVM::IntToPtrOp::create(
        b, barrier.getType(),
        LLVM::PtrToIntOp::create(b, b.getI32Type(), remote).getResult());
  }
  SmallVector<Value> coords(op.getCoords());
  BufferValue buffer = kernel.buffers.lookup(op.getDest());
  Value base = buffer.base, mask;
  if (std::optional<int64_t> ctas = op.getMulticast()) {
    // This CTA's part of the rows, to the same place in all of them.
    FailureOr<SharedLayout> layout = layoutOf(op, buffer.type);
    if (failed(layout))
      return failure();
    FailureOr<int64_t> parts = checkRowParts(op, op.getMap().getType());
    if (failed(parts))
      return failure();
    int64_t rows = *parts;
    auto scale = [&](Value value, int64_t factor) {
      return arith::MulIOp::create(b, value,
                                   arith::ConstantIntOp::create(b, factor, 32));
    };
    Value rank = getNumber(b, op.getRankBits());
    Value &row = coords[coords.size() - 2];
    row = arith::AddIOp::create(b, row, scale(rank, rows));
    base =
        LLVM::GEPOp::create(b, base.getType(), b.getI8Type(), base,
                            ValueRange{scale(rank, layout->offset({rows, 0}))});
    mask = getMask(b, *ctas, op.getRankBits());
  }
  // Whether this box is one of the spare map; null if none is.
  Value outside;
  auto choose = [&](int64_t box) {
    if (op.getSpare())
      outside = op.getOutside()[box];
  };
  auto start = [&](Value pointer, ValueRange coords) {
    if (elected) {
      Value map = op.getMap();
      if (outside)
        map = arith::SelectOp::create(b, outside, op.getSpare(), map);
      SmallVector<Value> operands;
      std::string form =
          std::to_string(coords.size()) + "d.shared::cluster.global.tile";
      std::string text =
          writeLoad(form, pointer, map, coords, barrier, operands);
      emitElected(b, text, operands);
      return;
    }
    startCopy(b, op, pointer, coords, barrier, mask, outside);
  };
  if (!op.getStacked()) {
    choose(0);
    return forEachBox(b, op, op.getMap(), coords, op.getDest(), base, start);
  }
  FailureOr<SharedLayout> layout = layoutOf(op, buffer.type);
  FailureOr<int64_t> rows = checkRowParts(op, op.getMap().getType());
  if (failed(layout) || failed(rows))
    return failure();
  int64_t step = op.getMap().getType().getBox().drop_back().back();
  int64_t rank = op.getMap().getType().getRank();
  for (int64_t part = 0, parts = *op.getStacked(); part < parts; ++part) {
    SmallVector<Value> shifted = coords;
    if (op.areBoxesApart()) {
      shifted.assign(coords.begin() + part * rank,
                     coords.begin() + (part + 1) * rank);
    } else {
      Value &along = shifted[shifted.size() - 2];
      along = arith::AddIOp::create(
          b, along, arith::ConstantIntOp::create(b, part * step, 32));
    }
    Value place =
        LLVM::GEPOp::create(b, base.getType(), b.getI8Type(), base,
                            ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(
                                layout->offset({part * *rows, 0}))});
    choose(part);
    if (failed(forEachBox(b, op, op.getMap(), shifted, op.getDest(), place,
                          start)))
      return failure();
  }
  return success();
}

/// Rows of an instruction that gathers.
static constexpr int64_t kGatheredRows = 4;

template <>
LogicalResult PartitionLowering::lower(TmaGatherOp op) {
  if (!op.getBarriers())
    return op.emitOpError("expected a barrier instead of a token; "
                          "attn-lower-channels makes it one");
  // Numbers of rows that are read before those of the first are needed.
  constexpr int64_t ahead = 4;
  TensorMapType map = op.getMap().getType();
  int64_t rows = op.getDest().getType().getShape()[0], span = map.getSwizzle();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value barrier = barrierPointer(b, op.getBarriers(), op.getIndex());
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 32);
  };
  auto shift = [&](Value pointer, Value bytes) -> Value {
    return LLVM::GEPOp::create(b, pointer.getType(), b.getI8Type(), pointer,
                               ValueRange{bytes});
  };
  auto copy = [&](Value pointer, ValueRange coords) {
    if (!elected)
      return startLoad(b, op.getMap(), pointer, coords, barrier,
                       /*mask=*/Value(), NVVM::TMALoadMode::TILE_GATHER4,
                       NVVM::CTAGroupKindAttr());
    SmallVector<Value> operands;
    std::string text =
        writeLoad("2d.shared::cluster.global.tile::gather4", pointer,
                  op.getMap(), coords, barrier, operands);
    emitElected(b, text, operands);
  };
  auto numberType = VectorType::get(kGatheredRows, b.getI32Type());
  Value numbers = kernel.buffers.lookup(op.getRows()).base;
  Value base = kernel.buffers.lookup(op.getDest()).base;
  int64_t together = ahead * kGatheredRows;
  if (rows % together != 0)
    together = kGatheredRows;
  auto loop =
      scf::ForOp::create(b, constant(0), constant(rows), constant(together));
  b.setInsertionPoint(loop.getBody()->getTerminator());
  Value row = loop.getInductionVar();
  Value place =
      shift(numbers,
            arith::MulIOp::create(
                b, arith::AddIOp::create(b, op.getFrom(), row), constant(4)));
  SmallVector<Value> read;
  for (int64_t first = 0; first < together; first += kGatheredRows)
    read.push_back(LLVM::LoadOp::create(
        b, numberType, shift(place, constant(4 * first)), /*alignment=*/16));
  // Engines permute bytes by their address: where rows begin in a span, those
  // of a group do.
  Value dest = shift(base, arith::MulIOp::create(b, row, constant(span)));
  for (auto [group, four] : llvm::enumerate(read)) {
    SmallVector<Value> coords;
    for (int64_t i = kGatheredRows; i-- > 0;)
      coords.push_back(LLVM::ExtractElementOp::create(b, four, constant(i)));
    coords.push_back(op.getColumn());
    Value start = shift(dest, constant(int64_t(group) * kGatheredRows * span));
    if (failed(
            forEachBox(b, op, op.getMap(), coords, op.getDest(), start, copy)))
      return failure();
  }
  return success();
}

template <>
LogicalResult PartitionLowering::lower(TmaStoreOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<Value> coords(op.getCoords());
  BufferValue buffer = kernel.buffers.lookup(op.getSource());
  Value base = buffer.base;
  if (op.getWarpgroups()) {
    // This warpgroup's part of the rows.
    FailureOr<SharedLayout> layout = layoutOf(op, buffer.type);
    FailureOr<int64_t> rows = checkRowParts(op, op.getMap().getType());
    if (failed(layout) || failed(rows))
      return failure();
    auto scale = [&](int64_t factor) {
      return arith::MulIOp::create(b, warpgroup(),
                                   arith::ConstantIntOp::create(b, factor, 32));
    };
    Value &row = coords[coords.size() - 2];
    row = arith::AddIOp::create(b, row, scale(*rows));
    base = LLVM::GEPOp::create(b, base.getType(), b.getI8Type(), base,
                               ValueRange{scale(layout->offset({*rows, 0}))});
  }
  return forEachBox(b, op, op.getMap(), coords, op.getSource(), base,
                    [&](Value pointer, ValueRange coords) {
                      NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(
                          b, op.getMap(), pointer, coords,
                          /*l2CacheHint=*/Value(), NVVM::TMAStoreMode::TILE,
                          /*predicate=*/Value());
                    });
}

template <>
LogicalResult PartitionLowering::lower(TmaCommitOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  NVVM::CpAsyncBulkCommitGroupOp::create(b);
  return success();
}

template <>
LogicalResult PartitionLowering::lower(TmaWaitOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  NVVM::CpAsyncBulkWaitGroupOp::create(
      b, static_cast<uint32_t>(op.getPending()),
      op.getRead() ? b.getUnitAttr() : UnitAttr());
  return success();
}

void lowering::addTmaLowerings(LoweringTable &table) {
  table.addReplaced<TmaPrefetchOp, TmaLoadOp, TmaGatherOp, TmaStoreOp,
                    TmaCommitOp, TmaWaitOp>();
}
