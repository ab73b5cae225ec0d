//===- TextCheck.cpp - Text that MLIR's parser survives -------------------===//
//
// MLIR's parser descends by recursion, and a stack that is used up ends the
// process. Of the language only what hides brackets matters here: strings and
// comments.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/TextCheck.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

/// More than any kernel has.
static constexpr unsigned kMaxNesting = 256;

/// MLIR's parser reads the number of a value into 32 bits, and makes a table of
/// as many entries as the number of a result says.
static constexpr uint64_t kMaxNumber = UINT32_MAX - 1, kMaxResults = 65535;

/// True if `text` starts with digits of a number above `limit`.
static bool isAbove(StringRef text, uint64_t limit) {
  StringRef digits = text.take_while(llvm::isDigit);
  uint64_t number;
  return !digits.empty() && (digits.getAsInteger(10, number) || number > limit);
}

/// The end of the comment or string that starts at `begin`, or `begin`.
static size_t skipHidden(StringRef text, size_t begin) {
  StringRef rest = text.substr(begin);
  if (rest.starts_with("//"))
    return std::min(text.find('\n', begin), text.size());
  if (!rest.starts_with("\""))
    return begin;
  size_t i = begin + 1;
  for (; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
    i += text[i] == '\\';
  return std::min(i + 1, text.size());
}

std::optional<TextProblem> attn::findTextProblem(StringRef text) {
  if (text.starts_with("ML\xefR"))
    return std::nullopt;
  unsigned depth = 0, line = 1;
  // A run of minus signs is a chain of negations.
  unsigned negations = 0;
  size_t lineStart = 0;
  auto fail = [&](size_t place, const llvm::Twine &message) {
    return TextProblem{line, static_cast<unsigned>(place - lineStart + 1),
                       message.str()};
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (size_t end = skipHidden(text, i); end != i) {
      i = end - 1;
      continue;
    }
    char c = text[i];
    if (c == '\n') {
      ++line;
      lineStart = i + 1;
    }
    if (llvm::isSpace(c))
      continue;
    negations = c == '-' ? negations + 1 : 0;
    bool isArrow = c == '>' && i && text[i - 1] == '-';
    if (StringRef("([{<").contains(c))
      ++depth;
    else if (StringRef(")]}>").contains(c) && !isArrow && depth)
      --depth;
    if (depth + negations > kMaxNesting)
      return fail(i, "expected at most " + llvm::Twine(kMaxNesting) +
                         " nested brackets");
    // %N, and the results and values of %name:N and %name#N.
    bool isValue = c == '%';
    bool isOfValue =
        (c == ':' || c == '#') && i &&
        (llvm::isAlnum(text[i - 1]) || StringRef("_$.-").contains(text[i - 1]));
    uint64_t limit = isValue ? kMaxNumber : kMaxResults;
    if ((isValue || isOfValue) && isAbove(text.substr(i + 1), limit))
      return fail(i, "expected the number of a value to be at most " +
                         llvm::Twine(limit) + ", got " +
                         text.substr(i + 1).take_while(llvm::isDigit));
  }
  return std::nullopt;
}
