//===- KernelFrame.cpp - A kernel and what its parameters are -------------===//

#include "attn/Schedule/Core/KernelFrame.h"
#include "EmitSize.h"
#include "attn/Launch/LaunchRecord.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

KernelFrame::KernelFrame(const TargetRow &target, Location loc,
                         ArrayRef<TensorFacts> tensors, ValueRange scalars)
    : target(target), b(loc, loc->getContext()), tensors(tensors),
      hostScalars(scalars) {}

void KernelFrame::addSize(StringRef name, unsigned dim, int64_t extent) {
  if (ShapedType::isDynamic(extent))
    descriptorArgs.push_back({unsigned(findTensor(name) - tensors.data()), dim,
                              /*isStride=*/false});
}

void KernelFrame::addStride(unsigned tensor, unsigned dim) {
  descriptorArgs.push_back({tensor, dim, /*isStride=*/true});
}

SmallVector<Type> KernelFrame::getParameterTypes() {
  SmallVector<Type> types(
      tensors.size(),
      LLVM::LLVMPointerType::get(b.getContext(),
                                 unsigned(NVVM::NVVMMemorySpace::Global)));
  for (const DescriptorArg &arg : descriptorArgs)
    types.push_back(arg.isStride ? b.getI64Type() : b.getI32Type());
  for (Value scalar : hostScalars)
    types.push_back(scalar.getType().isIndex() ? b.getI64Type()
                                               : scalar.getType());
  return types;
}

/// The least value of `expression` in a launch that has work.
static int64_t getLeast(const SizeExpr &expression,
                        ArrayRef<TensorFacts> tensors) {
  llvm::Expected<int64_t> value = expression.evaluate(
      [&](const SizeSymbol &symbol) -> std::optional<int64_t> {
        const auto *tensor =
            llvm::find_if(tensors, [&](const TensorFacts &each) {
              return each.name == symbol.tensor && !symbol.isStride;
            });
        if (tensor == tensors.end() ||
            ShapedType::isDynamic(tensor->shape[symbol.index]))
          return 1;
        return tensor->shape[symbol.index];
      });
  if (value)
    return *value;
  // Only what does not fit 64 bits has no value.
  llvm::consumeError(value.takeError());
  return INT64_MAX;
}

/// Most CTAs along x, y and z (CUDA C++ Programming Guide, "Technical
/// Specifications per Compute Capability").
static constexpr int64_t kGridLimits[] = {INT32_MAX, 65535, 65535};

llvm::Error attn::checkGrid(const std::array<SizeExpr, 3> &grid,
                            ArrayRef<TensorFacts> tensors) {
  if (getLeast(grid[0] * grid[1] * grid[2], tensors) <= kGridLimits[0])
    return llvm::Error::success();
  return llvm::createStringError(
      llvm::formatv("does not fit: expected at most {0} CTAs in a launch, got "
                    "{1} x {2} x {3}",
                    kGridLimits[0], getLeast(grid[0], tensors),
                    getLeast(grid[1], tensors), getLeast(grid[2], tensors)));
}

llvm::Error attn::checkTiles(const SizeExpr &tiles,
                             ArrayRef<TensorFacts> tensors) {
  int64_t least = getLeast(tiles, tensors);
  if (least <= kMostTiles)
    return llvm::Error::success();
  return llvm::createStringError(llvm::formatv(
      "does not fit: expected at most {0} tiles in a launch, got {1}",
      kMostTiles, least));
}

void KernelFrame::bindParameters(gpu::GPUFuncOp function,
                                 const std::array<SizeExpr, 3> &extents) {
  kernel = function;
  grid = extents;
  for (unsigned axis : {1, 2})
    foldsGrid |= getLeast(grid[axis], tensors) > kGridLimits[axis];
  const auto *parameter = kernel.getArguments().begin();
  auto take = [&](SmallVector<Value> &list, size_t count) {
    list.assign(parameter, parameter + count);
    parameter += count;
  };
  take(pointers, tensors.size());
  take(descriptors, descriptorArgs.size());
  take(scalars, hostScalars.size());
}

Value KernelFrame::i32(int64_t value) {
  return arith::ConstantIntOp::create(b, value, 32);
}

