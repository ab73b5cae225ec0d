//===- MaterializeScratch.cpp - Shared memory for exchanges ---------------===//
//
// What has to pass between warps goes through a buffer of its own: a layout
// conversion stores the tile and loads it in the other layout; a reduction
// along which warps hold different columns stores one partial row value for
// each of these warps, and every warp loads and reduces all of them.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Layout/Convert.h"
#include "mlir/IR/Remarks.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNMATERIALIZESCRATCHPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {
struct AttnMaterializeScratchPass
    : attn::impl::AttnMaterializeScratchPassBase<AttnMaterializeScratchPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>()) {
      if (failed(materialize(kernel)))
        return signalPassFailure();
      kernel->setAttr(AttnDialect::kSharedClosedAttr,
                      UnitAttr::get(&getContext()));
    }
  }

  LogicalResult materialize(gpu::GPUFuncOp kernel);
  LogicalResult materialize(gpu::GPUFuncOp kernel, ConvertLayoutOp op);
  LogicalResult materialize(gpu::GPUFuncOp kernel, ReduceOp op);
  /// Returns the buffer by which reductions of the partition of `user` pass.
  Value getRows(gpu::GPUFuncOp kernel, Operation *user, BufferType type);

private:
  /// Those of each partition, or of a kernel without.
  llvm::DenseMap<std::pair<Region *, Type>, Value> rowsOf;
};
} // namespace

static RankedTensorType tileType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Reduces two values of each row to one.
static Value combine(OpBuilder &builder, Location loc, ReduceKind kind,
                     Value lhs, Value rhs) {
  switch (kind) {
  case ReduceKind::Add:
    return arith::AddFOp::create(builder, loc, lhs, rhs);
  case ReduceKind::Max:
    return arith::MaxNumFOp::create(builder, loc, lhs, rhs);
  case ReduceKind::Maximum:
    return arith::MaximumFOp::create(builder, loc, lhs, rhs);
  }
  llvm_unreachable("covered switch");
}

/// The span of the rows in which a tile is exchanged: the plan's for elements
/// of 32 bits. Smaller ones move by ldmatrix where that can, which has no
/// conflicts in any span.
static unsigned chooseSpan(const ConversionPlan &plan, RankedTensorType type) {
  constexpr unsigned kWordBits = 32;
  unsigned bits = type.getElementTypeBitWidth(),
           span = plan.scratch.spanBytes();
  bool isAlongRows = plan.scratch.contiguousDim() == 1u;
  return bits >= kWordBits && span != 0 && isAlongRows
             ? span
             : SharedLayout::chooseSpan(type.getShape()[1], bits);
}

LogicalResult AttnMaterializeScratchPass::materialize(gpu::GPUFuncOp kernel,
                                                      ConvertLayoutOp op) {
  RankedTensorType from = tileType(op.getSource()), to = tileType(op);
  auto source = getTileLayout(from);
  if (!source)
    return op.emitOpError("has a source without a layout: ")
           << llvm::toString(source.takeError());
  auto target = getTileLayout(to);
  if (!target)
    return op.emitOpError("has a result without a layout: ")
           << llvm::toString(target.takeError());
  auto plan = planConversion(*source, *target, from.getElementTypeBitWidth());
  if (!plan)
    return op.emitOpError("cannot be carried out: ")
           << llvm::toString(plan.takeError());
  if (plan->kind != ConversionKind::Scratch)
    return success();

  OpBuilder builder(op);
  Location loc = op.getLoc();
  Attribute rows = from.getRank() == 2
                       ? Attribute(SwizzledLayoutAttr::get(
                             &getContext(), chooseSpan(*plan, from)))
                       : Attribute(RowLayoutAttr::get(&getContext()));
  auto type = BufferType::get(&getContext(), from.getShape(),
                              from.getElementType(), rows, MemorySpace::Shared);
  Value buffer =
      AllocOp::create(builder, loc, type, builder.getStringAttr("exchange"),
                      IntegerAttr(), StringAttr());
  LocalStoreOp::create(builder, loc, op.getSource(), buffer);
  Value loaded = LocalLoadOp::create(builder, loc, to, buffer);
  remark::passed(loc, remark::RemarkOpts::name("conversion")
                          .category("attn.materialize-scratch")
                          .function(kernel.getName()))
      << remark::add("a conversion passes through shared memory")
      << remark::metric("bytes", llvm::cantFail(type.getSlotBytes()))
      << remark::metric("wavefronts", plan->wavefronts);
  op.replaceAllUsesWith(loaded);
  op.erase();
  ++numConversions;
  return success();
}

