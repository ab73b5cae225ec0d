//===- KernelAttrs.h - Attributes that schedules give kernels ---*- C++ -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_KERNELATTRS_H
#define ATTN_DIALECT_ATTN_IR_KERNELATTRS_H

#include "llvm/ADT/StringRef.h"

namespace mlir::attn {

/// Unit attribute of a kernel without partitions: what results need of the
/// thread is computed behind the last loop on tiles instead of at the entry, so
/// that it takes no registers in the loops (attn-lower-tiles).
inline constexpr llvm::StringLiteral kRenewEntryAttr("attn.renew_entry");

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_KERNELATTRS_H
