//===- Lexer.h - Names, numbers and operands of PTX -------------*- C++ -*-===//
//
// There is no separate token stream: PTX mnemonics contain dots and colons that
// are only meaningful by position.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_PTX_LEXER_H
#define ATTN_LIB_SIMULATOR_PTX_LEXER_H

#include "Syntax.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir::attn::sim {

/// What the parser reads the text with. Everything skips white space and
/// comments first.
class Lexer {
protected:
  Lexer(llvm::StringRef text, llvm::StringRef name)
      : cur(text.begin()), end(text.end()), fileName(name) {}

  const char *cur, *end;
  llvm::StringRef fileName;
  unsigned line = 1;
  /// Inside of what LLVM says, in comments, to be inline assembly.
  bool isInlineAsm = false;
  /// Braces, brackets and parentheses around what is read, and how many there
  /// may be.
  unsigned depth = 0;
  static constexpr unsigned kMostDepth = 256;

  llvm::Error error(const llvm::Twine &message);
  llvm::Error expected(llvm::StringRef what);
  void skipSpace();
  void skipLineComment();
  bool at(char c);
  bool consume(char c);
  llvm::Error require(char c);
  /// A name without dots.
  llvm::StringRef name();
  /// A register or symbol, with component suffixes such as `%tid.x`.
  llvm::StringRef dottedName();
  /// A directive such as `.visible`: returned without the dot.
  llvm::StringRef directive();
  llvm::StringRef peekDirective();
  llvm::Error skipString();
  llvm::Expected<int64_t> integer();
  /// Any literal, with sign.
  llvm::Error number(AstOperand &op);
  llvm::Error skipBraces();
  /// Parses what stands one level deeper: recursion has an end.
  llvm::Error nest(llvm::function_ref<llvm::Error()> parse);
  llvm::Error failNesting();
  llvm::Error parseSequence(AstOperand &op, char close);
  llvm::Error parseOperand(AstOperand &op);

  static bool isNameStart(char c) {
    return llvm::isAlpha(c) || c == '_' || c == '$' || c == '%';
  }
  static bool isNameChar(char c) { return isNameStart(c) || llvm::isDigit(c); }
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_PTX_LEXER_H
