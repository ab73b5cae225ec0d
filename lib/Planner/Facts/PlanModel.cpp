//===- PlanModel.cpp - How plans of a schedule are compared ---------------===//

#include "attn/Planner/Facts/PlanModel.h"

using namespace mlir::attn;

llvm::StringRef PlanEstimate::getLimiter() const {
  if (isBoundByDram())
    return "dram";
  double limit = std::max({tensorClocks, expClocks, issueClocks, sharedClocks});
  if (limit == tensorClocks)
    return "tensor";
  if (limit == expClocks)
    return "exp";
  return limit == issueClocks ? "issue" : "shared";
}
