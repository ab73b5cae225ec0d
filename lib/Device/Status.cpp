//===- Status.cpp - Errors of devices -------------------------------------===//

#include "attn/Device/Status.h"

using namespace mlir::attn::device;

char StatusError::ID = 0;

llvm::StringRef mlir::attn::device::getStatusName(int status) {
  switch (status) {
#define STATUS(NAME, NUMBER, SPELLING, TEXT)                                   \
  case NUMBER:                                                                 \
    return SPELLING;
#include "attn/Device/Status.def"
  }
  return "";
}

llvm::StringRef mlir::attn::device::getStatusText(int status) {
  switch (status) {
#define STATUS(NAME, NUMBER, SPELLING, TEXT)                                   \
  case NUMBER:                                                                 \
    return TEXT;
#include "attn/Device/Status.def"
  }
  return "";
}

llvm::Error mlir::attn::device::fail(Status status,
                                     const llvm::Twine &message) {
  return llvm::make_error<StatusError>(status, message.str());
}

std::pair<Status, std::string>
mlir::attn::device::takeStatus(llvm::Error error) {
  std::pair<Status, std::string> taken(Status::Success, "");
  llvm::handleAllErrors(
      std::move(error),
      [&](const StatusError &e) { taken = {e.getStatus(), e.message()}; },
      [&](const llvm::ErrorInfoBase &e) {
        taken = {Status::Unknown, e.message()};
      });
  return taken;
}
