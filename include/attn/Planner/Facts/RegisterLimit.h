//===- RegisterLimit.h - A number that ptxas was found to need --*- C++ -*-===//
//
// Code says what a limit decides, the data file of a version of ptxas where it
// is. RegisterLimits.def lists their names.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PLANNER_FACTS_REGISTERLIMIT_H
#define ATTN_PLANNER_FACTS_REGISTERLIMIT_H

#include "attn/Planner/Facts/RegisterModel.h"

namespace mlir::attn {

/// Names a limit in code, where it stands for its value.
class RegisterLimit {
public:
  /// Takes a name of RegisterLimits.def: another one does not compile.
  constexpr explicit RegisterLimit(std::string_view name)
      : index(findRegisterLimit(name)) {
    if (index == std::size(kRegisterLimitNames))
      llvm_unreachable("expected a name of RegisterLimits.def");
  }
  // NOLINTNEXTLINE(google-explicit-constructor): it reads like a number.
  operator int64_t() const { return RegisterModel::getUsed().getLimit(index); }

private:
  unsigned index;
};

} // namespace mlir::attn

#endif // ATTN_PLANNER_FACTS_REGISTERLIMIT_H
