//===- CalibrationFile.h - Factors of another file --------------*- C++ -*-===//

#ifndef ATTN_PLANNER_FACTS_CALIBRATIONFILE_H
#define ATTN_PLANNER_FACTS_CALIBRATIONFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace mlir::attn {

/// Lets all factors of this process have the values of a file, in the place of
/// the library's own. Call it before anything is planned. An error says what
/// the file lacks.
llvm::Error useCalibration(llvm::StringRef path);

} // namespace mlir::attn

#endif // ATTN_PLANNER_FACTS_CALIBRATIONFILE_H
