//===- Suggest.h - The name that a wrong one stands for ---------*- C++ -*-===//

#ifndef ATTN_SUPPORT_SUGGEST_H
#define ATTN_SUPPORT_SUGGEST_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace mlir::attn {

/// A name that people know something by, and ours.
struct Synonym {
  llvm::StringLiteral theirs;
  llvm::StringLiteral ours;
};

/// Returns the one of `known` that `got` most likely stands for: a synonym of
/// it, the same but for case and punctuation, one that begins or ends with it,
/// or one in which few letters differ. Empty if none is near.
llvm::StringRef findNearest(llvm::StringRef got,
                            llvm::ArrayRef<llvm::StringRef> known,
                            llvm::ArrayRef<Synonym> synonyms = {});

/// Returns the end of a message: "; did you mean 'NAME'?", or nothing.
std::string suggest(llvm::StringRef got, llvm::ArrayRef<llvm::StringRef> known,
                    llvm::ArrayRef<Synonym> synonyms = {});

} // namespace mlir::attn

#endif // ATTN_SUPPORT_SUGGEST_H
