//===- Copies.cpp - Copies between global and shared memory ---------------===//
//
// Both directions walk the same plan: each thread has a list of chunks of rows,
// at constant distances from its first one (docs/Layouts.md, copy plans).
//
//===----------------------------------------------------------------------===//

#include "PartitionLowering.h"
#include "attn/Dialect/Attn/IR/KernelAttrs.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Matchers.h"
#include <numeric>

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

namespace {

/// The chunks that one thread copies, in the order of the plan's steps.
class ChunkEmitter {
public:
  ChunkEmitter(PartitionLowering &partition, Operation *op,
               const ViewValue &view, const BufferValue &buffer,
               const CopyPlan &plan)
      : partition(partition), view(view), buffer(buffer), plan(plan),
        form(threadForm(plan)), b(op->getLoc(), op) {}

  /// What the thread's chunks have in common: computed at the entry, and from
  /// the first row in front of the copy.
  void prepare(Value row);
  /// Calls `visit` for each chunk. With `inBounds` all rows exist.
  void emit(bool inBounds, function_ref<void(ImplicitLocOpBuilder &,
                                             const PartitionLowering::Chunk &)>
                               visit);

private:
  /// The thread's first row and column, at the entry.
  void prepareThread();
  /// Finds out whether the rows that the threads copy in a step always lie in
  /// one page: sets `granule`.
  void findGranule(Value row);
  /// Where the page's rows of a step's granule are, for the thread's first row.
  const PartitionLowering::RowPlace &getGranule(const CopyStep &step);
  /// i1: the chunk of a step exists in global memory; null if it always does.
  Value getExists(const CopyStep &step, bool inBounds);
  Value getGlobal(const CopyStep &step);
  /// The place of a step's row in a scattered view.
  const PartitionLowering::RowPlace &getPlace(const CopyStep &step,
                                              bool inBounds);
  Value getShared(const CopyStep &step);
  Value constant(int64_t value) {
    return arith::ConstantIntOp::create(b, value, 32);
  }
  int64_t elementBytes() const { return plan.chunkBytes / plan.chunkElements; }

  PartitionLowering &partition;
  const ViewValue &view;
  const BufferValue &buffer;
  const CopyPlan &plan;
  AddressForm form;
  ImplicitLocOpBuilder b;
  Value threadRow, threadColumn, dividedOffset;
  /// Rows from a multiple of this many on, counted from the copy's first row,
  /// are in one page, and no step's rows are in two of them; 0 if rows are
  /// found one by one.
  int64_t granule = 0;
  /// The copy's first row, and the address of the thread's part of row 0.
  Value firstRow, threadStart;
  /// The thread's first row among those of the view, and its address.
  Value first, firstAddress;
  llvm::DenseMap<int64_t, Value> rowExists, rowStart;
  llvm::DenseMap<int64_t, PartitionLowering::RowPlace> places, granules;
};

} // namespace

void ChunkEmitter::prepareThread() {
  KernelLowering &kernel = partition.kernel;
  Value thread = partition.threadId();
  std::string key = partition.threadKey() + "copy" +
                    std::to_string(plan.width) + "," +
                    std::to_string(plan.chunkElements);
  Value &row = kernel.entryCache[key + "row"];
  Value &column = kernel.entryCache[key + "column"];
  if (!row) {
    ImplicitLocOpBuilder entry = kernel.entryBuilder();
    Value width = arith::ConstantIntOp::create(entry, plan.width, 32);
    row = arith::DivUIOp::create(entry, thread, width);
    column = arith::MulIOp::create(
        entry, arith::RemUIOp::create(entry, thread, width),
        arith::ConstantIntOp::create(entry, plan.chunkElements, 32));
  }
  threadRow = row;
  threadColumn = column;
  if (!plan.divided)
    return;
  Value &offset = kernel.entryCache[key + "," + std::to_string(plan.rowBytes)];
  if (!offset) {
    ImplicitLocOpBuilder entry = kernel.entryBuilder();
    offset = arith::AddIOp::create(
        entry,
        arith::MulIOp::create(
            entry, threadRow,
            arith::ConstantIntOp::create(entry, plan.rowBytes, 32)),
        arith::MulIOp::create(
            entry, threadColumn,
            arith::ConstantIntOp::create(entry, elementBytes(), 32)));
  }
  dividedOffset = offset;
}

