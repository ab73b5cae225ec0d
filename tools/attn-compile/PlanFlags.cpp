//===- PlanFlags.cpp - Flags of the choice of plans -----------------------===//

#include "PlanFlags.h"
#include "attn/Planner/Facts/CalibrationFile.h"

using namespace mlir::attn;
namespace cl = llvm::cl;

cl::OptionCategory &mlir::attn::getCompileCategory() {
  static cl::OptionCategory category("Compilation");
  return category;
}

static cl::opt<bool>
    flagAssembleCheck("assemble-check",
                      cl::desc("Ask ptxas about the plan, and take the next "
                               "one if its loops spill"),
                      cl::cat(getCompileCategory()));
static cl::opt<std::string>
    flagCalibration("calibration", cl::Hidden, cl::value_desc("file"),
                    cl::desc("Factors of the model of time, in the place of "
                             "the compiler's own"),
                    cl::cat(getCompileCategory()));

llvm::Error mlir::attn::readPlanFlags(CompileOptions &options) {
  options.assembleCheck = flagAssembleCheck;
  if (flagCalibration.empty())
    return llvm::Error::success();
  return useCalibration(flagCalibration);
}
