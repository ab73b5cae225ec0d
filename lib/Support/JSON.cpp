//===- JSON.cpp - JSON from outside ---------------------------------------===//

#include "attn/Support/JSON.h"

using namespace mlir::attn;

/// Offset of the bracket that lies too deep, or npos. Brackets in strings do
/// not count; text that is not JSON is the parser's to refuse.
static size_t findTooDeep(llvm::StringRef text) {
  unsigned depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
    case '"':
      for (++i; i < text.size() && text[i] != '"'; ++i)
        i += text[i] == '\\';
      break;
    case '[':
    case '{':
      if (++depth > kMaxJSONDepth)
        return i;
      break;
    case ']':
    case '}':
      depth -= depth > 0;
      break;
    default:
      break;
    }
  }
  return llvm::StringRef::npos;
}

llvm::Expected<llvm::json::Value> mlir::attn::parseJSON(llvm::StringRef text) {
  size_t place = findTooDeep(text);
  if (place != llvm::StringRef::npos)
    return llvm::createStringError(
        "expected at most " + llvm::Twine(kMaxJSONDepth) +
        " nested arrays and objects, got more at line " +
        llvm::Twine(text.take_front(place).count('\n') + 1));
  return llvm::json::parse(text);
}
