//===- RegionEvaluator.h - Run a score_mod or mask_mod region ---*- C++ -*-===//
//
// Evaluates a region of arith, math and memref.load operations in float64, for
// the reference that kernels are compared with. The region is translated once
// into a list of steps over numbered values; evaluating it is then a loop.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ANALYSIS_FLOW_REGIONEVALUATOR_H
#define ATTN_ANALYSIS_FLOW_REGIONEVALUATOR_H

#include "attn/Analysis/Flow/RegionNumber.h"
#include "mlir/IR/Region.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <vector>

namespace mlir::attn {

/// Reads an element of a captured memref; the index has one number for each
/// dimension. An index out of bounds is the callee's to report.
using RegionLoad = std::function<llvm::Expected<double>(ArrayRef<int64_t>)>;

/// A region with one block, ready to be evaluated. Const use is safe from
/// several threads at once.
class RegionEvaluator {
public:
  /// Translates `region`. Constants from outside are folded; other values from
  /// outside become captures, which the caller binds. Errors: an operation that
  /// is not known here, with its name; integers wider than 64 bits.
  static llvm::Expected<RegionEvaluator> get(Region &region);

  /// The memrefs and scalars from outside that the region uses, in order of
  /// first use.
  ArrayRef<Value> getCaptures() const { return captures; }

  /// Gives a captured memref its contents.
  void bindMemRef(unsigned capture, RegionLoad load);
  /// Gives a captured scalar its value.
  void bindScalar(unsigned capture, RegionNumber value);

  /// Evaluates the region's yielded value for these block arguments. Floats are
  /// rounded only where the IR truncates to a type narrower than f32. Errors: a
  /// capture without binding, integer division by zero, an error of a load.
  llvm::Expected<RegionNumber> evaluate(ArrayRef<RegionNumber> arguments) const;

private:
  friend class RegionTranslator;

  /// Computes one number from the numbers of other values.
  struct Step {
    /// False where the result is undefined (division by zero). Empty for a
    /// load.
    std::function<bool(const RegionNumber *operands, RegionNumber &result)>
        compute;
    unsigned result = 0;
    SmallVector<unsigned, 3> operands;
    /// Which capture a load reads, and whether its elements are integers.
    unsigned capture = 0;
    bool isInteger = false;
  };

  unsigned numValues = 0;
  unsigned numArguments = 0;
  unsigned yielded = 0;
  std::vector<Step> steps;
  /// Values that do not depend on the arguments, by number.
  std::vector<std::pair<unsigned, RegionNumber>> constants;
  SmallVector<Value> captures;
  /// The number of each captured scalar; unused for memrefs.
  SmallVector<unsigned> captureNumbers;
  std::vector<RegionLoad> loads;
  SmallVector<bool> isBound;
};

} // namespace mlir::attn

#endif // ATTN_ANALYSIS_FLOW_REGIONEVALUATOR_H
