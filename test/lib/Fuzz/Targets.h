//===- Targets.h - What one fuzzed input is given to ------------*- C++ -*-===//

#ifndef ATTN_TEST_LIB_FUZZ_TARGETS_H
#define ATTN_TEST_LIB_FUZZ_TARGETS_H

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringRef.h"
#include <memory>

namespace mlir::attn::fuzz {

/// The readers, passes and machines of the libraries, each under a name:
///
///   ir        MLIR text: parsed, verified, printed and parsed again
///   compile   options (a line each) and MLIR text: compiled
///   flags     options alone: compiled
///   passes    a pass pipeline and MLIR text: run
///   ptx       PTX: parsed, and each kernel run for some steps
///   launch    PTX and a launch record: run
///   recorded  PTX and a launch.json: run
///   plans     a plan table, and the plans in it
///   budget    a name and a file of budgets
///   bundle    bytes of a bundle
///   npy, npz  bytes of array files
///   sass      PTX, ptxas' log and a listing: linted
class Targets {
public:
  Targets();
  ~Targets();

  /// The names, in order.
  static llvm::ArrayRef<llvm::StringLiteral> getNames();
  /// Whether the input went through. An input of any contents may be refused;
  /// what ends the process is a bug.
  bool run(llvm::StringRef target, llvm::StringRef text);

private:
  MLIRContext &getContext();

  bool runIR(llvm::StringRef text);
  bool runCompile(llvm::StringRef options, std::optional<llvm::StringRef> text);
  bool runPasses(llvm::StringRef pipeline, llvm::StringRef text);
  bool runPlans(llvm::StringRef text);

  /// Attributes stay in a context for ever, so that it is renewed at times.
  std::unique_ptr<MLIRContext> context;
  unsigned contextUses = 0;
};

} // namespace mlir::attn::fuzz

#endif // ATTN_TEST_LIB_FUZZ_TARGETS_H
