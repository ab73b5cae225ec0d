//===- KernelContext.cpp - The kernel that a schedule fills ---------------===//

#include "attn/Schedule/Core/KernelContext.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::attn;

/// The tensors of an attention's launch, in parameter order. Values that are
/// columns of the keys are no tensor of their own.
static SmallVector<TensorFacts> collectTensors(const ProblemFacts &facts) {
  SmallVector<TensorFacts> tensors;
  for (const TensorFacts *tensor : {&facts.q,          &facts.k,
                                    &facts.v,          &facts.o,
                                    &facts.lse,        &facts.mergedO,
                                    &facts.mergedLse,  &facts.mergedScales,
                                    &facts.sinks,      &facts.cuSeqlensQ,
                                    &facts.cuSeqlensK, &facts.qDescale,
                                    &facts.kDescale,   &facts.vDescale,
                                    &facts.pageTable,  &facts.pageIndptr,
                                    &facts.kvLengths,  &facts.initO,
                                    &facts.initLse,    &facts.kScales,
                                    &facts.vScales,    &facts.kRope,
                                    &facts.qRope,      &facts.oScales,
                                    &facts.work})
    if (*tensor && (!facts.isLatent() || tensor != &facts.v))
      tensors.push_back(*tensor);
  llvm::append_range(tensors, facts.captures);
  return tensors;
}

std::pair<TensorFacts, int64_t> attn::getDealtBatch(const ProblemFacts &facts) {
  return {facts.kvLengths, facts.kvSplits};
}

KernelContext::KernelContext(const ProblemFacts &facts, const TargetRow &target,
                             Location loc)
    : KernelFrame(target, loc, collectTensors(facts), facts.scalars),
      facts(facts) {
  collectDescriptorArgs();
}

void KernelContext::collectDescriptorArgs() {
  addSize("q", 1, facts.heads);
  addSize("k", 1, facts.kvHeads);
  if (!facts.varlen)
    addSize("q", 2, facts.queries);
  if (!facts.varlen && !facts.isPaged())
    addSize("k", 2, facts.keys);
  if (facts.isPaged()) {
    addSize("k", 0, facts.pages);
    // Entries of the list, or of a sequence's row.
    unsigned dim = facts.pageIndptr ? 0 : 1;
    addSize("page_table", dim, facts.pageTable.shape[dim]);
  }
  // Partial results have their run in front of the batch.
  auto isPartial = [&](const TensorFacts &tensor) {
    return facts.kvSplits && tensor.written;
  };
  for (auto [index, tensor] : llvm::enumerate(tensors))
    for (auto [dim, stride] : llvm::enumerate(tensor.strides)) {
      // Packed sequences have batch 1: its stride is never used. Pools have
      // pages in its place.
      bool isPool =
          facts.isPaged() &&
          llvm::is_contained({"k", "v", "k_scales", "v_scales", "k_rope"},
                             StringRef(tensor.name));
      bool isBatch = facts.varlen && !isPool &&
                     dim == (isPartial(tensor) ? 1 : 0) &&
                     tensor.shape.size() >= 3 &&
                     index < tensors.size() - facts.captures.size();
      if (ShapedType::isDynamic(stride) && !isBatch)
        addStride(index, dim);
    }
}

Value KernelContext::getBatch() {
  if (!ShapedType::isDynamic(facts.batch))
    return i32(facts.batch);
  if (!facts.varlen)
    return getSize("q", 0);
  // They start and end at one number more than there are of them.
  return b.createOrFold<arith::SubIOp>(getSize("cu_seqlens_q", 0), i32(1));
}
Value KernelContext::getHeads() { return getExtent({{"q", 1}}, facts.heads); }
Value KernelContext::getKVHeads() {
  return getExtent({{"k", 1}}, facts.kvHeads);
}
Value KernelContext::getQueries() {
  return getExtent({{"q", 2}}, facts.queries);
}
Value KernelContext::getLengths() { return getPointer("kv_lengths"); }
Value KernelContext::getKeys() { return getExtent({{"k", 2}}, facts.keys); }

