//===- Tmem.cpp - Tensor memory: allocation, loads and stores -------------===//
//
// A buffer is an address, lane 0 of its first column. Loads leave ordinary
// values behind that only the wait gives back, as tied operands, so that LLVM
// cannot move a use above it. Constant parts of addresses stand in the
// instructions.
//
//===----------------------------------------------------------------------===//

#include "PartitionLowering.h"
#include "Statement.h"
#include "attn/Dialect/Attn/IR/KernelAttrs.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

/// Bits of the lane in an address (PTX ISA, "Tensor Memory Addressing").
static constexpr unsigned kLaneShift = 16;

//===----------------------------------------------------------------------===//
// Allocation and views
//===----------------------------------------------------------------------===//

/// Runs `emit` in the CTA's first warp, for an op of it or of its pair.
static void inFirstWarp(
    ImplicitLocOpBuilder &b, Value warp, bool isOfPair,
    function_ref<void(ImplicitLocOpBuilder &, NVVM::CTAGroupKindAttr)> emit) {
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, warp,
                                        arith::ConstantIntOp::create(b, 0, 32));
  auto branch = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  ImplicitLocOpBuilder inner(b.getLoc(), branch.getThenBodyBuilder());
  emit(inner, NVVM::CTAGroupKindAttr::get(
                  b.getContext(), isOfPair ? NVVM::CTAGroupKind::CTA_2
                                           : NVVM::CTAGroupKind::CTA_1));
}

static void fenceTensor(ImplicitLocOpBuilder &b, TensorFence kind) {
  NVVM::Tcgen05FenceOp::create(b,
                               kind == TensorFence::Before
                                   ? NVVM::Tcgen05FenceKind::BEFORE_THREAD_SYNC
                                   : NVVM::Tcgen05FenceKind::AFTER_THREAD_SYNC);
}

template <>
LogicalResult PartitionLowering::lower(TmemReserveOp op) {
  if (kernel.tmemBase)
    return op.emitOpError("expected one attn.tmem.reserve in a kernel, got "
                          "another one");
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value slot = kernel.buffers.lookup(op.getSlot()).base;
  inFirstWarp(b, kernel.uniformWarp(), op.getPair(),
              [&](ImplicitLocOpBuilder &inner, NVVM::CTAGroupKindAttr group) {
                Value columns =
                    arith::ConstantIntOp::create(inner, op.getColumns(), 32);
                NVVM::Tcgen05AllocOp::create(inner, slot, columns, group);
                NVVM::Tcgen05RelinquishAllocPermitOp::create(inner, group);
              });
  gpu::BarrierOp::create(b);
  // All columns start at the first one.
  if (op.getColumns() == kTmemColumns)
    kernel.tmemBase = arith::ConstantIntOp::create(b, 0, 32);
  else
    kernel.tmemBase = LLVM::LoadOp::create(b, b.getI32Type(), slot);
  op.getBase().replaceAllUsesWith(kernel.tmemBase);
  return success();
}

template <>
LogicalResult PartitionLowering::lower(TmemDeallocOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  fenceTensor(b, TensorFence::Before);
  auto barrier = gpu::BarrierOp::create(b);
  // Which warp is the first one would else be kept in all partitions.
  if (kernel.func->hasAttr(kRenewEntryAttr))
    kernel.renewEntry(barrier, /*inLoops=*/false);
  fenceTensor(b, TensorFence::After);
  auto pointer = LLVM::LLVMPointerType::get(
      b.getContext(), unsigned(NVVM::NVVMMemorySpace::Tensor));
  inFirstWarp(b, kernel.uniformWarp(), op.getPair(),
              [&](ImplicitLocOpBuilder &inner, NVVM::CTAGroupKindAttr group) {
                Value columns =
                    arith::ConstantIntOp::create(inner, op.getColumns(), 32);
                Value base =
                    LLVM::IntToPtrOp::create(inner, pointer, op.getBase());
                NVVM::Tcgen05DeallocOp::create(inner, base, columns, group);
              });
  return success();
}

template <>
LogicalResult PartitionLowering::lower(TmemAllocOp op) {
  if (!op.getColumn() || !kernel.tmemBase)
    return op.emitOpError("expected a column and an attn.tmem.reserve in front "
                          "of it; attn-allocate-tmem makes them");
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value base = arith::AddIOp::create(
      b, kernel.tmemBase, arith::ConstantIntOp::create(b, *op.getColumn(), 32));
  kernel.buffers[op.getResult()] = {base, op.getType(), base, Value(), 0};
  return success();
}

