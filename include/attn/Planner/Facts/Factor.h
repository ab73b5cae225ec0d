//===- Factor.h - A calibrated number of the model of time ------*- C++ -*-===//
//
// Code has the formulas, a calibration file the numbers in them: each with what
// it was fitted to. Factors.def lists their names.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PLANNER_FACTS_FACTOR_H
#define ATTN_PLANNER_FACTS_FACTOR_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace mlir::attn {

/// Names all factors, in the order of their indices.
inline constexpr std::string_view kFactorNames[] = {
#define ATTN_FACTOR(name) name,
#include "attn/Planner/Facts/Factors.def"
#undef ATTN_FACTOR
};

/// Returns the index of the factor called `name`; one too many if there is
/// none.
constexpr unsigned findFactor(std::string_view name) {
  unsigned index = 0;
  for (std::string_view each : kFactorNames) {
    if (each == name)
      return index;
    ++index;
  }
  return index;
}

/// Holds the values of a calibration file.
class Calibration {
public:
  /// Reads a file's text. Errors name `name` and the place; a factor that is
  /// missing or unknown is one.
  static llvm::Expected<Calibration> parse(llvm::StringRef json,
                                           llvm::StringRef name);
  /// Returns the library's own calibration.
  static const Calibration &getShipped();

  /// Returns the board whose times the factors were fitted to.
  llvm::StringRef getBoard() const { return board; }
  double getValue(unsigned index) const { return values[index]; }

private:
  std::string board;
  std::vector<double> values;
};

/// Names a factor in code, where it stands for its value.
class Factor {
public:
  /// Takes a name of Factors.def: another one does not compile.
  constexpr explicit Factor(std::string_view name) : index(findFactor(name)) {
    if (index == std::size(kFactorNames))
      llvm_unreachable("expected a name of Factors.def");
  }
  /// Stands for the value, never for an integer, to which `b ? factor : 0`
  /// would round it.
  template <typename T, typename = std::enable_if_t<std::is_same_v<T, double>>>
  // NOLINTNEXTLINE(google-explicit-constructor): formulas read like formulas.
  operator T() const {
    return Calibration::getShipped().getValue(index);
  }

private:
  unsigned index;
};

} // namespace mlir::attn

#endif // ATTN_PLANNER_FACTS_FACTOR_H
