//===- AttnInterfaces.cpp - What ops need of a chip -----------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Target/TargetTable.h"

using namespace mlir;
using namespace mlir::attn;

#include "attn/Dialect/Attn/IR/AttnOpInterfaces.cpp.inc"

/// Checks the ops of `module` against one of its targets.
static LogicalResult verifyArch(gpu::GPUModuleOp module, TargetAttr target) {
  bool valid = true;
  const TargetRow &row = target.getRow();
  int available = row.instructionCapability;
  module.walk([&](ArchOpInterface op) {
    int needed = op.getMinimumSM();
    if (needed <= available)
      return;
    valid = false;
    InFlightDiagnostic diagnostic = op->emitOpError("needs sm_")
                                    << needed << " or later, got "
                                    << target.getChip();
    diagnostic.attachNote(module.getLoc())
        << "the target of the kernels here is " << target;
    if (row.instructionCapability != row.computeCapability)
      diagnostic.attachNote(module.getLoc())
          << "kernels for " << target.getChip()
          << " have the instructions of sm_" << available;
  });
  return success(valid);
}

LogicalResult attn::verifyArch(gpu::GPUModuleOp module) {
  bool valid = true;
  if (ArrayAttr targets = module.getTargetsAttr())
    for (Attribute attribute : targets)
      if (auto target = dyn_cast<TargetAttr>(attribute))
        valid &= succeeded(::verifyArch(module, target));
  return success(valid);
}
