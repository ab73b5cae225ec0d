//===- Corners.h - Values that numbers of the model may have ----*- C++ -*-===//

#ifndef ATTN_COST_CORNERS_H
#define ATTN_COST_CORNERS_H

#include "attn/Target/CycleTable.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace mlir::attn::sim {

/// A number of the cycle model with the values that it may have: what we take,
/// then the others.
struct CornerAxis {
  CycleNumber number = CycleNumber::IssueLanes;
  llvm::SmallVector<double, 3> values;
};

/// The cycles of a launch for each choice of values.
struct Corners {
  std::vector<CornerAxis> axes;
  /// One for each choice, the last axis changing first; the first one is what
  /// we take.
  std::vector<double> cycles;

  /// Index of a value on each axis.
  llvm::SmallVector<unsigned> getChoice(size_t corner) const;
  /// Such as "alu_lanes=128 tmem_bytes=64", "nominal" when nothing differs.
  std::string getName(size_t corner) const;

  llvm::json::Value toJSON() const;
  /// The range, and what each value alone and together with all others does.
  void print(llvm::raw_ostream &os) const;
};

/// Least and most cycles, and where.
struct CycleRange {
  double low = 0, high = 0;
  std::string lowCorner, highCorner;
};

/// "alu_lanes=128".
std::string nameValue(const CornerAxis &axis, unsigned index);
/// The same for all axes where the choice is not what we take, "nominal" where
/// there is none.
std::string nameChoice(llvm::ArrayRef<CornerAxis> axes,
                       llvm::ArrayRef<unsigned> choice);

} // namespace mlir::attn::sim

#endif // ATTN_COST_CORNERS_H
