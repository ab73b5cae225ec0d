//===- InferBuffers.cpp - Layouts of buffers in shared memory -------------===//

#include "InferBuffers.h"

using namespace mlir;
using namespace mlir::attn;

/// The default layout of an allocation.
static Attribute chooseBufferLayout(BufferType type) {
  MLIRContext *context = type.getContext();
  if (type.getSlotShape().size() != 2)
    return RowLayoutAttr::get(context);
  unsigned bits = type.getElementType().getIntOrFloatBitWidth();
  return SwizzledLayoutAttr::get(
      context, SharedLayout::chooseSpan(type.getSlotShape()[1], bits));
}

/// The layout in which TMA writes or reads boxes of a map.
static Attribute getBoxLayout(TensorMapType map) {
  MLIRContext *context = map.getContext();
  if (map.getSwizzle() == 0)
    return RowLayoutAttr::get(context);
  return SwizzledLayoutAttr::get(context, map.getSwizzle());
}

/// Not every shape can lie in a layout.
static LogicalResult setLayout(Operation *op, Value buffer, Attribute layout) {
  auto type = cast<BufferType>(buffer.getType());
  BufferType resolved = BufferType::getChecked(
      [&] { return op->emitOpError("cannot lie in ") << layout << ": "; },
      type.getContext(), type.getShape(), type.getElementType(), layout,
      type.getSpace());
  if (!resolved)
    return failure();
  buffer.setType(resolved);
  return success();
}

FailureOr<unsigned> attn::inferBufferLayouts(gpu::GPUFuncOp kernel) {
  unsigned count = 0;
  auto resolve = [&](Operation *op, Value buffer, Attribute layout) {
    ++count;
    return setLayout(op, buffer, layout);
  };
  // What is copied in boxes lies as the tensor map says.
  WalkResult walk = kernel.walk([&](BulkCopyOpInterface op) -> WalkResult {
    Value buffer = op.getCopiedBuffer();
    if (!buffer)
      return WalkResult::advance();
    if (auto slot = buffer.getDefiningOp<SlotOp>())
      buffer = slot.getSource();
    auto type = cast<BufferType>(buffer.getType());
    if (!buffer.getDefiningOp() || !isAuto(type.getLayout()))
      return WalkResult::advance();
    return resolve(op, buffer,
                   getBoxLayout(cast<TensorMapType>(op.getMap().getType())));
  });
  if (walk.wasInterrupted())
    return failure();
  walk = kernel.walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
    for (Value result : op->getResults()) {
      auto type = dyn_cast<BufferType>(result.getType());
      if (!type || !isAuto(type.getLayout()))
        continue;
      Attribute layout;
      if (auto slot = dyn_cast<SlotOp>(op)) {
        layout = slot.getSource().getType().getLayout();
      } else if (auto transpose = dyn_cast<TransposeOp>(op)) {
        Attribute source = transpose.getSource().getType().getLayout();
        auto inner = dyn_cast<TransposedLayoutAttr>(source);
        layout = inner ? inner.getInner()
                       : TransposedLayoutAttr::get(op->getContext(), source);
      } else {
        layout = chooseBufferLayout(type);
      }
      if (failed(resolve(op, result, layout)))
        return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  return count;
}
