//===- KernelAttrs.h - Attributes that schedules give kernels ---*- C++ -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_KERNELATTRS_H
#define ATTN_DIALECT_ATTN_IR_KERNELATTRS_H

#include "llvm/ADT/StringRef.h"

namespace mlir::attn {

/// Unit attribute of a kernel: what results need of the thread is computed
/// behind the last loop on tiles instead of at the entry, so that it takes no
/// registers in the loops. Where they begin, partitions take the address of
/// shared memory and compute what they need of the thread (attn-lower-tiles).
inline constexpr llvm::StringLiteral kRenewEntryAttr("attn.renew_entry");

/// Unit attribute of attn.store_result, attn.global_store and llvm.store:
/// another kernel reads the elements soon, and they are to stay in L2 until
/// then, whatever passes through it meanwhile. Taken for elements of f32, and
/// of llvm.store, which has no others (attn-lower-tiles).
inline constexpr llvm::StringLiteral kKeptAttr("attn.kept");

/// Unit attribute of scf.for: the loop stays a loop where it is known to have
/// one trip. Such a loop runs in a thread that has no registers for what
/// straight code would keep beside each other (convert-attn-to-nvvm).
inline constexpr llvm::StringLiteral kRolledAttr("attn.rolled");

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_KERNELATTRS_H
