//===- Copies.cpp - Copies between global and shared memory ---------------===//
//
// Both directions walk the same plan: each thread has a list of chunks of rows,
// at constant distances from its first one (docs/Layouts.md, copy plans).
//
//===----------------------------------------------------------------------===//

#include "PartitionLowering.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

/// The shared-memory part of a plan as an address form over the thread index:
/// five lane bits, then warp bits.
static AddressForm threadForm(const CopyPlan &plan) {
  AddressForm form;
  auto split = [](ArrayRef<int64_t> bits, SmallVectorImpl<int64_t> &lanes,
                  SmallVectorImpl<int64_t> &warps) {
    lanes.assign(TileLayout::laneBits, 0);
    for (auto [bit, constant] : llvm::enumerate(bits)) {
      if (bit < TileLayout::laneBits)
        lanes[bit] = constant;
      else
        warps.push_back(constant);
    }
  };
  split(plan.threadXor, form.laneXor, form.warpXor);
  split(plan.threadAdd, form.laneAdd, form.warpAdd);
  return form;
}

/// The largest chunk, up to 16 bytes, that row starts and lengths allow.
static unsigned chunkBytesOf(const ViewValue &view) {
  int64_t elementBytes = view.type.getElementType().getIntOrFloatBitWidth() / 8;
  int64_t rowBytes = view.type.getColumns() * elementBytes;
  int64_t bytes = std::min<int64_t>(16, view.alignment);
  while (bytes > 1 && rowBytes % bytes != 0)
    bytes /= 2;
  return bytes;
}

