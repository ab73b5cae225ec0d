//===- PlanTable.h - Plans that were measured -------------------*- C++ -*-===//
//
// A table says which plan an attention gets on a chip, whatever the cost model
// expects: somebody timed it. docs/Autotuning.md describes its JSON form. One
// table is part of the library.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PLANNER_CHOICE_PLANTABLE_H
#define ATTN_PLANNER_CHOICE_PLANTABLE_H

#include "attn/Planner/Facts/ProblemFacts.h"
#include "attn/Target/TargetTable.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <string>
#include <vector>

namespace mlir::attn {

/// Returns what a table knows an attention by: its types and mask, the extents
/// of Options.def and the names of its features. An extent that the launch
/// decides is "dynamic".
llvm::json::Object describeProblem(const ProblemFacts &facts);

/// One plan of a table.
struct PlanTableEntry {
  std::string chip;
  /// As describeProblem gives it; extents may also be [least, most].
  llvm::json::Object problem;
  /// As IR prints it, such as "#attn.split_q<block_m = 128>".
  std::string plan;
  /// Microseconds that one call took, and on which board.
  double microseconds = 0;
  std::string board;
};

/// Plans by problem and chip.
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
  /// The first entry for this problem and chip, or null.
  const PlanTableEntry *find(const ProblemFacts &facts,
                             llvm::StringRef chip) const;

private:
  std::string name;
  std::vector<PlanTableEntry> entries;
};

} // namespace mlir::attn

#endif // ATTN_PLANNER_CHOICE_PLANTABLE_H