Value KernelFrame::i64(int64_t value) {
  return arith::ConstantIntOp::create(b, value, 64);
}

Value KernelFrame::f32(double value) {
  return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
}

const TensorFacts *KernelFrame::findTensor(StringRef name) const {
  const auto *it = llvm::find_if(
      tensors, [&](const TensorFacts &tensor) { return tensor.name == name; });
  return it == tensors.end() ? nullptr : it;
}

Value KernelFrame::getPointer(StringRef name) {
  return pointers[findTensor(name) - tensors.data()];
}

Value KernelFrame::getStride(StringRef name, unsigned dim) {
  const TensorFacts *tensor = findTensor(name);
  if (!ShapedType::isDynamic(tensor->strides[dim]))
    return i64(tensor->strides[dim]);
  unsigned index = tensor - tensors.data();
  for (auto [arg, value] : llvm::zip(descriptorArgs, descriptors))
    if (arg.isStride && arg.tensor == index && arg.dim == dim)
      return value;
  llvm_unreachable("a dynamic stride that is used is a parameter");
}

Value KernelFrame::getExtent(
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

std::array<SizeExpr, 3> KernelFrame::getLaunchedGrid() const {
  if (!foldsGrid)
    return grid;
  return {grid[0] * grid[1] * grid[2], 1, 1};
}

Value KernelFrame::getGridDim(gpu::Dimension dim) {
  if (!foldsGrid)
    return arith::IndexCastOp::create(b, b.getI32Type(),
                                      gpu::GridDimOp::create(b, dim));
  return emitSize(b, b.getI32Type(), grid[unsigned(dim)],
                  [&](const SizeSymbol &symbol) {
                    assert(!symbol.isDevice() && !symbol.isStride &&
                           "grids of tiles follow from extents");
                    return getSize(symbol.tensor, symbol.index);
                  });
}

Value KernelFrame::getBlockId(gpu::Dimension dim) {
  auto getId = [&](gpu::Dimension which) -> Value {
    return arith::IndexCastOp::create(b, b.getI32Type(),
                                      gpu::BlockIdOp::create(b, which));
  };
  if (!foldsGrid)
    return getId(dim);
  // In the order in which a launch numbers its CTAs.
  Value number = getId(gpu::Dimension::x);
  for (gpu::Dimension each : {gpu::Dimension::x, gpu::Dimension::y}) {
    Value extent = getGridDim(each);
    if (each == dim)
      return arith::RemUIOp::create(b, number, extent);
    number = arith::DivUIOp::create(b, number, extent);
  }
  return number;
}

Value KernelFrame::getSize(StringRef name, unsigned dim) {
  const TensorFacts *tensor = findTensor(name);
  int64_t extent = tensor->shape[dim];
  unsigned index = tensor - tensors.data();
  bool isKnown =
      !ShapedType::isDynamic(extent) ||
      llvm::any_of(descriptorArgs, [&](const DescriptorArg &arg) {
        return !arg.isStride && arg.tensor == index && arg.dim == dim;
      });
  if (!isKnown) {
    unsigned position = tensors.size() + descriptorArgs.size();
    LogicalResult inserted = kernel.insertArgument(position, b.getI32Type(),
                                                   /*argAttrs=*/{}, b.getLoc());
    assert(succeeded(inserted) && "kernels take any parameters");
    (void)inserted;
    descriptorArgs.push_back({index, dim, /*isStride=*/false});
    descriptors.push_back(kernel.getArgument(position));
  }
  return getExtent({{name, dim}}, extent);
}

Value KernelFrame::getTensorMap(StringRef name, ArrayRef<int64_t> box,
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

Value KernelFrame::addWorkspace(WorkspaceArg workspace) {
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

Value KernelFrame::widen(Value value) {
  return arith::ExtUIOp::create(b, b.getI64Type(), value);
}

Value KernelFrame::loadElement(StringRef name, Value index) {
  const TensorFacts *tensor = findTensor(name);
  Value pointer = getPointer(name);
  Value address = LLVM::GEPOp::create(b, pointer.getType(), tensor->elementType,
                                      pointer, ValueRange{index});
  return LLVM::LoadOp::create(b, tensor->elementType, address,
                              tensor->elementType.getIntOrFloatBitWidth() / 8);
}
