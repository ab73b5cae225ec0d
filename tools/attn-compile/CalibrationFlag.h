//===- CalibrationFlag.h - The flag --calibration ---------------*- C++ -*-===//

#ifndef ATTN_TOOLS_ATTN_COMPILE_CALIBRATIONFLAG_H
#define ATTN_TOOLS_ATTN_COMPILE_CALIBRATIONFLAG_H

#include "llvm/Support/Error.h"

namespace mlir::attn {

/// Lets factors have the values of the file that --calibration names. The flag
/// is for scripts/fit-calibration.py, and hidden.
llvm::Error readCalibrationFlag();

} // namespace mlir::attn

#endif // ATTN_TOOLS_ATTN_COMPILE_CALIBRATIONFLAG_H
