//===- CalibrationFlag.cpp - The flag --calibration -----------------------===//

#include "CalibrationFlag.h"
#include "attn/Planner/Facts/CalibrationFile.h"
#include "llvm/Support/CommandLine.h"

using namespace mlir::attn;
namespace cl = llvm::cl;

static cl::opt<std::string>
    flagCalibration("calibration", cl::Hidden, cl::value_desc("file"),
                    cl::desc("Factors of the model of time, in the place of "
                             "the compiler's own"));

llvm::Error mlir::attn::readCalibrationFlag() {
  if (flagCalibration.empty())
    return llvm::Error::success();
  return useCalibration(flagCalibration);
}
