//===- ProductCompletion.h - When a product may be read ---------*- C++ -*-===//
//
// What ProductOpInterface answers.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_PRODUCTCOMPLETION_H
#define ATTN_DIALECT_ATTN_IR_PRODUCTCOMPLETION_H

namespace mlir::attn {

/// When a product may be read.
enum class ProductCompletion {
  /// At once: it is a register tile.
  AtOnce,
  /// Behind a wait (ProductWaitOpInterface), which takes the accumulator in
  /// flight and returns the register tile.
  Wait,
  /// Where an mbarrier says so: it is in a buffer, whose channel hands it over.
  Barrier
};

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_PRODUCTCOMPLETION_H
