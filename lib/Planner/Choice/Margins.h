//===- Margins.h - How schedules rank beside each other ---------*- C++ -*-===//
//
// Where a schedule lost to others on a board, or was not timed beside them, its
// plans come first only if others take several times as long. Data/margins.json
// has these numbers, as rows for classes of problems and plans.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_PLANNER_CHOICE_MARGINS_H
#define ATTN_LIB_PLANNER_CHOICE_MARGINS_H

#include "attn/Planner/Facts/Condition.h"
#include "attn/Planner/Facts/PlanModel.h"
#include <vector>

namespace mlir::attn {

/// Holds the rows of a file of margins.
class Margins {
public:
  /// Reads a file's text. Errors name `name` and the row.
  static llvm::Expected<Margins> parse(llvm::StringRef json,
                                       llvm::StringRef name);
  /// Returns the library's own rows.
  static const Margins &getShipped();

  /// Returns the largest margin of the rows that hold for a plan with its
  /// estimate, or 1.
  double find(const ProblemFacts &facts, PlanAttrInterface plan,
              const TargetRow &target, const PlanEstimate &estimate) const;

private:
  using Conditions = std::vector<std::pair<std::string, Condition>>;
  struct Row {
    std::string schedule;
    double margin = 1;
    /// Empty: all chips.
    std::vector<std::string> chips;
    /// Another schedule that has to take the problem; empty for none.
    std::string beside;
    Conditions problem, plan;
  };
  static llvm::Expected<Row> readRow(const llvm::json::Object &object);

  std::vector<Row> rows;
};

} // namespace mlir::attn

#endif // ATTN_LIB_PLANNER_CHOICE_MARGINS_H