/// A power of two that divides an i32 whatever its parts are.
static int64_t findDivisor(Value value) {
  constexpr int64_t kLargest = int64_t(1) << 30;
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.isZero()
               ? kLargest
               : int64_t(1) << std::min(30u, constant.countr_zero());
  Operation *def = value.getDefiningOp();
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(def))
    return std::min(findDivisor(def->getOperand(0)),
                    findDivisor(def->getOperand(1)));
  if (isa_and_nonnull<arith::MulIOp>(def))
    return std::min(kLargest, findDivisor(def->getOperand(0)) *
                                  findDivisor(def->getOperand(1)));
  return 1;
}

void ChunkEmitter::findGranule(Value row) {
  if (view.page == 0)
    return;
  int64_t rows = plan.activeThreads / plan.width;
  int64_t size = std::gcd(int64_t(view.page), findDivisor(row));
  if (plan.activeThreads % plan.width != 0 || size % rows != 0 ||
      llvm::any_of(plan.steps, [&](const CopyStep &step) {
        return step.rowLimit || step.row % rows != 0;
      }))
    return;
  granule = size;
}

const PartitionLowering::RowPlace &
ChunkEmitter::getGranule(const CopyStep &step) {
  int64_t index = step.row / granule;
  auto [it, inserted] = granules.try_emplace(index);
  if (!inserted)
    return it->second;
  Value start = arith::AddIOp::create(b, firstRow, constant(index * granule));
  // Behind the last row the first entry is looked at, which exists.
  Value exists =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, start, view.rows);
  it->second = partition.placePage(
      b, view, arith::SelectOp::create(b, exists, start, constant(0)),
      threadStart);
  return it->second;
}

void ChunkEmitter::prepare(Value row) {
  prepareThread();
  findGranule(row);
  firstRow = row;
  Value start;
  if (!view.isScattered() || granule != 0)
    start = partition.threadBase(view, threadRow, threadColumn);
  threadStart = start;
  if (static_cast<int64_t>(plan.activeThreads) < 32 * partition.warps) {
    Value active = arith::CmpIOp::create(b, arith::CmpIPredicate::ult,
                                         partition.threadId(),
                                         constant(plan.activeThreads));
    auto branch = scf::IfOp::create(b, active, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  first = arith::AddIOp::create(b, row, threadRow);
  if (!view.isScattered())
    firstAddress = partition.startOf(b, start, view, row);
}

const PartitionLowering::RowPlace &ChunkEmitter::getPlace(const CopyStep &step,
                                                          bool inBounds) {
  auto [it, inserted] = places.try_emplace(step.row);
  // Threads that have no chunk in a step look behind the copy's last row.
  if (inserted)
    it->second = partition.placeRow(
        b, view, arith::AddIOp::create(b, first, constant(step.row)),
        threadColumn, inBounds && !step.rowLimit);
  return it->second;
}

Value ChunkEmitter::getExists(const CopyStep &step, bool inBounds) {
  Value result;
  if (view.isScattered() && granule == 0) {
    result = getPlace(step, inBounds).exists;
  } else if (!inBounds) {
    Value &exists = rowExists[step.row];
    if (!exists)
      exists = arith::CmpIOp::create(
          b, arith::CmpIPredicate::slt,
          arith::AddIOp::create(b, first, constant(step.row)), view.rows);
    result = exists;
  }
  if (granule != 0) {
    Value isThere = getGranule(step).exists;
    result = result ? arith::AndIOp::create(b, result, isThere).getResult()
                    : isThere;
  }
  // Whether a step can run into the padding is decided by the widest column
  // that any thread has in it.
  int64_t lastThreadColumn = (plan.width - 1) * plan.chunkElements;
  int64_t columns = view.type.getColumns();
  if (lastThreadColumn + step.col < columns)
    return result;
  Value inside = arith::CmpIOp::create(
      b, arith::CmpIPredicate::slt, threadColumn, constant(columns - step.col));
  return result ? arith::AndIOp::create(b, result, inside).getResult() : inside;
}

Value ChunkEmitter::getGlobal(const CopyStep &step) {
  Value &row = rowStart[step.row];
  if (!row && granule != 0) {
    row = getGranule(step).address;
    if (int64_t distance = step.row % granule)
      row = LLVM::GEPOp::create(b, row.getType(), b.getI8Type(), row,
                                ValueRange{partition.rowBytes(view, distance)});
  }
  if (!row && view.isScattered())
    row = places.lookup(step.row).address;
  if (!row)
    row = step.row == 0
              ? firstAddress
              : LLVM::GEPOp::create(
                    b, firstAddress.getType(), b.getI8Type(), firstAddress,
                    ValueRange{partition.rowBytes(view, step.row)})
                    .getResult();
  if (step.col == 0)
    return row;
  return LLVM::GEPOp::create(
      b, row.getType(), b.getI8Type(), row,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(step.col * elementBytes())});
}

Value ChunkEmitter::getShared(const CopyStep &step) {
  Type pointer = buffer.base.getType();
  Value offset =
      plan.divided ? dividedOffset : partition.formOffset(form, step.xorConst);
  Value shared = LLVM::GEPOp::create(b, pointer, b.getI8Type(), buffer.base,
                                     ValueRange{offset});
  if (step.addConst == 0)
    return shared;
  return LLVM::GEPOp::create(
      b, pointer, b.getI8Type(), shared,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(step.addConst)});
}

