//===- AddressForm.h - How an address depends on a thread -------*- C++ -*-===//

#ifndef ATTN_LAYOUT_ADDRESSFORM_H
#define ATTN_LAYOUT_ADDRESSFORM_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace mlir::attn {

/// The part of a byte address that depends on the thread: one constant for each
/// bit of the lane, warp and block index.
struct AddressForm {
  llvm::SmallVector<int64_t, 5> laneXor;
  llvm::SmallVector<int64_t, 5> laneAdd;
  llvm::SmallVector<int64_t, 4> warpXor;
  llvm::SmallVector<int64_t, 4> warpAdd;
  llvm::SmallVector<int64_t, 2> blockXor;
  llvm::SmallVector<int64_t, 2> blockAdd;

  int64_t evaluateXor(unsigned lane, unsigned warp, unsigned block = 0) const;
  int64_t evaluateAdd(unsigned lane, unsigned warp, unsigned block = 0) const;
  /// Bits that the XOR part can set.
  int64_t xorMask() const;
  bool operator==(const AddressForm &other) const;
};

/// An address: a form and constants.
struct AccessAddress {
  /// Index into the plan's forms.
  unsigned form = 0;
  int64_t xorConst = 0;
  int64_t addConst = 0;

  /// Byte offset from the buffer's base.
  int64_t evaluate(llvm::ArrayRef<AddressForm> forms, unsigned lane,
                   unsigned warp, unsigned block = 0) const;
};

/// Addresses of single elements.
struct ElementAddresses {
  AddressForm form;
  /// For each register of the tile, with form 0.
  llvm::SmallVector<AccessAddress> registers;
};

} // namespace mlir::attn

#endif // ATTN_LAYOUT_ADDRESSFORM_H
