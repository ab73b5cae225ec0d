//===- RegisterModel.h - Registers that ptxas will need ---------*- C++ -*-===//
//
// ptxas decides how many registers a kernel needs. The model is a sum of terms,
// each a weight times features of a problem with a plan, for the problems and
// plans that its conditions name. The terms are data:
// Data/registers-<version>.json, which scripts/fit-registers.py fits to what
// ptxas made of a sweep's kernels.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PLANNER_FACTS_REGISTERMODEL_H
#define ATTN_PLANNER_FACTS_REGISTERMODEL_H

#include "attn/Planner/Facts/Condition.h"
#include "attn/Planner/Facts/ResourceSum.h"
#include "llvm/ADT/StringMap.h"
#include <vector>

namespace mlir::attn {

/// Holds the features of a plan for a problem.
struct RegisterFeatures {
#define REGISTER_FEATURE(id, name) int64_t id = 0;
#include "attn/Planner/Facts/RegisterFeatures.def"
#undef REGISTER_FEATURE
};

/// Holds the terms of a data file.
class RegisterModel {
public:
  /// Reads a file's text. Errors name `name` and the place.
  static llvm::Expected<RegisterModel> parse(llvm::StringRef json,
                                             llvm::StringRef name);
  /// Returns the library's own model.
  static const RegisterModel &getShipped();

  /// Returns the version of ptxas that the model is of, such as "13.0".
  llvm::StringRef getVersion() const { return version; }

  /// Returns the registers of a thread of a kernel, such as "copied": those of
  /// all terms, or of the terms called `term`.
  ResourceSum count(llvm::StringRef kernel, const RegisterFeatures &features,
                    llvm::StringRef term = "") const;

  /// Returns a limit that the file names, such as "decode.columns".
  int64_t getLimit(llvm::StringRef limit) const;

private:
  using Conditions = std::vector<std::pair<unsigned, Condition>>;
  struct Term {
    std::string name;
    double weight = 0;
    /// Features, by their indices, that multiply the weight, and the one that
    /// says how often the result counts.
    std::vector<unsigned> factors;
    std::optional<unsigned> count;
    /// Bounds the product of the factors.
    int64_t most = 0;
    Conditions all;
    /// One of these has to hold, if there are any.
    std::vector<Conditions> any;
  };
  class Reader;

  std::string version;
  llvm::StringMap<std::vector<Term>> kernels;
  llvm::StringMap<int64_t> limits;
};

} // namespace mlir::attn

#endif // ATTN_PLANNER_FACTS_REGISTERMODEL_H
