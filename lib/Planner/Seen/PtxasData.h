//===- PtxasData.h - What ptxas was seen to spill ---------------*- C++ -*-===//
//
// Sums of registers do not tell the last few. Data/ptxas-<version>.json has
// what a sweep over the planner's choices found beyond them: rows for classes
// of plans and problems that say "spills" or "fits", the first that holds
// counts. scripts/ptxas-data.py adds rows from the state of a sweep.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_PLANNER_SEEN_PTXASDATA_H
#define ATTN_LIB_PLANNER_SEEN_PTXASDATA_H

#include "attn/Planner/Facts/Condition.h"
#include "attn/Planner/Facts/PlanModel.h"
#include "llvm/ADT/StringMap.h"
#include <optional>

namespace mlir::attn {

struct CopiedExtents;

/// Holds what the model of a schedule adds to a problem's features.
struct KnownSums {
  /// Registers of a thread, the same with probabilities of two blocks, and
  /// those that are left to it.
  int64_t registers = 0, registersAhead = 0, spare = 0;
  /// Warps exchange probabilities.
  bool gathers = false;
  /// Features of latent attention; see Mla.h.
  bool fillsTiles = false, renewsEntry = false, loadsByTma = false;
  int64_t rows = 0, packedHeads = 1;
};

/// Names a plan for a problem, of which rows are asked.
struct PtxasCase {
  const ProblemFacts &facts;
  PlanAttrInterface plan;
  const TargetRow &target;
  /// Keys of a block.
  int64_t blockN = 0;
  const CopiedExtents *copied = nullptr;
  KnownSums known;
};

/// Holds the rows of a data file.
class PtxasData {
public:
  /// Reads a file's text. Errors name `name` and the place.
  static llvm::Expected<PtxasData> parse(llvm::StringRef json,
                                         llvm::StringRef name);
  /// Returns the library's own data.
  static const PtxasData &getShipped();

  /// Returns the version of ptxas that the data is of, such as "13.0".
  llvm::StringRef getVersion() const { return version; }

  /// Returns true if the plan is known to spill, false if it is known to fit,
  /// and nothing where no row holds.
  std::optional<bool> findSpills(const PtxasCase &plan) const;

  /// Lists the values of parameters of the plans of `schedule` that rows know
  /// to fit, in the order of the rows.
  std::vector<std::vector<std::pair<std::string, std::string>>>
  listFitting(llvm::StringRef schedule) const;

  /// Lists the pairs of a schedule and a parameter of its plans that rows name.
  std::vector<std::pair<std::string, std::string>> listParameters() const;

private:
  /// Conditions on features, by their index, and on parameters, by their name.
  struct Conditions {
    std::vector<std::pair<unsigned, Condition>> features;
    std::vector<std::pair<std::string, Condition>> parameters;
  };
  struct Row {
    bool spills = false;
    /// Empty: all chips.
    std::vector<std::string> chips;
    std::optional<Condition> generation;
    Conditions all;
    /// One of these has to hold, if there are any.
    std::vector<Conditions> any;
    std::vector<std::pair<std::string, std::string>> exact;
  };
  class Reader;
  class Asker;

  std::string version;
  llvm::StringMap<std::vector<Row>> rows;
};

} // namespace mlir::attn

#endif // ATTN_LIB_PLANNER_SEEN_PTXASDATA_H
