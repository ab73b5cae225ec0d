//===- KernelContext.cpp - The kernel that a schedule fills ---------------===//

#include "attn/Schedule/Core/KernelContext.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::attn;

KernelContext::KernelContext(const ProblemFacts &facts, const TargetRow &target,
                             Location loc)
    : facts(facts), target(target), b(loc, loc->getContext()) {
  for (const TensorFacts *tensor :
       {&facts.q, &facts.k, &facts.v, &facts.o, &facts.lse, &facts.sinks,
        &facts.cuSeqlensQ, &facts.cuSeqlensK, &facts.qDescale, &facts.kDescale,
        &facts.vDescale})
    if (*tensor)
      tensors.push_back(*tensor);
  llvm::append_range(tensors, facts.captures);
  collectDescriptorArgs();
}

void KernelContext::collectDescriptorArgs() {
  auto indexOf = [&](StringRef name) -> unsigned {
    return findTensor(name) - tensors.data();
  };
  auto addSize = [&](StringRef name, unsigned dim, int64_t extent) {
    if (ShapedType::isDynamic(extent))
      descriptorArgs.push_back({indexOf(name), dim, /*isStride=*/false});
  };
  addSize("q", 1, facts.heads);
  addSize("k", 1, facts.kvHeads);
  if (!facts.varlen) {
    addSize("q", 2, facts.queries);
    addSize("k", 2, facts.keys);
  }
  for (auto [index, tensor] : llvm::enumerate(tensors))
    for (auto [dim, stride] : llvm::enumerate(tensor.strides)) {
      // Packed sequences have batch 1: its stride is never used.
      bool isBatch = facts.varlen && dim == 0 && tensor.shape.size() >= 3 &&
                     index < tensors.size() - facts.captures.size();
      if (ShapedType::isDynamic(stride) && !isBatch)
        descriptorArgs.push_back(
            {unsigned(index), unsigned(dim), /*isStride=*/true});
    }
}

SmallVector<Type> KernelContext::getParameterTypes() {
  SmallVector<Type> types(
      tensors.size(),
      LLVM::LLVMPointerType::get(b.getContext(),
                                 unsigned(NVVM::NVVMMemorySpace::Global)));
  for (const DescriptorArg &arg : descriptorArgs)
    types.push_back(arg.isStride ? b.getI64Type() : b.getI32Type());
  for (Value scalar : facts.scalars)
    types.push_back(scalar.getType().isIndex() ? b.getI64Type()
                                               : scalar.getType());
  return types;
}

void KernelContext::bindParameters(gpu::GPUFuncOp function) {
  kernel = function;
  ValueRange parameters = kernel.getArguments();
  auto take = [&](SmallVector<Value> &list, size_t count) {
    llvm::append_range(list, parameters.take_front(count));
    parameters = parameters.drop_front(count);
  };
  take(pointers, tensors.size());
  take(descriptors, descriptorArgs.size());
  take(scalars, facts.scalars.size());
}

Value KernelContext::i32(int64_t value) {
  return arith::ConstantIntOp::create(b, value, 32);
}

Value KernelContext::i64(int64_t value) {
  return arith::ConstantIntOp::create(b, value, 64);
}

Value KernelContext::f32(double value) {
  return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
}

const TensorFacts *KernelContext::findTensor(StringRef name) const {
  const auto *it = llvm::find_if(
      tensors, [&](const TensorFacts &tensor) { return tensor.name == name; });
  return it == tensors.end() ? nullptr : it;
}

Value KernelContext::getPointer(StringRef name) {
  return pointers[findTensor(name) - tensors.data()];
}

Value KernelContext::getStride(StringRef name, unsigned dim) {
  const TensorFacts *tensor = findTensor(name);
  if (!ShapedType::isDynamic(tensor->strides[dim]))
    return i64(tensor->strides[dim]);
  unsigned index = tensor - tensors.data();
  for (auto [arg, value] : llvm::zip(descriptorArgs, descriptors))
    if (arg.isStride && arg.tensor == index && arg.dim == dim)
      return value;
  llvm_unreachable("a dynamic stride that is used is a parameter");
}

