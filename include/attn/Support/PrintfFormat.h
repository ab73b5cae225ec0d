//===- PrintfFormat.h - Formats of printf on a GPU --------------*- C++ -*-===//
//
// The compiler checks arguments against these formats, and the simulator prints
// by them (CUDA C++ Programming Guide, Formatted Output).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SUPPORT_PRINTFFORMAT_H
#define ATTN_SUPPORT_PRINTFFORMAT_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace mlir::attn {

/// An argument that a format takes, in the order of the list.
struct PrintfArgument {
  enum class Kind { Integer, Float, String, Pointer };
  Kind kind = Kind::Integer;
  /// In the list, where it is aligned to them: 4 or 8.
  unsigned bytes = 4;
};

/// Text, or a conversion of one argument and of the numbers that its stars take
/// before it.
struct PrintfPiece {
  /// The text as it is printed; of a conversion as it stands in the format.
  std::string text;
  /// None for text.
  llvm::SmallVector<PrintfArgument, 1> arguments;
};

/// Takes a format apart. Refuses conversions that a GPU's printf does not have,
/// with the conversion and its place.
llvm::Expected<llvm::SmallVector<PrintfPiece>>
parsePrintfFormat(llvm::StringRef format);

/// Prints a conversion of a parsed format: of each argument its 8 bytes, as
/// the list has them, and of a string the text.
std::string printConversion(const PrintfPiece &piece,
                            llvm::ArrayRef<uint64_t> arguments,
                            llvm::StringRef string = "");

} // namespace mlir::attn

#endif // ATTN_SUPPORT_PRINTFFORMAT_H
