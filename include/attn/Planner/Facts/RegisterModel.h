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
#include <string_view>
#include <vector>

namespace mlir::attn {

/// Holds the features of a plan for a problem.
struct RegisterFeatures {
#define REGISTER_FEATURE(id, name) int64_t id = 0;
#include "attn/Planner/Facts/RegisterFeatures.def"
#undef REGISTER_FEATURE
};

/// Names all limits, in the order of their indices.
inline constexpr std::string_view kRegisterLimitNames[] = {
#define REGISTER_LIMIT(name, meaning) name,
#include "attn/Planner/Facts/RegisterLimits.def"
};

/// Returns the index of the limit called `name`; one too many if there is none.
constexpr unsigned findRegisterLimit(std::string_view name) {
  unsigned index = 0;
  for (std::string_view each : kRegisterLimitNames) {
    if (each == name)
      return index;
    ++index;
  }
  return index;
}

/// Holds the terms and limits of a data file.
class RegisterModel {
public:
  /// Reads a file's text. Errors name `name` and the place.
  static llvm::Expected<RegisterModel> parse(llvm::StringRef json,
                                             llvm::StringRef name);
  /// Returns the model of this process: the library's own, unless
  /// useRegisterModel read another one.
  static const RegisterModel &getUsed();
  /// Forwards the former name of getUsed.
  static const RegisterModel &getShipped() { return getUsed(); }

  /// Returns the version of ptxas that the model is of, such as "13.0".
  llvm::StringRef getVersion() const { return version; }

  /// Returns the registers of a thread of a kernel, such as "copied": those of
  /// all terms, or of the terms called `term`.
  ResourceSum count(llvm::StringRef kernel, const RegisterFeatures &features,
                    llvm::StringRef term = "") const;

  /// Returns a limit by its index among kRegisterLimitNames.
  int64_t getLimit(unsigned index) const { return limits[index]; }
  /// Returns the limit called `name`, such as "decode.columns".
  int64_t getLimit(llvm::StringRef name) const {
    return limits[findRegisterLimit(name)];
  }

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
  std::vector<int64_t> limits;
};

/// Lets this process plan by the model of a file, in the place of the library's
/// own. Call it before anything is planned. An error says what the file lacks.
llvm::Error useRegisterModel(llvm::StringRef path);

} // namespace mlir::attn

#endif // ATTN_PLANNER_FACTS_REGISTERMODEL_H
