//===- PlanFlags.cpp - Flags of the choice of plans -----------------------===//

#include "PlanFlags.h"
#include "attn/Planner/Facts/CalibrationFile.h"
#include "attn/Planner/Facts/RegisterModel.h"

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
static cl::opt<std::string>
    flagRegisters("register-model", cl::Hidden, cl::value_desc("file"),
                  cl::desc("Registers that ptxas needs, in the place of the "
                           "compiler's own data"),
                  cl::cat(getCompileCategory()));

llvm::Error mlir::attn::readPlanFlags(CompileOptions &options) {
  options.assembleCheck = flagAssembleCheck;
  if (!flagCalibration.empty())
    if (llvm::Error error = useCalibration(flagCalibration))
      return error;
  if (!flagRegisters.empty())
    return useRegisterModel(flagRegisters);
  return llvm::Error::success();
}
