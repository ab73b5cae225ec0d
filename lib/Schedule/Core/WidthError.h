//===- WidthError.h - Heads wider than a schedule takes ---------*- C++ -*-===//
//
// Which of the schedules that refuse a problem takes the widest heads is known
// from their errors.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_CORE_WIDTHERROR_H
#define ATTN_LIB_SCHEDULE_CORE_WIDTHERROR_H

#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::attn {

/// Why a schedule refuses a head that is too wide for it.
class WidthError : public llvm::ErrorInfo<WidthError> {
public:
  static char ID;

  WidthError(std::string text, int64_t mostColumns)
      : text(std::move(text)), mostColumns(mostColumns) {}
  void log(llvm::raw_ostream &os) const override { os << text; }
  std::error_code convertToErrorCode() const override {
    return llvm::inconvertibleErrorCode();
  }
  int64_t getMostColumns() const { return mostColumns; }

private:
  std::string text;
  int64_t mostColumns;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_CORE_WIDTHERROR_H
