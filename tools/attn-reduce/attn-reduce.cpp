//===- attn-reduce.cpp - Shrinks IR that shows a bug ----------------------===//

#include "attn/Dialect/Attn/IR/TextCheck.h"
#include "attn/InitAll.h"
#include "attn/Reduce/Reduce.h"
#include "attn/Target/PTX/FatalErrors.h"
#include "attn/Target/ToolMain.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/WithColor.h"

using namespace mlir::attn;

/// The driver opens and parses its input by itself: whatever argument is a file
/// is looked at before.
static llvm::LogicalResult checkFiles(int argc, char **argv) {
  for (llvm::StringRef path : llvm::ArrayRef(argv, argc).drop_front()) {
    if (!llvm::sys::fs::is_regular_file(path))
      continue;
    auto file = llvm::MemoryBuffer::getFile(path);
    std::optional<TextProblem> problem;
    if (file)
      problem = findTextProblem((*file)->getBuffer());
    if (!problem)
      continue;
    llvm::WithColor::error(llvm::errs(),
                           (path + ":" + llvm::Twine(problem->line) + ":" +
                            llvm::Twine(problem->column))
                               .str())
        << problem->message << "\n";
    return llvm::failure();
  }
  return llvm::success();
}

int main(int argc, char **argv) {
  setVersionPrinter();
  if (mlir::failed(checkFiles(argc, argv)))
    return 1;
  mlir::DialectRegistry registry;
  mlir::attn::registerAllDialects(registry);
  mlir::attn::registerReductions(registry);
  mlir::attn::registerAllPasses();
  mlir::attn::registerAllPipelines();
  mlir::MLIRContext context(registry);
  int status = 1;
  std::optional<std::string> fatal = runGuarded([&] {
    status = mlir::failed(mlir::mlirReduceMain(argc, argv, context));
  });
  if (fatal)
    llvm::WithColor::error(llvm::errs(), "attn-reduce")
        << "fatal error in the compiler: " << *fatal << "\n";
  return status;
}