LogicalResult PartitionLowering::forEachChunk(
    Operation *op, const ViewValue &view, const BufferValue &buffer, Value row,
    bool inBounds,
    function_ref<void(ImplicitLocOpBuilder &, const Chunk &)> visit) {
  FailureOr<SharedLayout> memory = layoutOf(op, buffer.type);
  if (failed(memory))
    return failure();
  unsigned bytes = chunkBytesOf(view);
  if (bytes < 4)
    return op->emitOpError("expected rows aligned to at least 4 bytes, got ")
           << bytes;
  llvm::Expected<CopyPlan> plan = planCopy(*memory, 32 * warps, bytes);
  if (!plan)
    return op->emitOpError() << llvm::toString(plan.takeError());
  int64_t elementBytes = plan->chunkBytes / plan->chunkElements;

  // The thread's part, at the entry.
  Value thread = threadId();
  std::string key = threadKey() + "copy" + std::to_string(plan->width) + "," +
                    std::to_string(plan->chunkElements);
  Value &threadRow = kernel.entryCache[key + "row"];
  Value &threadColumn = kernel.entryCache[key + "column"];
  if (!threadRow) {
    ImplicitLocOpBuilder b = kernel.entryBuilder();
    Value width = arith::ConstantIntOp::create(b, plan->width, 32);
    threadRow = arith::DivUIOp::create(b, thread, width);
    threadColumn = arith::MulIOp::create(
        b, arith::RemUIOp::create(b, thread, width),
        arith::ConstantIntOp::create(b, plan->chunkElements, 32));
  }
  Value &dividedOffset =
      kernel.entryCache[key + "," + std::to_string(plan->rowBytes)];
  if (plan->divided && !dividedOffset) {
    ImplicitLocOpBuilder b = kernel.entryBuilder();
    dividedOffset = arith::AddIOp::create(
        b,
        arith::MulIOp::create(
            b, threadRow, arith::ConstantIntOp::create(b, plan->rowBytes, 32)),
        arith::MulIOp::create(
            b, threadColumn,
            arith::ConstantIntOp::create(b, elementBytes, 32)));
  }
  AddressForm form = threadForm(*plan);
  Value start = threadBase(view, threadRow, threadColumn);

  ImplicitLocOpBuilder b(op->getLoc(), op);
  if (static_cast<int64_t>(plan->activeThreads) < 32 * warps) {
    Value active = arith::CmpIOp::create(
        b, arith::CmpIPredicate::ult, thread,
        arith::ConstantIntOp::create(b, plan->activeThreads, 32));
    auto branch = scf::IfOp::create(b, active, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  Value threadFirst = arith::AddIOp::create(b, row, threadRow);
  Value first =
      LLVM::GEPOp::create(b, start.getType(), b.getI8Type(), start,
                          ValueRange{arith::MulIOp::create(
                              b, arith::ExtSIOp::create(b, b.getI64Type(), row),
                              rowBytes(view, 1))});
  // Whether a step can run into the padding is decided by the widest column
  // that any thread has in it.
  int64_t lastThreadColumn = (plan->width - 1) * plan->chunkElements;
  int64_t columns = view.type.getColumns();
  llvm::DenseMap<int64_t, Value> rowExists, rowStart;
  for (const CopyStep &step : plan->steps) {
    Chunk chunk;
    chunk.bytes = plan->chunkBytes;
    if (!inBounds) {
      Value &exists = rowExists[step.row];
      if (!exists)
        exists = arith::CmpIOp::create(
            b, arith::CmpIPredicate::slt,
            arith::AddIOp::create(
                b, threadFirst, arith::ConstantIntOp::create(b, step.row, 32)),
            view.rows);
      chunk.exists = exists;
    }
    if (lastThreadColumn + step.col >= columns) {
      Value inside = arith::CmpIOp::create(
          b, arith::CmpIPredicate::slt, threadColumn,
          arith::ConstantIntOp::create(b, columns - step.col, 32));
      chunk.exists =
          chunk.exists
              ? arith::AndIOp::create(b, chunk.exists, inside).getResult()
              : inside;
    }
    Value &rowPointer = rowStart[step.row];
    if (!rowPointer)
      rowPointer =
          step.row == 0
              ? first
              : LLVM::GEPOp::create(b, start.getType(), b.getI8Type(), first,
                                    ValueRange{rowBytes(view, step.row)})
                    .getResult();
    chunk.global = rowPointer;
    if (step.col != 0)
      chunk.global =
          LLVM::GEPOp::create(b, start.getType(), b.getI8Type(), rowPointer,
                              ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(
                                  step.col * elementBytes)});
    Value offset =
        plan->divided ? dividedOffset : formOffset(form, step.xorConst);
    chunk.shared = LLVM::GEPOp::create(b, buffer.base.getType(), b.getI8Type(),
                                       buffer.base, ValueRange{offset});
    if (step.addConst != 0)
      chunk.shared = LLVM::GEPOp::create(
          b, buffer.base.getType(), b.getI8Type(), chunk.shared,
          ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(step.addConst)});
    OpBuilder::InsertionGuard guard(b);
    if (step.rowLimit) {
      Value inside = arith::CmpIOp::create(
          b, arith::CmpIPredicate::slt, threadRow,
          arith::ConstantIntOp::create(b, *step.rowLimit, 32));
      auto branch = scf::IfOp::create(b, inside, /*withElseRegion=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    visit(b, chunk);
  }
  return success();
}

template <>
LogicalResult PartitionLowering::lower(CpAsyncOp op) {
  return forEachChunk(
      op, kernel.views.lookup(op.getSource()),
      kernel.buffers.lookup(op.getDest()), op.getRow(), op.getInBounds(),
      [](ImplicitLocOpBuilder &b, const Chunk &chunk) {
        // A source size of zero writes zeros and reads nothing.
        Value size;
        if (chunk.exists)
          size = arith::SelectOp::create(
              b, chunk.exists, arith::ConstantIntOp::create(b, chunk.bytes, 32),
              arith::ConstantIntOp::create(b, 0, 32));
        NVVM::CpAsyncOp::create(b, chunk.shared, chunk.global, chunk.bytes,
                                chunk.bytes == 16
                                    ? NVVM::LoadCacheModifierKind::CG
                                    : NVVM::LoadCacheModifierKind::CA,
                                size);
      });
}

template <>
LogicalResult PartitionLowering::lower(CopyOutOp op) {
  return forEachChunk(
      op, kernel.views.lookup(op.getDest()),
      kernel.buffers.lookup(op.getSource()), op.getRow(), /*inBounds=*/false,
      [](ImplicitLocOpBuilder &b, const Chunk &chunk) {
        Type type = VectorType::get(chunk.bytes / 4, b.getI32Type());
        auto branch =
            scf::IfOp::create(b, chunk.exists, /*withElseRegion=*/false);
        b.setInsertionPointToStart(branch.thenBlock());
        Value loaded = LLVM::LoadOp::create(b, type, chunk.shared, chunk.bytes);
        LLVM::StoreOp::create(b, loaded, chunk.global, chunk.bytes);
        b.setInsertionPointAfter(branch);
      });
}

template <>
LogicalResult PartitionLowering::lower(CpAsyncCommitOp op) {
  OpBuilder b(op);
  NVVM::CpAsyncCommitGroupOp::create(b, op.getLoc());
  return success();
}

template <>
LogicalResult PartitionLowering::lower(CpAsyncWaitOp op) {
  OpBuilder b(op);
  NVVM::CpAsyncWaitGroupOp::create(b, op.getLoc(), op.getPending());
  return success();
}

void lowering::addCopyLowerings(LoweringTable &table) {
  table.addReplaced<CpAsyncOp, CpAsyncCommitOp, CpAsyncWaitOp, CopyOutOp>();
}
