//===- JSON.h - JSON from outside -------------------------------*- C++ -*-===//

#ifndef ATTN_SUPPORT_JSON_H
#define ATTN_SUPPORT_JSON_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace mlir::attn {

/// Arrays and objects that may lie inside each other; no file of the project
/// needs more than ten.
constexpr unsigned kMaxJSONDepth = 64;

/// Parses a JSON document. Everything that reads JSON takes this: LLVM's parser
/// descends by recursion, and a text of brackets ends the process there, which
/// is an error here.
llvm::Expected<llvm::json::Value> parseJSON(llvm::StringRef text);

} // namespace mlir::attn

#endif // ATTN_SUPPORT_JSON_H
