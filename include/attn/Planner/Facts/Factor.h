//===- Factor.h - A calibrated number of the model of time ------*- C++ -*-===//
//
// Code has the formulas, the calibration file of a board the numbers in them,
// each with how far off estimates were where it was fitted. Factors.def lists
// their names and meanings.
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
#define ATTN_PLAN_FACTOR(name, meaning) name,
#include "attn/Planner/Facts/Factors.def"
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

struct TargetRow;
struct ProblemFacts;

/// Holds the values of a calibration file.
class Calibration {
public:
  /// Reads a file's text. Errors name `name` and the place; a factor that is
  /// missing or unknown is one. A file may name a board of the library
  /// (`clocks_of`) whose file has the factors that it lacks, all but the
  /// scales.
  static llvm::Expected<Calibration> parse(llvm::StringRef json,
                                           llvm::StringRef name);
  /// Returns the library's own calibration of a board such as "h200"; null if
  /// there is none.
  static const Calibration *findShipped(llvm::StringRef board);
  /// Returns the calibration in use: that of --calibration, else of the
  /// innermost CalibrationScope of this thread, else that of the H200.
  static const Calibration &getUsed();
  /// Forwards the former name of getUsed.
  static const Calibration &getShipped() { return getUsed(); }

  /// Returns the board whose times the factors were fitted to.
  llvm::StringRef getBoard() const { return board; }
  double getValue(unsigned index) const { return values[index]; }
  /// Returns what the board's time of `schedule` is in times of the formulas'
  /// for a problem.
  double getScale(const ProblemFacts &facts, llvm::StringRef schedule) const;

private:
  std::string board;
  std::vector<double> values;
};

/// Lets factors have the values of a target's board as long as it lives, in
/// this thread.
class CalibrationScope {
public:
  explicit CalibrationScope(const TargetRow &target);
  ~CalibrationScope();
  CalibrationScope(const CalibrationScope &) = delete;
  CalibrationScope &operator=(const CalibrationScope &) = delete;

private:
  const Calibration *before;
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
    return Calibration::getUsed().getValue(index);
  }

private:
  unsigned index;
};

} // namespace mlir::attn

#endif // ATTN_PLANNER_FACTS_FACTOR_H