LogicalResult PartitionLowering::lowerTmemView(Operation *op, Value source,
                                               BufferType type,
                                               OpFoldResult columns) {
  BufferValue view = kernel.buffers.lookup(source);
  ImplicitLocOpBuilder b(op->getLoc(), op);
  Value offset = dyn_cast<Value>(columns);
  if (!offset)
    offset = arith::ConstantIntOp::create(b, *getConstantIntValue(columns), 32);
  view.base = arith::AddIOp::create(b, view.base, offset);
  view.type = type;
  kernel.buffers[op->getResult(0)] = view;
  return success();
}

template <>
LogicalResult PartitionLowering::lower(TmemFieldOp op) {
  return lowerTmemView(op, op.getSource(), op.getType(),
                       IntegerAttr::get(IntegerType::get(op.getContext(), 64),
                                        op.findField().getFirst()));
}

template <>
LogicalResult PartitionLowering::lower(TmemSliceOp op) {
  auto layout = llvm::cantFail(getTensorMemoryLayout(op.getSource().getType()));
  return lowerTmemView(op, op.getSource(), op.getType(),
                       IntegerAttr::get(IntegerType::get(op.getContext(), 64),
                                        layout.cell(0, op.getColumn()).column));
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

Value PartitionLowering::warpLanes(ImplicitLocOpBuilder &b,
                                   const BufferValue &buffer) {
  Value &lanes = kernel.entryCache["tensor memory lanes"];
  if (!lanes) {
    Value own = kernel.uniformWarp();
    ImplicitLocOpBuilder entry = kernel.entryBuilder();
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIntOp::create(entry, value, 32);
    };
    Value part = arith::AndIOp::create(entry, own, constant(3));
    lanes = arith::MulIOp::create(entry, part,
                                  constant(kTmemWarpLanes << kLaneShift));
  }
  return arith::AddIOp::create(b, buffer.base, lanes);
}

/// Halves accesses of more than `most` registers, each of which is a column.
static void halveAccesses(TmemPlan &plan, size_t most) {
  SmallVector<TmemAccess> halves;
  for (TmemAccess &access : plan.accesses) {
    if (access.words.size() <= most) {
      halves.push_back(std::move(access));
      continue;
    }
    access.count /= 2;
    TmemAccess behind = access;
    behind.column += access.count;
    access.words.truncate(access.count);
    behind.words.erase(behind.words.begin(),
                       behind.words.begin() + access.count);
    halves.append({std::move(access), std::move(behind)});
  }
  plan.accesses = std::move(halves);
}

/// The plan of a transfer between a tile and a buffer, in instructions of as
/// many registers as the kernel's may have.
static FailureOr<TmemPlan> planTransfer(Operation *op, const TileLayout &tile,
                                        BufferType buffer,
                                        gpu::GPUFuncOp kernel) {
  llvm::Expected<TensorMemoryLayout> memory = getTensorMemoryLayout(buffer);
  if (!memory) {
    op->emitOpError() << llvm::toString(memory.takeError());
    return failure();
  }
  llvm::Expected<TmemPlan> plan = planTmemAccess(tile, *memory);
  if (!plan) {
    op->emitOpError() << llvm::toString(plan.takeError());
    return failure();
  }
  if (plan->shape == TmemShape::S32x32b)
    halveAccesses(*plan, getMostInstructionRegisters(kernel));
  return std::move(*plan);
}

/// "[$3 + 1048608]", and the immediate that 16x32bx2 takes.
static std::string formatAddress(const std::string &base, const TmemPlan &plan,
                                 const TmemAccess &access) {
  std::string text = "[" + base;
  if (int64_t offset = (access.lane << kLaneShift) + access.column)
    text += "+" + std::to_string(offset);
  text += "]";
  if (plan.split != 0)
    text += ", " + std::to_string(plan.split);
  return text;
}

/// "32x32b.x64".
static std::string formatShape(const TmemPlan &plan, const TmemAccess &access) {
  return stringifyTmemShape(plan.shape).str() + ".x" +
         std::to_string(access.count);
}