void ChunkEmitter::emit(
    bool inBounds,
    function_ref<void(ImplicitLocOpBuilder &, const PartitionLowering::Chunk &)>
        visit) {
  inBounds |= view.inBounds;
  for (const CopyStep &step : plan.steps) {
    PartitionLowering::Chunk chunk;
    chunk.bytes = plan.chunkBytes;
    chunk.exists = getExists(step, inBounds);
    chunk.global = getGlobal(step);
    chunk.shared = getShared(step);
    OpBuilder::InsertionGuard guard(b);
    if (step.rowLimit) {
      Value inside = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                           threadRow, constant(*step.rowLimit));
      auto branch = scf::IfOp::create(b, inside, /*withElseRegion=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    visit(b, chunk);
  }
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
  ChunkEmitter chunks(*this, op, view, buffer, *plan);
  chunks.prepare(row);
  chunks.emit(inBounds, visit);
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

/// True if another copy to global memory follows in the block.
static bool isFollowedByCopy(CopyOutOp op) {
  return llvm::any_of(
      llvm::make_range(std::next(op->getIterator()), op->getBlock()->end()),
      llvm::IsaPred<CopyOutOp>);
}

template <>
LogicalResult PartitionLowering::lower(CopyOutOp op) {
  LogicalResult status = forEachChunk(
      op, kernel.views.lookup(op.getDest()),
      kernel.buffers.lookup(op.getSource()), op.getRow(), /*inBounds=*/false,
      [](ImplicitLocOpBuilder &b, const Chunk &chunk) {
        Type type = VectorType::get(chunk.bytes / 4, b.getI32Type());
        OpBuilder::InsertionGuard guard(b);
        if (chunk.exists) {
          auto branch =
              scf::IfOp::create(b, chunk.exists, /*withElseRegion=*/false);
          b.setInsertionPointToStart(branch.thenBlock());
        }
        Value loaded = LLVM::LoadOp::create(b, type, chunk.shared, chunk.bytes);
        LLVM::StoreOp::create(b, loaded, chunk.global, chunk.bytes);
      });
  // What says which rows exist is the same for the next columns of a result,
  // and would be kept where there are few registers for it.
  if (succeeded(status) && isPartition &&
      kernel.func->hasAttr(kRenewEntryAttr) && isFollowedByCopy(op))
    kernel.renewEntry(op, isPartition);
  return status;
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

template <>
LogicalResult PartitionLowering::lower(CpAsyncArriveOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  NVVM::CpAsyncMBarrierArriveOp::create(
      b, barrierPointer(b, op.getBarriers(), op.getIndex()), /*noinc=*/true);
  return success();
}

void lowering::addCopyLowerings(LoweringTable &table) {
  table.addReplaced<CpAsyncOp, CpAsyncCommitOp, CpAsyncWaitOp, CpAsyncArriveOp,
                    CopyOutOp>();
}
