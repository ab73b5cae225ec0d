//===- OptionError.h - Options that a schedule does not take ----*- C++ -*-===//
//
// Schedules that take all options of a problem, but not its extents, say more
// about it than those that lack an option, or whose instructions a chip lacks.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_CORE_OPTIONERROR_H
#define ATTN_LIB_SCHEDULE_CORE_OPTIONERROR_H

#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::attn {

/// Refuses an option of a problem that a schedule does not take at all.
class OptionError : public llvm::ErrorInfo<OptionError> {
public:
  static char ID;

  explicit OptionError(std::string text) : text(std::move(text)) {}
  void log(llvm::raw_ostream &os) const override { os << text; }
  std::error_code convertToErrorCode() const override {
    return llvm::inconvertibleErrorCode();
  }

private:
  std::string text;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_CORE_OPTIONERROR_H
