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

/// Checks that `module` has no wgmma where later chips dropped it, which no
/// least compute capability says.
static LogicalResult verifyWgmma(gpu::GPUModuleOp module, TargetAttr target) {
  const TargetRow &row = target.getRow();
  if (row.has(Capability::Wgmma))
    return success();
  bool valid = true;
  module.walk([&](AsyncOpInterface op) {
    if (&op.getAsyncEngine() != &kWgmmaGroups)
      return;
    valid = false;
    InFlightDiagnostic diagnostic = op->emitOpError("needs sm_90a, got ")
                                    << target.getChip();
    if (row.has(Capability::Tcgen05))
      diagnostic.attachNote(module.getLoc())
          << "the products of " << target.getChip() << " are attn.tcgen05.mma";
  });
  return success(valid);
}

LogicalResult attn::verifyArch(gpu::GPUModuleOp module) {
  bool valid = true;
  if (ArrayAttr targets = module.getTargetsAttr())
    for (Attribute attribute : targets)
      if (auto target = dyn_cast<TargetAttr>(attribute))
        // At most one of the two has something to say.
        valid &= succeeded(::verifyArch(module, target)) &&
                 succeeded(verifyWgmma(module, target));
  return success(valid);
}
