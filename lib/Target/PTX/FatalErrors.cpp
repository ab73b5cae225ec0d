//===- FatalErrors.cpp - LLVM's fatal errors as values --------------------===//
//
// The backend answers what it cannot select with report_fatal_error, which ends
// the process: for an embedding compiler or a Python interpreter that is the
// worst answer. The form check refuses everything that is known to lead there;
// this is for the rest. LLVM's crash recovery jumps out of the failing thread's
// work, so its memory is lost and nothing else.
//
//===----------------------------------------------------------------------===//

#include "attn/Target/PTX/FatalErrors.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include <mutex>

using namespace mlir::attn;

/// Message of the fatal error on this thread, valid after a failed run.
static thread_local std::string fatalMessage;

static void handleFatalError(void *, const char *reason, bool) {
  fatalMessage = reason;
  if (llvm::CrashRecoveryContext *context =
          llvm::CrashRecoveryContext::GetCurrent())
    context->HandleExit(/*RetCode=*/1);
}

namespace {

/// Signal handlers and LLVM's fatal error handler belong to the whole process:
/// they are installed while at least one guarded run is active.
class HandlerScope {
public:
  HandlerScope() {
    std::lock_guard<std::mutex> lock(mutex);
    if (active++ == 0) {
      llvm::CrashRecoveryContext::Enable();
      llvm::install_fatal_error_handler(handleFatalError);
    }
  }
  ~HandlerScope() {
    std::lock_guard<std::mutex> lock(mutex);
    if (--active == 0) {
      llvm::remove_fatal_error_handler();
      llvm::CrashRecoveryContext::Disable();
    }
  }

private:
  static std::mutex mutex;
  static unsigned active;
};

} // namespace

std::mutex HandlerScope::mutex;
unsigned HandlerScope::active = 0;

std::optional<std::string>
mlir::attn::runGuarded(llvm::function_ref<void()> function) {
  HandlerScope handlers;
  fatalMessage.clear();
  llvm::CrashRecoveryContext context;
  if (context.RunSafely(function))
    return std::nullopt;
  if (fatalMessage.empty())
    return "signal, exit code " + std::to_string(context.RetCode);
  return std::exchange(fatalMessage, std::string());
}
