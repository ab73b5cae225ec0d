//===- Request.h - A request of the C interface -----------------*- C++ -*-===//

#ifndef ATTN_LIB_CAPI_REQUEST_H
#define ATTN_LIB_CAPI_REQUEST_H

#include "attn-c/Attn.h"
#include "attn/Compile/Compiler.h"
#include "attn/Compile/Problem.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/SourceMgr.h"
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Outside of any namespace, as C declares it.
struct AttnRequest {
  std::optional<std::string> text;
  std::string fileName;
  /// In the order in which they were set.
  std::vector<std::pair<std::string, std::string>> options;
};

namespace mlir::attn {

/// The text of `ref`; empty for a null pointer.
inline std::string copyString(AttnStringRef ref) {
  return ref.data ? std::string(ref.data, ref.length) : std::string();
}

/// `text` as the C interface hands it out. Lives as long as `text`.
inline AttnStringRef toC(const std::string &text) {
  return {text.data(), text.size()};
}

/// A request whose options were read.
struct ParsedRequest {
  /// Absent when the problem comes from text.
  std::optional<Problem> problem;
  CompileOptions compile;
};

/// Reads the options. Errors name the option: `option "chip": ...`, or are
/// those of parseProblem.
llvm::Expected<ParsedRequest> parseRequest(const AttnRequest &request);

/// Builds or parses the module and verifies it; null after diagnostics. The
/// text of the problem lies in `sources` then.
OwningOpRef<ModuleOp> makeModule(const AttnRequest &request,
                                 const ParsedRequest &parsed,
                                 MLIRContext &context,
                                 llvm::SourceMgr &sources);

/// Runs `function` so that nothing in it ends the process. The message of a
/// fatal error, or nothing.
std::optional<std::string> runSafely(llvm::function_ref<void()> function);

} // namespace mlir::attn

#endif // ATTN_LIB_CAPI_REQUEST_H
