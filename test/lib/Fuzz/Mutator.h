//===- Mutator.h - Inputs that are nearly right -----------------*- C++ -*-===//
//
// Changes bytes, tokens, numbers, lines and bracketed groups of real inputs.
// The result depends on the corpus, the seed and the input's number only.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_LIB_FUZZ_MUTATOR_H
#define ATTN_TEST_LIB_FUZZ_MUTATOR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>
#include <vector>

namespace mlir::attn::fuzz {

/// The line between the parts of a case, such as PTX and its launch record.
inline constexpr llvm::StringLiteral kPartSeparator = "\n@@@@\n";

/// One real input: a target's name and its parts, joined by kPartSeparator.
struct Seed {
  std::string target, name, text;
};

/// Makes changed copies of the inputs of a corpus.
class Mutator {
public:
  explicit Mutator(llvm::ArrayRef<Seed> corpus);

  struct Case {
    llvm::StringRef target;
    std::string text;
  };
  /// The input of number `index`.
  Case make(uint64_t seed, uint64_t index) const;

private:
  llvm::ArrayRef<Seed> corpus;
  /// Indices into `corpus` of each target, in order.
  std::vector<std::vector<size_t>> groups;
};

} // namespace mlir::attn::fuzz

#endif // ATTN_TEST_LIB_FUZZ_MUTATOR_H
