//===- PairLayouts.cpp - Layouts of a product's values in a cluster -------===//
//
// A layout that somebody has written has to be the one that follows from loads
// and products: of a factor in shared memory from the coordinates of its loads,
// of the sums in tensor memory from the factors.
//
//===----------------------------------------------------------------------===//

#include "ShardPairs.h"

using namespace mlir;
using namespace mlir::attn;

bool attn::isTransposed(Value view) {
  bool isOdd = false;
  while (auto op = view.getDefiningOp<ViewLikeOpInterface>()) {
    isOdd ^= isa<TransposeOp>(op);
    view = op.getViewSource();
  }
  return isOdd;
}

/// Emits an error at an allocation whose layout is another one than `found`,
/// with a note that says at `place` why.
static LogicalResult refuseLayout(Operation *alloc, CGAAttr given,
                                  CGAAttr found, Operation *place,
                                  StringRef why) {
  InFlightDiagnostic diag = alloc->emitOpError("expected 'cga' to be ")
                            << found << ", got " << given;
  diag.attachNote(place->getLoc()) << why;
  return diag;
}

/// Checks that a layout in shared memory is that of the loads.
LogicalResult PairSharder::checkLayouts() {
  WalkResult walk = kernel.walk([&](Operation *op) -> WalkResult {
    if (!isa<AllocOp, ReinterpretOp>(op))
      return WalkResult::advance();
    ClusterBuffer *buffer = getBuffer(op->getResult(0));
    if (!buffer || buffer->getHolder() != op || !buffer->getCga() ||
        !buffer->bases)
      return WalkResult::advance();
    auto found = CGAAttr::get(op->getContext(), *buffer->bases);
    if (found == buffer->getCga())
      return WalkResult::advance();
    return refuseLayout(op, buffer->getCga(), found, buffer->loads.front(),
                        "the coordinates of this load say so");
  });
  return failure(walk.wasInterrupted());
}

/// Returns the bases of a factor as those of a matrix whose dimensions are the
/// product's.
static CGABases orient(const CGABases &bases, bool isTurned) {
  CGABases turned = bases;
  if (isTurned)
    for (SmallVector<int64_t> &basis : turned)
      std::swap(basis[0], basis[1]);
  return turned;
}

/// Returns the layouts that follow for the factors and sums of all products.
SmallVector<FoundLayout> PairSharder::findLayouts(Products kind) {
  MLIRContext *context = kernel.getContext();
  SmallVector<FoundLayout> found;
  auto add = [&](Operation *alloc, const CGABases &bases, Operation *product) {
    if (alloc && findFault(bases).empty())
      found.push_back({alloc, CGAAttr::get(context, bases), product});
  };
  for (ClusterProduct product : products) {
    bool isTurned = product.dimN == 0;
    if (!product.b || !product.b->bases)
      continue;
    CGABases b = orient(*product.b->bases, isTurned);
    CGABases a(b.size(), SmallVector<int64_t>(2));
    bool hasA = product.a && product.a->bases;
    if (hasA)
      a = orient(*product.a->bases, isTransposed(product.product.getA()));
    ProductLayouts layouts = ProductLayouts::get(a, b);
    if (kind == Products::Found)
      layouts = layouts.getPaired();
    else if (kind == Products::Given)
      for (SmallVector<int64_t> &basis : layouts.d)
        basis[1] /= 2;
    add(product.b->getHolder(), orient(layouts.b, isTurned), product.product);
    if (!hasA)
      continue;
    add(product.a->getHolder(), *product.a->bases, product.product);
    add(findTmemAlloc(product.product.getProduct()), layouts.d,
        product.product);
  }
  return found;
}

/// Checks that a layout in tensor memory is that of the product which writes
/// there.
LogicalResult PairSharder::checkSums(ArrayRef<FoundLayout> layouts) {
  for (const FoundLayout &layout : layouts)
    if (auto sums = dyn_cast<TmemAllocOp>(layout.alloc))
      if (CGAAttr given = sums.getCgaAttr(); given && given != layout.cga)
        return refuseLayout(sums, given, layout.cga, layout.product,
                            "the factors of this product say so");
  return success();
}

void PairSharder::setLayouts(ArrayRef<FoundLayout> layouts) {
  for (const FoundLayout &layout : layouts)
    if (auto buffer = dyn_cast<AllocOp>(layout.alloc))
      buffer.setCgaAttr(layout.cga);
    else if (auto view = dyn_cast<ReinterpretOp>(layout.alloc))
      view.setCgaAttr(layout.cga);
    else
      cast<TmemAllocOp>(layout.alloc).setCgaAttr(layout.cga);
}