Value KernelContext::getExtent(
    std::initializer_list<std::pair<StringRef, unsigned>> dims,
    int64_t extent) {
  if (!ShapedType::isDynamic(extent))
    return i32(extent);
  for (auto [name, dim] : dims) {
    unsigned index = findTensor(name) - tensors.data();
    for (auto [arg, value] : llvm::zip(descriptorArgs, descriptors))
      if (!arg.isStride && arg.tensor == index && arg.dim == dim)
        return value;
  }
  llvm_unreachable("a dynamic extent that is used is a parameter");
}

Value KernelContext::getHeads() { return getExtent({{"q", 1}}, facts.heads); }
Value KernelContext::getKVHeads() {
  return getExtent({{"k", 1}}, facts.kvHeads);
}
Value KernelContext::getQueries() {
  return getExtent({{"q", 2}}, facts.queries);
}
Value KernelContext::getRows(StringRef name) {
  const TensorFacts *tensor = findTensor(name);
  int64_t rows = tensor->shape[2];
  unsigned index = tensor - tensors.data();
  bool isKnown = !ShapedType::isDynamic(rows) ||
                 llvm::any_of(descriptorArgs, [&](const DescriptorArg &arg) {
                   return !arg.isStride && arg.tensor == index && arg.dim == 2;
                 });
  if (!isKnown) {
    unsigned position = tensors.size() + descriptorArgs.size();
    LogicalResult inserted = kernel.insertArgument(position, b.getI32Type(),
                                                   /*argAttrs=*/{}, b.getLoc());
    assert(succeeded(inserted) && "kernels take any parameters");
    (void)inserted;
    descriptorArgs.push_back({index, 2, /*isStride=*/false});
    descriptors.push_back(kernel.getArgument(position));
  }
  return getExtent({{name, 2}}, rows);
}
Value KernelContext::getKeys() { return getExtent({{"k", 2}}, facts.keys); }

Value KernelContext::getTensorMap(StringRef name, ArrayRef<int64_t> box,
                                  int64_t swizzle, TensorMapView view) {
  const TensorFacts *tensor = findTensor(name);
  unsigned index = tensor - tensors.data();
  auto type =
      TensorMapType::get(b.getContext(), box, tensor->elementType, swizzle);
  for (auto [arg, value] : llvm::zip(tensorMapArgs, tensorMaps))
    if (arg.tensor == index && arg.type == type && arg.view == view)
      return value;
  unsigned position = kernel.getNumArguments();
  LogicalResult inserted =
      kernel.insertArgument(position, type, /*argAttrs=*/{}, b.getLoc());
  assert(succeeded(inserted) && "kernels take any parameters");
  (void)inserted;
  tensorMapArgs.push_back({index, type, view});
  tensorMaps.push_back(kernel.getArgument(position));
  return tensorMaps.back();
}

Value KernelContext::addWorkspace(WorkspaceArg workspace) {
  unsigned position = kernel.getNumArguments() - tensorMaps.size();
  auto type = LLVM::LLVMPointerType::get(
      b.getContext(), unsigned(NVVM::NVVMMemorySpace::Global));
  LogicalResult inserted =
      kernel.insertArgument(position, type, /*argAttrs=*/{}, b.getLoc());
  assert(succeeded(inserted) && "kernels take any parameters");
  (void)inserted;
  workspaceArgs.push_back(workspace);
  return kernel.getArgument(position);
}

Value KernelContext::widen(Value value) {
  return arith::ExtUIOp::create(b, b.getI64Type(), value);
}

Value KernelContext::loadElement(StringRef name, Value index) {
  const TensorFacts *tensor = findTensor(name);
  Value pointer = getPointer(name);
  Value address = LLVM::GEPOp::create(b, pointer.getType(), tensor->elementType,
                                      pointer, ValueRange{index});
  return LLVM::LoadOp::create(b, tensor->elementType, address,
                              tensor->elementType.getIntOrFloatBitWidth() / 8);
}

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
  ImplicitLocOpBuilder lb(b.getLoc(), builder);
  IRMapping mapping;
  Block &block = region.front();
  mapping.map(block.getArguments(), arguments);
  for (auto [outer, parameter] : llvm::zip(facts.scalars, scalars)) {
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
  return mapping.lookupOrDefault(yield->getOperand(0));
}
