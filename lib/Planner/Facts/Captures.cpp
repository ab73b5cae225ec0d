//===- Captures.cpp - What regions read from outside ----------------------===//

#include "attn/Planner/Facts/Captures.h"
#include "attn/Launch/DType.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::attn;

/// Returns true if a launch record has a name for elements of this type.
static bool isRecorded(Type type) {
  std::string name;
  llvm::raw_string_ostream(name) << type;
  return type.isInteger(1) || symbolizeDType(name).has_value();
}

LogicalResult attn::collectCaptures(Operation *op,
                                    SmallVectorImpl<TensorFacts> &tensors,
                                    SmallVectorImpl<Value> &scalars) {
  llvm::SetVector<Value> captured;
  for (Region &region : op->getRegions())
    getUsedValuesDefinedAbove(region, captured);
  for (Value value : captured) {
    bool isKnown =
        llvm::is_contained(scalars, value) ||
        llvm::any_of(tensors, [&](auto &each) { return each.value == value; });
    if (isKnown)
      continue;
    if (auto type = dyn_cast<MemRefType>(value.getType())) {
      if (!isRecorded(type.getElementType())) {
        InFlightDiagnostic diag =
            op->emitOpError("expected regions to use memrefs of integers of at "
                            "most 64 bits or of floats, got ")
            << type;
        diag.attachNote(value.getLoc()) << "the memref stands here";
        return diag;
      }
      FailureOr<TensorFacts> tensor = TensorFacts::get(
          op, "capture" + std::to_string(tensors.size()), value,
          /*written=*/false);
      if (failed(tensor))
        return failure();
      tensors.push_back(*tensor);
      continue;
    }
    Operation *def = value.getDefiningOp();
    if (def && def->hasTrait<OpTrait::ConstantLike>())
      continue;
    if (!value.getType().isIndex() && !isRecorded(value.getType())) {
      InFlightDiagnostic diag =
          op->emitOpError("expected regions to use memrefs and scalars from "
                          "outside, got a value of type ")
          << value.getType();
      diag.attachNote(value.getLoc()) << "the value stands here";
      return diag;
    }
    scalars.push_back(value);
  }
  return success();
}
