//===- ScheduleList.cpp - Which schedules take a problem ------------------===//

#include "attn/Compile/ScheduleList.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Schedule/Core/Schedule.h"
#include "attn/Target/TargetTable.h"

using namespace mlir;
using namespace mlir::attn;

FailureOr<llvm::json::Value> attn::listSchedules(ModuleOp module) {
  AttentionOp op;
  module->walk([&](AttentionOp each) {
    op = each;
    return WalkResult::interrupt();
  });
  if (!op) {
    module->emitError("expected an attn.attention, got none");
    return failure();
  }
  FailureOr<ProblemFacts> facts = ProblemFacts::get(op);
  if (failed(facts))
    return failure();
  llvm::json::Object result;
  for (const Schedule *schedule : getSchedules()) {
    llvm::json::Object chips;
    for (const TargetRow &target : getTargets()) {
      llvm::Error error = schedule->isApplicable(facts->getPlanned(), target);
      chips[target.chip] = error ? llvm::json::Value(toString(std::move(error)))
                                 : llvm::json::Value(nullptr);
    }
    result[schedule->getName()] = std::move(chips);
  }
  return llvm::json::Value(std::move(result));
}
