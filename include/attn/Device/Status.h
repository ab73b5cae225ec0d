//===- Status.h - Errors of devices -----------------------------*- C++ -*-===//

#ifndef ATTN_DEVICE_STATUS_H
#define ATTN_DEVICE_STATUS_H

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

namespace mlir::attn::device {

/// Error codes, numbered as CUresult.
enum class Status : int {
#define STATUS(NAME, NUMBER, SPELLING, TEXT) NAME = NUMBER,
#include "attn/Device/Status.def"
};

/// Returns the name of CUresult, such as "CUDA_ERROR_INVALID_VALUE"; empty for
/// a number that has none here.
llvm::StringRef getStatusName(int status);
/// Returns a few words about it.
llvm::StringRef getStatusText(int status);

/// Says what went wrong, with its code.
class StatusError : public llvm::ErrorInfo<StatusError> {
public:
  static char ID;
  StatusError(Status status, std::string message)
      : status(status), text(std::move(message)) {}
  Status getStatus() const { return status; }
  void log(llvm::raw_ostream &os) const override { os << text; }
  std::error_code convertToErrorCode() const override {
    return llvm::inconvertibleErrorCode();
  }

private:
  Status status;
  std::string text;
};

/// Makes a StatusError.
llvm::Error fail(Status status, const llvm::Twine &message);

/// Takes an error apart: its code (Unknown where it is no StatusError) and its
/// text.
std::pair<Status, std::string> takeStatus(llvm::Error error);

} // namespace mlir::attn::device

#endif // ATTN_DEVICE_STATUS_H
