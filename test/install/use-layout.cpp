//===- use-layout.cpp - Uses the layout library of an installed Attn ------===//

#include "attn/Layout/LinearLayout.h"

using mlir::attn::LinearLayout;

int main() {
  // Eight rows of four lanes: lane l holds column l, register r row r.
  llvm::Expected<LinearLayout> layout =
      LinearLayout::identity("lane", 4, "dim1")
          .product(LinearLayout::identity("register", 8, "dim0"));
  if (!layout) {
    llvm::errs() << llvm::toString(layout.takeError()) << "\n";
    return 1;
  }
  llvm::Expected<LinearLayout> inverse = layout->invert();
  if (!inverse) {
    llvm::errs() << llvm::toString(inverse.takeError()) << "\n";
    return 1;
  }
  llvm::outs() << *layout << "\n" << *inverse << "\n";
  return layout->isInvertible() && layout->totalInputBits() == 5 ? 0 : 1;
}
