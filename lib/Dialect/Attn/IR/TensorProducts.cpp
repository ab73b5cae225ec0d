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
  auto *choose = op.getPair() ? &choosePairInstruction
                              : static_cast<decltype(&choosePairInstruction)>(
                                    &chooseTensorInstruction);
  return choose(extents[0], extents[1], op.getContraction(),
                b.getElementType().getIntOrFloatBitWidth(), span);
}

/// The first op of the tensor core in a kernel that has a group.
static TensorGroupOpInterface findTensorGroup(gpu::GPUFuncOp kernel) {
  TensorGroupOpInterface first;
  kernel.walk([&](TensorGroupOpInterface op) {
    first = op;
    return WalkResult::interrupt();
  });
  return first;
}

bool attn::usesPairs(gpu::GPUFuncOp kernel) {
  TensorGroupOpInterface first = findTensorGroup(kernel);
  return first && first.isOfPair();
}

LogicalResult attn::checkTensorGroups(gpu::GPUFuncOp kernel) {
  TensorGroupOpInterface first = findTensorGroup(kernel);
  if (!first)
    return success();
  WalkResult walk = kernel.walk([&](TensorGroupOpInterface op) -> WalkResult {
    if (op.isOfPair() == first.isOfPair())
      return WalkResult::advance();
    InFlightDiagnostic diag =
        op->emitOpError("expected all uses of the tensor core by a kernel to "
                        "be of one CTA or all of a pair, got one ")
        << (op.isOfPair() ? "of a pair" : "of one CTA");
    diag.attachNote(first->getLoc())
        << "this one is " << (op.isOfPair() ? "of one CTA" : "of a pair");
    return diag;
  });
  if (walk.wasInterrupted() || !first.isOfPair())
    return failure(walk.wasInterrupted());
  std::optional<ArrayRef<int32_t>> size = kernel.getKnownClusterSize();
  int64_t ctas = size ? countLaunched(*size) : 1;
  if (ctas == 2 || ctas == 4 || ctas == 8)
    return success();
  InFlightDiagnostic diag =
      first->emitOpError("expected a cluster of 2, 4 or 8 CTAs, whose pairs "
                         "have ranks 2n and 2n + 1, got ")
      << ctas;
  diag.attachNote(kernel.getLoc()) << "the kernel is here";
  return diag;
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
  bool isOfPair = false;
  WalkResult walk = kernel->walk([&](Tcgen05MmaOp op) {
    llvm::Expected<TensorInstruction> shape = chooseTensorInstruction(op);
    if (!shape) {
      op.emitOpError() << llvm::toString(shape.takeError());
      return WalkResult::interrupt();
    }
    ArrayRef<int64_t> extents = op.getD().getType().getShape();
    isOfPair |= op.getPair();
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
  return llvm::formatv("products of tcgen05.mma, cta_group::{0}\n  {1}",
                       isOfPair ? 2 : 1, llvm::join(lines, "\n  "))
      .str();
}