Value AttnMaterializeScratchPass::getRows(gpu::GPUFuncOp kernel,
                                          Operation *user, BufferType type) {
  auto [partitions, index] = getPartition(user);
  Region &home = partitions ? partitions->getRegion(index) : kernel.getBody();
  Value &rows = rowsOf[{&home, type}];
  if (!rows) {
    OpBuilder builder = OpBuilder::atBlockBegin(&home.front());
    rows = AllocOp::create(builder, user->getLoc(), type,
                           builder.getStringAttr("rows"), IntegerAttr(),
                           StringAttr());
  }
  return rows;
}

LogicalResult AttnMaterializeScratchPass::materialize(gpu::GPUFuncOp kernel,
                                                      ReduceOp op) {
  if (op.getPartial())
    return success();
  RankedTensorType type = tileType(op.getSource());
  auto layout = getTileLayout(type);
  if (!layout)
    return op.emitOpError("has a source without a layout: ")
           << llvm::toString(layout.takeError());
  if (layout->warpBitsAlong(1).empty())
    return success();
  // Where no other lanes have columns each warp has one value of a row.
  int64_t warps = int64_t(1) << layout->warpBitsAlong(1).size();
  auto slice = dyn_cast<SliceLayoutAttr>(tileType(op).getEncoding());
  if (!slice || !layout->laneBitsAlong(1).empty())
    return op.emitOpError("expected the columns of a row in one warp, got ")
           << warps << " warps in " << type;

  OpBuilder builder(op);
  Location loc = op.getLoc();
  int64_t rows = type.getShape()[0];
  auto partial = RankedTensorType::get(
      {rows, warps}, type.getElementType(),
      PartialLayoutAttr::get(&getContext(), slice.getParent()));
  Value own = op.getSource();
  if (own.getType() != partial)
    own = ReduceOp::create(builder, loc, partial, op.getKind(), own,
                           /*partial=*/true);
  Attribute plain = RowLayoutAttr::get(&getContext());
  auto makeType = [&](ArrayRef<int64_t> shape, Attribute memory) {
    return BufferType::get(&getContext(), shape, type.getElementType(), memory,
                           MemorySpace::Shared);
  };
  // The rows' values of each warp lie together.
  BufferType all = makeType({warps, 1, rows}, plain);
  Value buffer = getRows(kernel, op, all);
  Value turned = ReinterpretOp::create(
      builder, loc,
      makeType({rows, warps}, TransposedLayoutAttr::get(&getContext(), plain)),
      buffer);
  LocalStoreOp::create(builder, loc, own, turned);
  Value result;
  for (int64_t warp = 0; warp < warps; ++warp) {
    Value index = arith::ConstantIntOp::create(builder, loc, warp, 32);
    Value slot = SlotOp::create(builder, loc, makeType({1, rows}, plain),
                                buffer, index, /*distance=*/IntegerAttr());
    slot = ReinterpretOp::create(builder, loc, makeType({rows}, plain), slot);
    Value part = LocalLoadOp::create(builder, loc, op.getType(), slot);
    result = result ? combine(builder, loc, op.getKind(), result, part) : part;
  }
  remark::passed(loc, remark::RemarkOpts::name("reduction")
                          .category("attn.materialize-scratch")
                          .function(kernel.getName()))
      << remark::add("a reduction passes through shared memory")
      << remark::metric("bytes", llvm::cantFail(all.getSlotBytes()) * warps);
  op.replaceAllUsesWith(result);
  op.erase();
  return success();
}

LogicalResult AttnMaterializeScratchPass::materialize(gpu::GPUFuncOp kernel) {
  SmallVector<ConvertLayoutOp> conversions;
  SmallVector<ReduceOp> reductions;
  rowsOf.clear();
  kernel.walk([&](Operation *op) {
    if (auto conversion = dyn_cast<ConvertLayoutOp>(op))
      conversions.push_back(conversion);
    if (auto reduction = dyn_cast<ReduceOp>(op))
      reductions.push_back(reduction);
  });
  for (ConvertLayoutOp op : conversions)
    if (failed(materialize(kernel, op)))
      return failure();
  for (ReduceOp op : reductions)
    if (failed(materialize(kernel, op)))
      return failure();
  return success();
}
