//===- SizeExpr.h - integer expressions over tensor sizes -------*- C++ -*-===//
//
// The launch record states the grid and the workspace sizes as expressions over
// the sizes and strides of the launch's tensors, so that one record serves
// every problem size.
//
//   expr   := term (('+' | '-') term)*
//   term   := factor (('*' | '/' | '%') factor)*
//   factor := INTEGER | NAME '.dim' INTEGER | NAME '.stride' INTEGER | 'sms'
//           | ('ceildiv' | 'min' | 'max') '(' expr ',' expr ')'
//           | '-' factor | '(' expr ')'
//
// `/` rounds towards minus infinity, `%` takes the sign of its divisor and
// `ceildiv` rounds towards plus infinity. Values are signed 64-bit integers;
// overflow is an error. `sms` is the number of multiprocessors of the device.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_LAUNCH_SIZEEXPR_H
#define ATTN_LAUNCH_SIZEEXPR_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>
#include <string>

namespace mlir::attn {

/// A size or stride of a tensor, as an expression names it, or the number of
/// the device's multiprocessors.
struct SizeSymbol {
  /// Empty for a number of the device, `sms`.
  std::string tensor;
  bool isDevice() const { return tensor.empty(); }
  /// True for `NAME.strideI` (in elements), false for `NAME.dimI`.
  bool isStride = false;
  unsigned index = 0;
};

/// An integer expression, parsed or built from others. Evaluation is cheap.
class SizeExpr {
public:
  enum class Op : uint8_t {
    Constant,
    Symbol,
    Add,
    Sub,
    Mul,
    FloorDiv,
    CeilDiv,
    Mod,
    Min,
    Max,
    Neg
  };
  /// One step in postfix order: `value` is a constant or an index into the
  /// symbols. Others take one value (Neg) or two from a stack.
  struct Step {
    Op op;
    int64_t value;
  };

  /// Gives the value of a symbol, or nothing when it has none.
  using Lookup = llvm::function_ref<std::optional<int64_t>(const SizeSymbol &)>;

  /// The constant 0.
  SizeExpr() : SizeExpr(0) {}
  /// The constant `value`.
  SizeExpr(int64_t value);
  /// The extent of dimension `dim` of a tensor.
  static SizeExpr getDim(llvm::StringRef tensor, unsigned dim);
  /// The number of the device's multiprocessors.
  static SizeExpr getMultiprocessors();
  /// `left / right` rounded towards plus infinity.
  static SizeExpr ceilDiv(const SizeExpr &left, const SizeExpr &right);
  // Sums stand in parentheses in the text.
  SizeExpr operator+(const SizeExpr &right) const;
  SizeExpr operator-(const SizeExpr &right) const;
  SizeExpr operator*(const SizeExpr &right) const;

  /// Parses `text`. Errors name the column (from 1) and what was expected.
  static llvm::Expected<SizeExpr> parse(llvm::StringRef text);

  /// Evaluates the expression. Errors: a symbol without value, division by
  /// zero, overflow.
  llvm::Expected<int64_t> evaluate(Lookup lookup) const;

  /// Every symbol that the expression mentions, in order of appearance.
  llvm::ArrayRef<SizeSymbol> getSymbols() const { return symbols; }
  /// The text that was parsed, or one that means the same.
  llvm::StringRef getText() const { return text; }
  /// How the value is found, for whoever emits code that finds it.
  llvm::ArrayRef<Step> getSteps() const { return steps; }

private:
  friend class SizeExprParser;
  static SizeExpr combine(Op op, const SizeExpr &left, const SizeExpr &right,
                          std::string text);

  std::string text;
  llvm::SmallVector<Step, 4> steps;
  llvm::SmallVector<SizeSymbol, 2> symbols;
};

} // namespace mlir::attn

#endif // ATTN_LAUNCH_SIZEEXPR_H