Value KernelContext::loadMemRef(ImplicitLocOpBuilder &lb,
                                const TensorFacts &tensor, ValueRange indices,
                                Type type) {
  Type i64Type = lb.getI64Type();
  Value offset;
  for (auto [dim, index] : llvm::enumerate(indices)) {
    Value wide = arith::IndexCastOp::create(lb, i64Type, index);
    if (tensor.strides[dim] != 1) {
      Value stride =
          ShapedType::isDynamic(tensor.strides[dim])
              ? getStride(tensor.name, dim)
              : arith::ConstantIntOp::create(lb, tensor.strides[dim], 64)
                    .getResult();
      wide = arith::MulIOp::create(lb, wide, stride);
    }
    offset =
        offset ? arith::AddIOp::create(lb, offset, wide).getResult() : wide;
  }
  Value address = getPointer(tensor.name);
  if (offset)
    address = LLVM::GEPOp::create(lb, address.getType(), type, address,
                                  ValueRange{offset});
  // An i1 of a memref is a byte of memory.
  if (type.isInteger(1)) {
    Value byte = LLVM::LoadOp::create(lb, lb.getI8Type(), address, 1);
    Value zero = arith::ConstantIntOp::create(lb, 0, 8);
    return arith::CmpIOp::create(lb, arith::CmpIPredicate::ne, byte, zero);
  }
  return LLVM::LoadOp::create(lb, type, address,
                              type.getIntOrFloatBitWidth() / 8);
}

Value KernelContext::inlineRegion(OpBuilder &builder, Region &region,
                                  ValueRange arguments) {
  SmallVector<Value> results = inlineResults(builder, region, arguments);
  return results.empty() ? Value() : results.front();
}

SmallVector<Value> KernelContext::inlineResults(OpBuilder &builder,
                                                Region &region,
                                                ValueRange arguments) {
  ImplicitLocOpBuilder lb(b.getLoc(), builder);
  IRMapping mapping;
  Block &block = region.front();
  mapping.map(block.getArguments(), arguments);
  for (auto [outer, parameter] : llvm::zip(facts.scalars, getScalars())) {
    Value value = parameter;
    if (outer.getType().isIndex())
      value = arith::IndexCastOp::create(lb, outer.getType(), value);
    mapping.map(outer, value);
  }
  // Constants from outside are cloned, since the kernel captures nothing.
  auto cloneConstants = [&](Operation *op) {
    for (Value operand : op->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (def && !mapping.contains(operand) &&
          !region.isAncestor(def->getParentRegion()) &&
          def->hasTrait<OpTrait::ConstantLike>())
        lb.clone(*def, mapping);
    }
  };
  for (Operation &op : block.without_terminator()) {
    op.walk(cloneConstants);
    auto load = dyn_cast<memref::LoadOp>(op);
    if (!load) {
      bool nestedLoad = false;
      op.walk([&](memref::LoadOp) { nestedLoad = true; });
      if (nestedLoad || op.getNumRegions() != 0) {
        op.emitOpError("expected operations without regions in the kernel's "
                       "score_mod and mask_mod");
        return {};
      }
      if (auto effects = dyn_cast<MemoryEffectOpInterface>(op);
          effects && !effects.hasNoEffect()) {
        op.emitOpError("expected memory to be read by memref.load only");
        return {};
      }
      lb.clone(op, mapping);
      continue;
    }
    const TensorFacts *tensor =
        llvm::find_if(facts.captures, [&](const TensorFacts &t) {
          return t.value == load.getMemRef();
        });
    if (tensor == facts.captures.end()) {
      op.emitOpError("expected a read of a memref from outside the attention");
      return {};
    }
    lb.setLoc(op.getLoc());
    SmallVector<Value> indices;
    for (Value index : load.getIndices())
      indices.push_back(mapping.lookup(index));
    mapping.map(load.getResult(),
                loadMemRef(lb, *tensor, indices, load.getType()));
  }
  Operation *yield = block.getTerminator();
  cloneConstants(yield);
  return llvm::map_to_vector(yield->getOperands(), [&](Value value) {
    return mapping.lookupOrDefault(value);
  });
}
