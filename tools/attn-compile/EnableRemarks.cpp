//===- EnableRemarks.cpp - Remarks that a call asks for -------------------===//

#include "EnableRemarks.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;

LogicalResult attn::enableRemarks(MLIRContext &context,
                                  const std::optional<std::string> &filter) {
  if (!filter)
    return success();
  if (std::string error; !llvm::Regex(*filter).isValid(error)) {
    llvm::WithColor::error(llvm::errs(), "attn-compile")
        << "--remarks-filter: " << error << "\n";
    return failure();
  }
  // Kinds without a filter of their own, which may be empty, stay silent.
  return remark::enableOptimizationRemarks(
      context, /*streamer=*/nullptr,
      std::make_unique<remark::RemarkEmittingPolicyAll>(),
      {*filter, "", "", "", ""},
      /*printAsEmitRemarks=*/true);
}
