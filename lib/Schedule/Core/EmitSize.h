//===- EmitSize.h - Sizes in host and kernel code ---------------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_CORE_EMITSIZE_H
#define ATTN_LIB_SCHEDULE_CORE_EMITSIZE_H

#include "attn/Launch/SizeExpr.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::attn {

/// Emits the value of `expression`, of `type`, whose symbols `getSymbol` emits.
Value emitSize(ImplicitLocOpBuilder &b, Type type, const SizeExpr &expression,
               llvm::function_ref<Value(const SizeSymbol &)> getSymbol);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_CORE_EMITSIZE_H