template <>
LogicalResult PartitionLowering::lower(TmemLoadOp op) {
  FailureOr<TileLayout> layout = layoutOf(op, op.getResult().getType());
  BufferValue buffer = kernel.buffers.lookup(op.getSource());
  if (failed(layout))
    return failure();
  FailureOr<TmemPlan> plan =
      planTransfer(op, *layout, buffer.type, kernel.func);
  if (failed(plan))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value lanes = warpLanes(b, buffer);
  Type type = op.getResult().getType().getElementType();
  SmallVector<Value> words(layout->numRegisters()), rows;
  for (const TmemAccess &access : plan->accesses) {
    Statement statement;
    unsigned count = access.words.size();
    statement.results(
        SmallVector<Type>(op.getReduce() ? count + 1 : count, type));
    SmallVector<std::string> names;
    for (unsigned i = 0; i < count; ++i)
      names.push_back(statement.result(i));
    std::string reduced, kind = ".b32 ";
    if (op.getReduce()) {
      reduced = ", " + statement.result(count);
      kind =
          op.getReduce() == ReduceKind::Maximum ? ".max.NaN.f32 " : ".max.f32 ";
    }
    std::string address = formatAddress(statement.input(lanes), *plan, access);
    statement.text = "tcgen05.ld" + std::string(op.getReduce() ? ".red" : "") +
                     ".sync.aligned." + formatShape(*plan, access) + kind +
                     bracket(names) + reduced + ", " + address + ";";
    SmallVector<Value> values = statement.create(b);
    for (auto [word, value] : llvm::zip(access.words, values))
      words[word] = value;
    if (op.getReduce())
      rows.push_back(values.back());
  }
  setTile(op.getResult(), *layout, words);
  if (op.getReduce()) {
    FailureOr<TileLayout> rowLayout = layoutOf(op, op.getRowValues().getType());
    if (failed(rowLayout))
      return failure();
    // Halves of an instruction have the same rows.
    for (; rows.size() > rowLayout->numRegisters(); rows.pop_back()) {
      Value &row = rows[rows.size() - 2];
      if (op.getReduce() == ReduceKind::Maximum)
        row = arith::MaximumFOp::create(b, row, rows.back());
      else
        row = arith::MaxNumFOp::create(b, row, rows.back());
    }
    setTile(op.getRowValues(), *rowLayout, rows);
  }
  return success();
}

template <>
LogicalResult PartitionLowering::lower(TmemWaitOp op) {
  SmallVector<Value> values;
  SmallVector<TileValue, 1> sources;
  for (Value source : op.getSources()) {
    FailureOr<TileValue> registers = tile(op, source);
    if (failed(registers))
      return failure();
    llvm::append_range(values, registers->values);
    sources.push_back(*registers);
  }
  Statement statement;
  statement.tiedResults(values);
  statement.text = "tcgen05.wait::ld.sync.aligned;";
  ImplicitLocOpBuilder b(op.getLoc(), op);
  ArrayRef<Value> left = values = statement.create(b);
  for (auto [source, result] : llvm::zip(sources, op.getResults())) {
    unsigned count = source.values.size();
    setTile(result, source.layout, SmallVector<Value>(left.take_front(count)));
    left = left.drop_front(count);
  }
  return success();
}

template <>
LogicalResult PartitionLowering::lower(TmemStoreOp op) {
  FailureOr<TileValue> source = tile(op, op.getValue());
  BufferValue buffer = kernel.buffers.lookup(op.getDest());
  if (failed(source))
    return failure();
  FailureOr<TmemPlan> plan =
      planTransfer(op, source->layout, buffer.type, kernel.func);
  if (failed(plan))
    return failure();
  if (plan->elementsPerWord != source->packing)
    return op.emitOpError("expected elements that are kept ")
           << plan->elementsPerWord << " in a register, got "
           << source->elementType;
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value lanes = warpLanes(b, buffer);
  for (const TmemAccess &access : plan->accesses) {
    Statement statement;
    std::string address = formatAddress(statement.input(lanes), *plan, access);
    SmallVector<std::string> names;
    for (unsigned word : access.words) {
      Value value = source->values[word];
      if (source->packing > 1)
        value = LLVM::BitcastOp::create(b, b.getI32Type(), value);
      names.push_back(statement.input(value));
    }
    statement.text = "tcgen05.st.sync.aligned." + formatShape(*plan, access) +
                     ".b32 " + address + ", " + bracket(names) + ";";
    statement.create(b);
  }
  return success();
}

template <>
LogicalResult PartitionLowering::lower(TmemStoreWaitOp op) {
  // As assembly: LLVM takes the instruction to touch nothing that a store does.
  Statement statement;
  statement.text = "tcgen05.wait::st.sync.aligned;";
  ImplicitLocOpBuilder b(op.getLoc(), op);
  statement.create(b);
  return success();
}

template <>
LogicalResult PartitionLowering::lower(Tcgen05FenceOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  fenceTensor(b, op.getKind());
  return success();
}

void lowering::addTmemLowerings(LoweringTable &table) {
  table.addReplaced<TmemReserveOp, TmemDeallocOp, TmemAllocOp, TmemFieldOp,
                    TmemSliceOp, TmemLoadOp, TmemWaitOp, TmemStoreOp,
                    TmemStoreWaitOp, Tcgen05FenceOp>();
}
