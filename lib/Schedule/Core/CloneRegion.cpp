//===- CloneRegion.cpp - Regions of problems in kernels -------------------===//

#include "attn/Schedule/Core/KernelFrame.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::attn;

const TensorFacts *KernelFrame::findCapture(Operation *user, Value memref) {
  // Captures are the last tensors; an operand may be one, too.
  for (const TensorFacts &tensor : llvm::reverse(tensors))
    if (tensor.value == memref)
      return &tensor;
  user->emitOpError("expected a read of a memref from outside the attention");
  return nullptr;
}

Value KernelFrame::getElementAddress(ImplicitLocOpBuilder &lb,
                                     const TensorFacts &tensor,
                                     ValueRange indices, Type type) {
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
  return address;
}

Value KernelFrame::loadMemRef(ImplicitLocOpBuilder &lb,
                              const TensorFacts &tensor, ValueRange indices,
                              Type type) {
  Value address = getElementAddress(lb, tensor, indices, type);
  // An i1 of a memref is a byte of memory.
  if (type.isInteger(1)) {
    Value byte = LLVM::LoadOp::create(lb, lb.getI8Type(), address, 1);
    Value zero = arith::ConstantIntOp::create(lb, 0, 8);
    return arith::CmpIOp::create(lb, arith::CmpIPredicate::ne, byte, zero);
  }
  return LLVM::LoadOp::create(lb, type, address,
                              type.getIntOrFloatBitWidth() / 8);
}

SmallVector<Value> KernelFrame::cloneRegion(OpBuilder &builder, Region &region,
                                            ValueRange arguments,
                                            FindKeyInliner findKey) {
  ImplicitLocOpBuilder lb(b.getLoc(), builder);
  IRMapping mapping;
  Block &block = region.front();
  mapping.map(block.getArguments(), arguments);
  for (auto [outer, parameter] : llvm::zip(hostScalars, getScalars())) {
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
    if (auto find = dyn_cast<FindKeyOp>(op); find && findKey) {
      Value key = findKey(lb, find, mapping);
      if (!key)
        return {};
      mapping.map(find.getKey(), key);
      continue;
    }
    auto load = dyn_cast<memref::LoadOp>(op);
    if (!load) {
      bool nestedLoad = false;
      op.walk([&](memref::LoadOp) { nestedLoad = true; });
      if (nestedLoad || op.getNumRegions() != 0) {
        op.emitOpError("expected operations without regions in the kernel's "
                       "score_mod, mask_mod and out_mod");
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
    const TensorFacts *tensor = findCapture(&op, load.getMemRef());
    if (!tensor)
      return {};
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
