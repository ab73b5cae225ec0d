//===- TextReader.h - Reading the text form of layouts ----------*- C++ -*-===//

#ifndef ATTN_LIB_LAYOUT_TEXTREADER_H
#define ATTN_LIB_LAYOUT_TEXTREADER_H

#include "attn/Layout/LinearLayout.h"

namespace mlir::attn {

/// Consumes tokens from the front of a text; white space separates tokens and
/// is otherwise ignored. Errors give the position in the text.
class TextReader {
public:
  explicit TextReader(llvm::StringRef text) : whole(text), rest(text) {}

  /// True and consumed when the text goes on with `token`.
  bool accept(llvm::StringRef token);
  llvm::Error expect(llvm::StringRef token);
  llvm::Error expectEnd();
  llvm::Expected<int64_t> integer();
  llvm::Expected<llvm::StringRef> identifier();
  llvm::Expected<LinearLayout> linearLayout();
  /// `integer, integer, ...`, at least one.
  llvm::Expected<Coords> integers();
  /// An error "expected <what>, got ...".
  llvm::Error unexpected(llvm::StringRef what);

private:
  void skipSpace() { rest = rest.ltrim(); }

  llvm::StringRef whole;
  llvm::StringRef rest;
};

} // namespace mlir::attn

#endif // ATTN_LIB_LAYOUT_TEXTREADER_H
