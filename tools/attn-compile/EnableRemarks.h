//===- EnableRemarks.h - Remarks that a call asks for -----------*- C++ -*-===//

#ifndef ATTN_TOOLS_ATTN_COMPILE_ENABLEREMARKS_H
#define ATTN_TOOLS_ATTN_COMPILE_ENABLEREMARKS_H

#include "mlir/IR/MLIRContext.h"
#include <optional>
#include <string>

namespace mlir::attn {

/// Prints the remarks whose category matches `filter`, if there is one. A wrong
/// regular expression is an error on standard error.
LogicalResult enableRemarks(MLIRContext &context,
                            const std::optional<std::string> &filter);

} // namespace mlir::attn

#endif // ATTN_TOOLS_ATTN_COMPILE_ENABLEREMARKS_H
