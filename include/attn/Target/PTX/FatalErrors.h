//===- FatalErrors.h - LLVM's fatal errors as values ------------*- C++ -*-===//

#ifndef ATTN_TARGET_PTX_FATALERRORS_H
#define ATTN_TARGET_PTX_FATALERRORS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>
#include <string>

namespace mlir::attn {

/// Runs `function`. When LLVM reports a fatal error or a signal such as SIGABRT
/// or SIGSEGV arrives meanwhile, control comes back here and the message is
/// returned; what `function` held is leaked then. Several threads may do this
/// at once.
std::optional<std::string> runGuarded(llvm::function_ref<void()> function);

} // namespace mlir::attn

#endif // ATTN_TARGET_PTX_FATALERRORS_H
