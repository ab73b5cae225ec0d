//===- PlanTable.h - Plans that were measured -------------------*- C++ -*-===//
//
// A table says which plan the attentions of a class get on a chip, whatever the
// cost model expects: somebody timed it. docs/Autotuning.md describes its JSON
// form. One table is part of the library.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PLANNER_CHOICE_PLANTABLE_H
#define ATTN_PLANNER_CHOICE_PLANTABLE_H

#include "attn/Planner/Facts/Condition.h"
#include "attn/Planner/Facts/ProblemFacts.h"
#include "attn/Target/TargetTable.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <optional>
#include <string>
#include <vector>

namespace mlir::attn {

/// Returns what a table knows an attention by: its types and mask, the extents
/// of Options.def and the names of its features. An extent that the launch
/// decides is "dynamic".
llvm::json::Object describeProblem(const ProblemFacts &facts);

/// One row of a table: the plan of a class of problems.
struct PlanTableEntry {
  std::string chip;
  /// Names of boards (Boards.json); empty for all that carry the chip.
  std::vector<std::string> boards;
  /// Decides between rows that cover a problem: the highest rank is taken.
  int64_t rank = 0;
  /// Conditions on fields that describeProblem gives, and the exact features,
  /// or nothing for any.
  std::vector<std::pair<std::string, Condition>> fields;
  std::optional<std::vector<std::string>> features;
  /// The row's line in the table's text.
  unsigned line = 0;
  /// As IR prints it, such as "#attn.split_q<block_m = 128>".
  std::string plan;
  /// Microseconds that one call took, and on which board.
  double microseconds = 0;
  std::string board;
};

/// Plans by class of problems and chip.
class PlanTable {
public:
  /// Reads a table. Errors name `name` and the place:
  /// "plan table x.json: plans[2].chip: expected a string".
  static llvm::Expected<PlanTable> parse(llvm::StringRef json,
                                         llvm::StringRef name);
  /// The table of a file; an error also when it cannot be read.
  static llvm::Expected<PlanTable> read(llvm::StringRef path);
  /// The library's own.
  static const PlanTable &getShipped();

  llvm::StringRef getName() const { return name; }
  llvm::ArrayRef<PlanTableEntry> getEntries() const { return entries; }
  /// Returns the row of the highest rank that covers this problem on a target,
  /// or null.
  const PlanTableEntry *find(const ProblemFacts &facts,
                             const TargetRow &target) const;

private:
  std::string name;
  std::vector<PlanTableEntry> entries;
};

} // namespace mlir::attn

#endif // ATTN_PLANNER_CHOICE_PLANTABLE_H
