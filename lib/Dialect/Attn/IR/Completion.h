//===- Completion.h - What a transfer is complete by ------------*- C++ -*-===//

#ifndef ATTN_LIB_DIALECT_ATTN_IR_COMPLETION_H
#define ATTN_LIB_DIALECT_ATTN_IR_COMPLETION_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn {

/// Checks what an asynchronous write to shared memory counts its bytes by: a
/// token, or one of several barriers, `which` by its index.
inline LogicalResult verifyCompletion(Operation *op, Value token,
                                      Value barriers, Value which) {
  if (static_cast<bool>(token) == static_cast<bool>(barriers))
    return op->emitOpError("expected either a token or a barrier to complete");
  if (static_cast<bool>(barriers) != static_cast<bool>(which))
    return op->emitOpError("expected the index of one of the barriers, got ")
           << (which ? "no barriers" : "none");
  return success();
}

/// Checks how many of its youngest groups of transfers a wait leaves
/// incomplete.
inline LogicalResult verifyPendingGroups(Operation *op, int64_t pending) {
  if (pending < 0)
    return op->emitOpError("expected a number of pending groups of at least 0, "
                           "got ")
           << pending;
  return success();
}

/// Checks at how many CTAs of a cluster something happens, where the op says
/// so.
inline LogicalResult verifyClusterCTAs(Operation *op,
                                       std::optional<int64_t> ctas) {
  if (ctas && (*ctas < 2 || *ctas > 16))
    return op->emitOpError("expected a cluster of 2 to 16 CTAs, got ") << *ctas;
  return success();
}

/// Checks the bits of ranks that several CTAs, or a leader, are about: as many
/// CTAs differ in them.
inline LogicalResult verifyRankBits(Operation *op, std::optional<int64_t> ctas,
                                    bool leader, std::optional<int64_t> bits) {
  if (!bits)
    return success();
  if (!ctas && !leader)
    return op->emitOpError("expected no 'rank_bits' at this CTA alone, got ")
           << *bits;
  if (*bits < 1 || *bits > 7)
    return op->emitOpError("expected 'rank_bits' from 1 to 7, got ") << *bits;
  auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
  std::optional<ArrayRef<int32_t>> size =
      kernel ? kernel.getKnownClusterSize() : std::nullopt;
  if (int64_t cluster = size ? countLaunched(*size) : 8;
      *bits >= cluster || !llvm::isPowerOf2_64(cluster)) {
    InFlightDiagnostic diag = op->emitOpError("expected 'rank_bits' ")
                              << *bits
                              << " of the ranks in a cluster of 2, 4 or 8 "
                                 "CTAs, got a cluster of "
                              << cluster;
    diag.attachNote(kernel.getLoc())
        << "the kernel's known_cluster_size says so";
    return diag;
  }
  int64_t count = int64_t(1) << llvm::popcount(uint64_t(*bits));
  if (ctas && *ctas != count)
    return op->emitOpError("expected ")
           << count << " CTAs whose ranks differ in 'rank_bits' " << *bits
           << ", got " << *ctas;
  return success();
}

/// Checks the layout over a cluster of what has `dims` dimensions.
inline LogicalResult verifyCGA(Operation *op, CGAAttr cga, int64_t dims) {
  if (cga && cga.getRank() != dims)
    return op->emitOpError("expected 'cga' of ")
           << dims << (dims == 1 ? " dimension, got " : " dimensions, got ")
           << cga.getRank();
  auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
  std::optional<ArrayRef<int32_t>> size =
      cga && kernel ? kernel.getKnownClusterSize() : std::nullopt;
  int64_t ctas = size ? countLaunched(*size) : 0;
  if (!size || cga.countCTAs() == ctas)
    return success();
  InFlightDiagnostic diag = op->emitOpError("expected 'cga' of ")
                            << ctas << " CTAs, got one of " << cga.countCTAs();
  diag.attachNote(kernel.getLoc()) << "the kernel's known_cluster_size says so";
  return diag;
}

/// Checks a signal at mbarriers whose layout is given: it goes to the CTAs that
/// have them, and one to a leader goes to that of those which share them.
inline LogicalResult verifyBarrierCGA(Operation *op, Value barriers,
                                      SignalMask targets) {
  auto alloc = barriers ? barriers.getDefiningOp<MBarrierAllocOp>() : nullptr;
  if (!alloc || !alloc.getCga())
    return success();
  CGAAttr cga = alloc.getCgaAttr();
  uint32_t ranks = cga.countCTAs() - 1, shared = cga.getCopiedBits();
  uint32_t clear = targets.getClear() & ranks, any = targets.getAny() & ranks;
  if ((clear == 0 || clear == shared) && (any & shared) == 0)
    return success();
  InFlightDiagnostic diag = op->emitOpError();
  if (clear != 0 && clear != shared)
    diag << "expected barriers that CTAs whose ranks differ in bits " << clear
         << " have together, got " << cga;
  else
    diag << "expected barriers of each of the CTAs whose ranks differ in bits "
         << any << ", got " << cga;
  diag.attachNote(alloc.getLoc()) << "the barriers' 'cga' is here";
  return diag;
}

} // namespace mlir::attn

#endif // ATTN_LIB_DIALECT_ATTN_IR_COMPLETION_H
