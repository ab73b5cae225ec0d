//===- ProblemOptions.h - The flags that state a problem --------*- C++ -*-===//

#ifndef ATTN_TOOLS_ATTN_COMPILE_PROBLEMOPTIONS_H
#define ATTN_TOOLS_ATTN_COMPILE_PROBLEMOPTIONS_H

#include "attn/Compile/Problem.h"
#include "llvm/Support/CommandLine.h"
#include <list>
#include <memory>

namespace mlir::attn {

/// A flag for each row of Options.def and, for a switch that is on without it,
/// one to turn it off.
class ProblemOptions {
public:
  explicit ProblemOptions(llvm::cl::OptionCategory &category);

  /// What was given.
  ProblemFlags get() const;
  /// An error where two flags contradict each other.
  llvm::Error check() const;

private:
  template <typename T>
  using Flag = std::unique_ptr<llvm::cl::opt<T>>;

  template <typename T>
  Flag<T> makeFlag(std::string name, const OptionRow &row);

  llvm::cl::OptionCategory &category;
  /// Flags refer to their names and help texts.
  std::list<std::string> texts;
#define ATTN_OPTION(ID, NAME, KIND, VALUE, CONSTRAINTS, DOC)                   \
  Flag<OptionValue<OptionKind::KIND>::type> ID;
#include "attn/Problem/Options.def"
  /// A switch that is on, and the flag that turns it off.
  llvm::SmallVector<std::pair<llvm::cl::opt<bool> *, Flag<bool>>> negations;
};

} // namespace mlir::attn

#endif // ATTN_TOOLS_ATTN_COMPILE_PROBLEMOPTIONS_H
