//===- ScheduleList.h - Which schedules take a problem ----------*- C++ -*-===//

#ifndef ATTN_COMPILE_SCHEDULELIST_H
#define ATTN_COMPILE_SCHEDULELIST_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace mlir::attn {

/// Asks each schedule on each chip whether it takes the first attention of
/// `module` at all: an object by schedules and chips of null, or of the reason
/// why not. On failure diagnostics were emitted.
FailureOr<llvm::json::Value> listSchedules(ModuleOp module);

} // namespace mlir::attn

#endif // ATTN_COMPILE_SCHEDULELIST_H
