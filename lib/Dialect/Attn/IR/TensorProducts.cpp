//===- TensorProducts.cpp - What a product takes of tcgen05.mma -----------===//

#include "attn/Dialect/Attn/IR/TensorProducts.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

llvm::Expected<TensorInstruction>
attn::chooseTensorInstruction(Tcgen05MmaOp op) {
  int64_t span = 1;
  BufferType b = op.getB().getType();
  if (!isAuto(b.getLayout())) {
    llvm::Expected<SharedLayout> memory = getSharedLayout(b);
    if (!memory)
      return memory.takeError();
    if (memory->contiguousDim() == 1u)
      span = std::max<int64_t>(memory->spanBytes() / memory->elementBytes(), 1);
  }
  ArrayRef<int64_t> extents = op.getD().getType().getShape();
  return chooseTensorInstruction(extents[0], extents[1], op.getContraction(),
                                 b.getElementType().getIntOrFloatBitWidth(),
                                 span);
}

/// "s0", or "s0.p" for a field of it.
static std::string describeBuffer(Value buffer) {
  std::string name = findTmemAlloc(buffer).getName().value_or("buffer").str();
  while (Operation *def = buffer.getDefiningOp()) {
    if (auto field = dyn_cast<TmemFieldOp>(def))
      return name + "." + field.getField().str();
    auto slice = dyn_cast<TmemSliceOp>(def);
    if (!slice)
      break;
    buffer = slice.getSource();
  }
  return name;
}

FailureOr<std::string> attn::describeTensorProducts(Operation *kernel) {
  SmallVector<std::string> lines;
  WalkResult walk = kernel->walk([&](Tcgen05MmaOp op) {
    llvm::Expected<TensorInstruction> shape = chooseTensorInstruction(op);
    if (!shape) {
      op.emitOpError() << llvm::toString(shape.takeError());
      return WalkResult::interrupt();
    }
    ArrayRef<int64_t> extents = op.getD().getType().getShape();
    bool isShared = !op.getA().getType().isTmem();
    std::string from = isShared ? "shared memory" : describeBuffer(op.getA());
    int64_t count = extents[1] / shape->n * (op.getContraction() / shape->k);
    std::string line =
        llvm::formatv("{0}  {1} x {2} x {3} from {4}, {5} of m{6}n{7}k{8}",
                      describeBuffer(op.getD()), extents[0], extents[1],
                      op.getContraction(), from, count, shape->m, shape->n,
                      shape->k)
            .str();
    // The first block's stands in front of the others'.
    if (!llvm::is_contained(lines, line))
      lines.push_back(line);
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  if (lines.empty())
    return std::string();
  return "products of tcgen05.mma, cta_group::1\n  " +
         llvm::join(lines, "\n  ");
}
