//===- IndexBits.h - How many bits an index of a kernel has -----*- C++ -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_INDEXBITS_H
#define ATTN_DIALECT_ATTN_IR_INDEXBITS_H

namespace mlir::attn {

/// An index becomes an integer of this many bits in the kernel
/// (convert-attn-to-nvvm). Folding in front of that has 64, so that numbers
/// that need more are no good.
inline constexpr unsigned kIndexBits = 32;

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_INDEXBITS_H
